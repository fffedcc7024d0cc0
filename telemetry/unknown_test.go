package telemetry_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
)

// A call in doubt that is not repeated has its own outcome.
func TestACallOfUnknownOutcome(t *testing.T) {
	s := newSink(t)
	ask := hooks.On(hooks.AtPreToolUse, "guard", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Ask("sure?") })
	a := build(t, agenttest.Script(agenttest.Call("a", `{}`), agenttest.Say("hi")), s.use(),
		capability.UseTools(says("a", "a", nil)), capability.UseHooks(ask), capability.UseApproval(agent.ParkApprover))
	parked, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	call := parked.Interventions()[0].Call
	cutOff := agent.Checkpoint(agent.Checkpoint(agenttest.WithApproval(parked, call.ID, agent.Approval{Verdict: agent.Approve, By: "ann"})).
		WithStatus(agent.StatusRunning)).WithCallBegun(&agent.Prepared{Original: &call, Call: &call})
	parked, err = a.Resume(t.Context(), cutOff).Get()
	require.NoError(t, err)
	require.True(t, parked.Waiting())
	done, err := a.Resume(t.Context(), agenttest.WithApproval(parked, call.ID, agent.Approval{Verdict: agent.RejectAndContinue, By: "ann"})).Get()
	require.NoError(t, err)
	assert.Equal(t, agent.StatusDone, done.Status())
	assert.Contains(t, s.tree(), "execute_tool a: unknown")
}
