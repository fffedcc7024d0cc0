package kit_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/capability/kit"
	"github.com/grapnel-go/grapnel/hooks"
)

// asksFor asks for approval of calls of a tool; the person is not there, so that
// the run parks.
func asksFor(tool string) capability.Capability {
	return capability.Func(func(p capability.Plan) (capability.Plan, error) {
		return p.WithHooks(hooks.On(hooks.AtPreToolUse, "ask", func(_ context.Context, c hooks.ToolContext) hooks.Result {
			return c.Ask("may it?")
		}, hooks.ToolNamed(tool))).WithApprover(agent.ApproverFunc(func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) {
			return agent.Approval{Verdict: agent.Park}, nil
		})), nil
	})
}

// parkedAndBack runs an agent until it parks, answers, and goes on in another process.
func parkedAndBack(t testing.TB, make func() *agent.Agent, answer agent.Approval) agent.State {
	t.Helper()
	s := done(t, make(), agent.NewState(), "go")
	require.Equal(t, agent.StatusParked, s.Status())
	s = through(t, s)
	for _, asked := range s.Interventions() {
		s = agenttest.WithApproval(s, asked.CallID(), answer)
	}
	final, err := make().Resume(t.Context(), s).Get()
	require.NoError(t, err)
	require.Equal(t, agent.StatusDone, final.Status())
	return final
}

// A tool that the model was not told of does not run because the run was parked.
func TestToolSelectionThroughAPark(t *testing.T) {
	s := parkedAndBack(t, func() *agent.Agent {
		return built(t, agenttest.Script(agenttest.Call("a", `{}`).Call("b", `{}`), agenttest.Say("ok")), letters,
			kit.ToolSelection{Select: fixed("a")}, asksFor("a"))
	}, agent.Approval{Verdict: agent.Approve, By: "Ada"})
	assert.Equal(t, []string{"A", `tool "b": not executed: it is not available in this turn; the available tools are a`}, told(s))
}

func TestToolCallLimitThroughAPark(t *testing.T) {
	for name, tc := range map[string]struct {
		answer agent.Approval
		want   string
	}{
		"yes":              {agent.Approval{Verdict: agent.Approve, By: "Ada"}, "rrrLL"},
		"yes, but changed": {agent.Approval{Verdict: agent.Approve, By: "Ada", Arguments: `{ }`}, "rrrLL"},
		"no":               {agent.Approval{Verdict: agent.RejectAndContinue, By: "Ada"}, "rdrLr"},
	} {
		t.Run(name, func(t *testing.T) {
			s := parkedAndBack(t, func() *agent.Agent {
				return built(t, agenttest.Script(
					agenttest.Call("b", `{}`), agenttest.Call("a", `{}`).Call("b", `{}`).Call("c", `{}`), agenttest.Call("d", `{}`), agenttest.Say("ok"),
				), letters, kit.ToolCallLimit{Run: 3}, asksFor("a"))
			}, tc.answer)
			assert.Equal(t, tc.want, became(s))
		})
	}
}

func TestTodoListThroughAPark(t *testing.T) {
	s := parkedAndBack(t, func() *agent.Agent {
		return built(t, agenttest.Script(plan(dig).Call("a", `{}`).Call(kit.TodoTool, `{"todos":[]}`), agenttest.Say("ok")), letters, kit.TodoList{}, asksFor("a"))
	}, agent.Approval{Verdict: agent.Approve, By: "Ada"})
	assert.Contains(t, told(s)[0], "replaced by a later call")
	assert.Contains(t, told(s)[2], "takes the place of the lists written before")
	assert.Empty(t, kit.Todos(s))
}

// What was removed stays removed when a run goes on in another process.
func TestContextEditingThroughAPark(t *testing.T) {
	read := agenttest.Call("read", `{}`)
	d := agenttest.Script(read, read, read, read.Call("a", `{}`), read, agenttest.Say("ok"))
	parkedAndBack(t, func() *agent.Agent {
		return built(t, d, capability.UseTools(long("read", 400)), letters, kit.ContextEditing{Results: 2, Keep: 1}, asksFor("a"))
	}, agent.Approval{Verdict: agent.Approve, By: "Ada"})
	assert.Equal(t, []int{0, 0, 0, 2, 2, 4}, removed(d))
	assert.Equal(t, 2, changes(d))
}
