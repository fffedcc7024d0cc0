package timeline

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
)

// A call that may have happened is shown as such, before and after it was decided that it is not repeated.
func TestACallOfUnknownOutcome(t *testing.T) {
	var out bytes.Buffer
	a := builder.New().WithDriver(agenttest.Script(agenttest.Call("bash", `{"command":"make"}`), agenttest.Say("Well."))).
		With(capability.UseTools(bash), capability.UseApproval(agent.ParkApprover), capability.UseHooks(
			hooks.On(hooks.AtPreToolUse, "guard", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Ask("sure?") }))).
		WithObserver(New(Config{Out: &out})).Build().MustGet()
	s := a.Run(t.Context(), agent.NewState(), agent.UserText("Build it.")).MustGet()
	call := s.Interventions()[0].Call
	s = agent.Checkpoint(agent.Checkpoint(agenttest.WithApproval(s, call.ID, agent.Approval{Verdict: agent.Approve, By: "ann"})).
		WithStatus(agent.StatusRunning)).WithCallBegun(&agent.Prepared{Original: &call, Call: &call})
	assert.Equal(t, []string{call.ID}, agent.Checkpoint(s).CallsInDoubt())
	s = a.Resume(t.Context(), s).MustGet()
	require.True(t, s.Waiting())
	assert.Contains(t, out.String(), "? this call may have happened")
	s = a.Resume(t.Context(), agenttest.WithApproval(s, call.ID, agent.Approval{Verdict: agent.RejectAndContinue, By: "ann"})).MustGet()
	require.Equal(t, agent.StatusDone, s.Status())
	assert.Contains(t, out.String(), "? outcome unknown, not repeated")
}
