package hooks_test

import (
	"context"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// caching is an executor that runs equal calls once. It is for one call at a time.
type caching struct {
	agent.Executor

	kept map[agent.ToolCall]*agent.ToolResult
}

func (x caching) Execute(ctx context.Context, s agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	if p.Disposition != agent.DisposeRun {
		return x.Executor.Execute(ctx, s, p)
	}
	key := agent.ToolCall{Name: p.Call.Name, Arguments: p.Call.Arguments}
	if kept := x.kept[key]; kept != nil {
		return mo.Ok(kept.To(p))
	}
	result := x.Executor.Execute(ctx, s, p)
	if r, err := result.Get(); err == nil {
		x.kept[key] = r
	}
	return result
}

// LH-35: a mock takes precedence over a cached result of the same call. The cache does
// not store mocks, denials or replaced results.
func TestHooksGoBeforeACache(t *testing.T) {
	ran := 0
	count := toolexec.Func("count", "Counts.", func(_ context.Context, in struct {
		N int `json:"n"`
	},
	) (int, error) {
		ran++
		return ran, nil
	})
	cache := capability.Func(func(p capability.Plan) (capability.Plan, error) {
		return p.WrapExecutor(capability.Inside, "cache", func(inner agent.Executor) agent.Executor {
			return caching{inner, map[agent.ToolCall]*agent.ToolResult{}}
		}), nil
	})
	inStep := func(step int, f func(c hooks.ToolContext) hooks.Result) func(context.Context, hooks.ToolContext) hooks.Result {
		return func(_ context.Context, c hooks.ToolContext) hooks.Result {
			if c.StepIndex() == step {
				return f(c)
			}
			return c.Pass()
		}
	}
	call := agenttest.Call("count", `{"n":1}`)
	a := builder.New().WithDriver(agenttest.Script(call, call, call, call, call, agenttest.Say("done"))).With(
		capability.UseTools(count), cache, capability.UseHooks(
			hooks.On(hooks.AtPreToolUse, "first", inStep(0, func(c hooks.ToolContext) hooks.Result { return c.Mock("mocked before") })),
			hooks.On(hooks.AtPreToolUse, "third", inStep(2, func(c hooks.ToolContext) hooks.Result { return c.Mock("mocked after") })),
			hooks.On(hooks.AtPreToolUse, "fourth", inStep(3, func(c hooks.ToolContext) hooks.Result { return c.Deny("no") })),
			hooks.On(hooks.AtPostToolUse, "frame", func(_ context.Context, c hooks.ToolResultContext) hooks.Result {
				return c.Replace("<" + c.Text() + ">")
			}),
		)).Build().MustGet()
	final := a.Run(t.Context(), agent.NewState(), agent.UserText("count")).MustGet()
	var told []string
	for _, m := range final.Messages() {
		if m.Role() == agent.RoleTool {
			told = append(told, m.Text())
		}
	}
	assert.Equal(t, []string{"<mocked before>", "<1>", "<mocked after>", `<tool "count": denied by fourth: no>`, "<1>"}, told)
	assert.Equal(t, 1, ran)
}
