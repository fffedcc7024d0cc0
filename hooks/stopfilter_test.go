package hooks_test

import (
	"context"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// stopsInPrepare stops the run when it prepares a call of "reads", as a disposition or as an error.
type stopsInPrepare struct {
	agent.Executor

	asError bool
}

func (x stopsInPrepare) Prepare(ctx context.Context, s agent.State, c *agent.ToolCall) mo.Result[*agent.Prepared] {
	signal := agent.Signal{Reason: agent.StopRequested, Message: "the pin is 4711", Source: "x"}
	switch {
	case c.Name != "reads":
		return x.Executor.Prepare(ctx, s, c)
	case x.asError:
		return mo.Err[*agent.Prepared](&agent.SignalError{Signal: signal})
	}
	return mo.Ok(&agent.Prepared{Original: c, Call: c, Disposition: agent.DisposeStop, Stop: &signal})
}

// What an executor says when it stops the run in Prepare reaches the answers of the other calls of the step as the
// filters of its own tool leave it, also where those have none.
func TestAStopInPreparePassesTheFiltersOfItsTool(t *testing.T) {
	says := func(name string) toolexec.Tool {
		return toolexec.Func(name, "Says ok.", func(context.Context, struct{}) (string, error) { return "ok", nil })
	}
	for _, asError := range []bool{false, true} {
		a, err := builder.New().
			WithDriver(agenttest.Script(agenttest.Say("").Call("other", `{}`).Call("reads", `{}`).Call("other", `{}`))).
			With(
				capability.UseTools(says("reads"), says("other")),
				capability.UseHooks(hooks.On(hooks.AtPostToolUse, "filter", func(_ context.Context, c hooks.ToolResultContext) hooks.Result {
					return c.Filter(hide)
				}, hooks.ToolNamed("reads"))),
				capability.Func(func(p capability.Plan) (capability.Plan, error) {
					return p.WrapExecutor(capability.Inside, "stops", func(inner agent.Executor) agent.Executor { return stopsInPrepare{inner, asError} }), nil
				}),
			).Build().Get()
		require.NoError(t, err)
		s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
		require.NoError(t, err)
		assert.Equal(t, agent.StatusStopped, s.Status())
		assert.Equal(t, "the pin is [pin]", s.StopSignal().Message)
		assert.NotContains(t, agenttest.Transcript(s), "4711")
		assert.Contains(t, agenttest.Transcript(s), "run stopped by x: the pin is [pin]")
	}
}
