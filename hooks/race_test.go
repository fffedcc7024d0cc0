package hooks_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
)

// counted is how often a run's hook was asked. Each run has its own.
var counted = agent.NewScratch[struct {
	sync.Mutex

	before, after int
}](nil)

// IP-84: one agent, with hooks of all kinds around its calls, serves a hundred runs
// at once, each with parallel calls; nothing of one run is seen in another. This is
// for the race detector.
func TestToolHooksOfManyRunsAtOnce(t *testing.T) {
	owner := agent.RunKey[string]("owner")
	own := func(c hooks.Context) {
		if name, ok := owner.From(c.State()); ok {
			assert.Equal(t, string(c.Run().ID), name)
		}
	}
	list := []hooks.Hook{
		before("counts", func(c hooks.ToolContext) hooks.Result {
			own(c)
			n := counted.Get(c.State())
			n.Lock()
			defer n.Unlock()
			n.before++
			return c.Allow(owner.Set(string(c.Run().ID)))
		}),
		hooks.On(hooks.AtPreToolUse, "looks", func(ctx context.Context, c hooks.ToolContext) hooks.Result {
			_, ok := ctx.Deadline()
			assert.True(t, ok)
			return c.Allow()
		}),
		before("rewrites", func(c hooks.ToolContext) hooks.Result {
			return c.Rewrite(map[string]any{"command": "of " + string(c.Run().ID)})
		}, hooks.ToolNamed("bash")),
		before("limited", func(c hooks.ToolContext) hooks.Result { own(c); return c.Pass() }).WithTimeout(hooks.DefaultTimeout),
		before("denies", deny("no"), hooks.ArgumentMatching("path", "/etc/*")),
		hooks.On(hooks.AtPostToolUse, "reviews", func(ctx context.Context, c hooks.ToolResultContext) hooks.Result {
			own(c)
			n := counted.Get(c.State())
			n.Lock()
			defer n.Unlock()
			n.after++
			assert.NoError(t, ctx.Err())
			return c.Replace(fmt.Sprint(c.Index(), " ", c.Text()), note.Set(c.Call().ID))
		}),
		hooks.Observe(hooks.AtExecutionEnd, "sums", func(_ context.Context, c hooks.EndContext) error {
			n := counted.Get(c.State())
			assert.Equal(t, []int{12 + 6, 12}, []int{n.before, n.after}, "six calls are rewritten, and judged again")
			return nil
		}),
		hooks.ObserveAll("watches", func(_ context.Context, c hooks.Context) error { own(c); return nil }),
		hooks.ObserveAll("later", func(_ context.Context, c hooks.Context) error { own(c); return nil }, hooks.PostToolUse).Detach(),
	}
	var shop workshop
	turn := wants("bash", ls, "read_file", file, "read_file", `{"path":"/etc/passwd"}`, "bash", ls, "broken", `{}`, "bash", ls)
	recorder := agenttest.Record()
	a, err := builder.New().WithDriver(agenttest.Script(turn, turn, agenttest.Say("done"))).WithObserver(recorder).WithParallel(3).
		With(shop.capability(), capability.UseHooks(list...)).Build().Get()
	require.NoError(t, err)

	const runs, calls = 100, 2 * 6
	var all sync.WaitGroup
	for range runs {
		all.Go(func() {
			final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
			if !assert.NoError(t, err) {
				return
			}
			of := "ran of " + string(final.Run().ID)
			assert.Equal(t, string(final.Run().ID), owner.Or(final, ""))
			assert.Equal(t, "call_2_6", note.Or(final, ""))
			for _, r := range (work{ending{State: final}, nil}).results() {
				if r.Tool() == "bash" {
					assert.Equal(t, fmt.Sprint(r.Original().Index, " ", of), agent.ToolAnswer(r).ToolText())
				}
			}
		})
	}
	all.Wait()
	require.NoError(t, a.Drain(t.Context()))
	ended := map[agent.RunID]bool{}
	for _, e := range agenttest.Of[agent.RunCompleted](recorder) {
		ended[e.State.Run().ID] = true
	}
	assert.Len(t, ended, runs)
	assert.Len(t, shop.ids, runs*(calls-2), "but for those that are denied")
}
