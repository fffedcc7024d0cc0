package hooks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// LH-71, X-08: for a call that has begun, controls can deny the repetition, stop the run, or
// ask a new question. A rewrite and a mock are ignored, and reported as events.
func TestControlsOfABegunCall(t *testing.T) {
	type result = hooks.Result
	for name, tc := range map[string]struct {
		say      func(c hooks.ToolContext) result
		ran      []string
		status   agent.ToolStatus
		conflict hooks.Decision
		asked    int
	}{
		"pass":              {func(c hooks.ToolContext) result { return c.Pass() }, []string{"50"}, agent.ToolExecuted, "", 0},
		"allow":             {func(c hooks.ToolContext) result { return c.Allow() }, []string{"50"}, agent.ToolExecuted, "", 0},
		"rewrite":           {func(c hooks.ToolContext) result { return c.Rewrite(json.RawMessage(`{"N":7}`)) }, []string{"50"}, agent.ToolExecuted, hooks.Rewrite, 0},
		"mock":              {func(c hooks.ToolContext) result { return c.Mock("paid") }, []string{"50"}, agent.ToolExecuted, hooks.Mock, 0},
		"deny":              {func(c hooks.ToolContext) result { return c.Deny("no more") }, nil, agent.ToolUnknown, "", 0},
		"stop":              {func(c hooks.ToolContext) result { return c.Stop("no more") }, nil, agent.ToolUnknown, "", 0},
		"ask again":         {func(c hooks.ToolContext) result { return c.Ask("it pays") }, []string{"50"}, agent.ToolExecuted, "", 0},
		"ask a second time": {func(c hooks.ToolContext) result { return c.Ask("it is late") }, []string{"50"}, agent.ToolExecuted, "", 1},
		"bad rewrite":       {func(c hooks.ToolContext) result { return c.Rewrite(json.RawMessage(`{"N":"x"}`)) }, nil, agent.ToolUnknown, "", 0},
	} {
		for _, observed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, observed %v", name, observed), func(t *testing.T) {
				var ran []string
				recorder := agenttest.Record()
				say := func(c hooks.ToolContext) result { return c.Ask("it pays") }
				build := func(approver agent.Approver) *agent.Agent {
					pay := toolexec.Func("pay", "", func(_ context.Context, in struct{ N int }) (string, error) {
						ran = append(ran, fmt.Sprint(in.N))
						return "paid", nil
					})
					b := builder.New().WithDriver(agenttest.Script(agenttest.Call("pay", `{"N":1}`), agenttest.Say("Done."))).
						With(capability.UseTools(toolexec.WithPolicy(pay, toolexec.Policy{Doubt: toolexec.DoubtRepeat})), capability.UseApproval(approver),
							capability.UseHooks(hooks.On(hooks.AtPreToolUse, "guard", func(_ context.Context, c hooks.ToolContext) hooks.Result { return say(c) })))
					if observed {
						b = b.With(capability.UseObserver(recorder))
					}
					a, err := b.Build().Get()
					require.NoError(t, err)
					return a
				}
				s, err := build(agent.ParkApprover).Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
				require.NoError(t, err)
				i := s.Interventions()[0]
				s = agenttest.WithApproval(s, i.CallID(), agent.Approval{Verdict: agent.Approve})
				effective := i.Call
				effective.Arguments = `{"N":50}`
				s = again(t, agent.Checkpoint(agent.Checkpoint(s).WithStatus(agent.StatusRunning)).WithCallBegun(&agent.Prepared{Original: &i.Original, Call: &effective}))

				say = func(c hooks.ToolContext) result {
					assert.Equal(t, effective.Arguments, c.Call().Arguments)
					assert.Equal(t, `{"N":1}`, c.Original().Arguments)
					return tc.say(c)
				}
				asked := 0
				s, err = build(agent.ApproverFunc(func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) {
					asked++
					return agent.Approval{Verdict: agent.Approve}, nil
				})).Resume(t.Context(), s).Get()
				require.NoError(t, err)
				assert.Equal(t, tc.ran, ran)
				assert.Equal(t, tc.asked, asked)
				for _, step := range s.RunSteps() {
					r := step.Result(0)
					assert.Equal(t, tc.status, r.Status)
					break
				}
				var conflicts []hooks.Decision
				for _, e := range recorder.Events() {
					if h, ok := e.(hooks.Event); ok && h.Kind == hooks.HookConflict {
						conflicts = append(conflicts, h.Decision)
					}
				}
				if observed && tc.conflict != "" {
					assert.Equal(t, []hooks.Decision{tc.conflict}, conflicts)
				} else {
					assert.Empty(t, conflicts)
				}
			})
		}
	}
}
