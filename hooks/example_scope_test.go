package hooks_test

import (
	"context"
	"fmt"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// A program that runs a pipeline fires its points through a scope.
func ExampleCompiled_OpenScope() {
	enough := hooks.On(hooks.AtIterationComplete, "enough", func(_ context.Context, c hooks.PipelineContext) hooks.Result {
		if len(c.Pipeline().ChangedFiles) == 0 {
			return c.Stop("nothing has changed")
		}
		return c.Allow()
	})
	notify := hooks.Observe(hooks.AtSessionComplete, "notify", func(_ context.Context, c hooks.PipelineEndContext) error {
		fmt.Println("over:", c.Pipeline().Reason)
		return nil
	}).Detach()
	compiled := lo.Must(hooks.NewSet(enough, notify).Compile())

	ctx := context.Background()
	scope := compiled.OpenScope(ctx, hooks.ScopeOptions{Run: agent.Run{ID: "run_nightly"}})
	s := agent.NewState()
	reason := "max iterations"
	for i, changed := range [][]string{{"a.go"}, {}, {"b.go"}} {
		at := hooks.Firing{Point: hooks.IterationComplete, Stage: "work", Iteration: i + 1}
		after, stop, err := scope.Pipeline(ctx, s, at, hooks.Pipeline{ChangedFiles: changed})
		if err != nil {
			fmt.Println(err)
			return
		}
		if s = after; stop != nil {
			fmt.Printf("iteration %d: %s by %s\n", i+1, stop.Message, stop.Source)
			reason = stop.Message
			break
		}
	}
	if _, _, err := scope.Pipeline(ctx, s, hooks.Firing{Point: hooks.SessionComplete}, hooks.Pipeline{Reason: reason}); err != nil {
		fmt.Println(err)
		return
	}
	if err := scope.Drain(ctx); err != nil { // waits for notify
		fmt.Println(err)
	}
	// Output:
	// iteration 2: nothing has changed by enough
	// over: nothing has changed
}
