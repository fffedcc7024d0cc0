package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// runtimeHooks answers the first search in the tool's place, as if the service had refused it. It observes each call,
// each step and the end. Program examples/evals scores a table of cases with hooks at the same points.
func runtimeHooks(ctx context.Context, out io.Writer) error {
	search := toolexec.Func("search", "Searches the web.", func(_ context.Context, in struct {
		Query string `json:"query"`
	},
	) (string, error) {
		if in.Query == "" {
			return "", errors.New("what for?")
		}
		return "results for " + in.Query, nil
	})
	list := []hooks.Hook{
		hooks.On(hooks.AtPreToolUse, "rate-limited", func(_ context.Context, c hooks.ToolContext) hooks.Result {
			if c.StepIndex() == 0 {
				return c.Mock(`{"error":"rate limited"}`)
			}
			return c.Pass()
		}, hooks.ToolNamed("search")),
		hooks.Observe(hooks.AtPostToolUse, "after-call", func(_ context.Context, c hooks.ToolResultContext) error {
			r := c.Result()
			_, err := fmt.Fprintf(out, "  call %s %s: %s, attempts %d, good %t: %s\n",
				c.Tool(), c.Call().Arguments, c.Status(), r.Attempts, !c.IsError(), c.Text())
			return err
		}),
		hooks.Observe(hooks.AtToolFailed, "call-error", func(_ context.Context, c hooks.ToolFailureContext) error {
			_, err := fmt.Fprintf(out, "  error of %s: %v\n", c.Tool(), c.Err())
			return err
		}),
		hooks.Observe(hooks.AtStepStart, "before-step", func(_ context.Context, c hooks.StepContext) error {
			_, err := fmt.Fprintf(out, "step %d\n", c.StepIndex())
			return err
		}),
		hooks.Observe(hooks.AtStepEnd, "after-step", func(_ context.Context, c hooks.StepEndContext) error {
			_, err := fmt.Fprintf(out, "  so far: %d calls, $%g\n", c.RunToolCalls(), c.RunUsage().Cost.OrEmpty())
			return err
		}),
		hooks.Observe(hooks.AtExecutionEnd, "complete", func(_ context.Context, c hooks.EndContext) error {
			_, err := fmt.Fprintf(out, "%s: %s\n", c.Status(), c.Answer())
			return err
		}),
	}
	model := agenttest.Script(
		agenttest.Call("search", `{"query":"grapnels"}`).WithCost(0.25),
		agenttest.Call("search", `{"query":"grapnels"}`).Call("search", `{"query":""}`).WithCost(0.25),
		agenttest.Say("Hooks on a rope.").WithCost(0.25),
	)
	a, err := newAgent("searcher", model, []toolexec.Tool{search}, list...)
	if err != nil {
		return err
	}
	return a.Run(ctx, agent.NewState(), agent.UserText("What are grapnels?")).Error()
}
