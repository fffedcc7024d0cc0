package agenttest

import (
	"context"
	"errors"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
)

// TestCriterion tests a criterion against the contract of agent.Criterion. NewCriterion is called once for each part of
// the test. The criterion judges states before the first step, after steps with good and failed tools, after a failed
// model call, after an answer and after a stop. Any verdict is accepted.
func TestCriterion(t *testing.T, newCriterion func(t *testing.T) agent.Criterion) {
	t.Helper()
	states := judgedStates(t)
	judge := func(t *testing.T, c agent.Criterion, s agent.State) agent.Evaluation {
		t.Helper()
		e, err := c.Evaluate(t.Context(), s).Get()
		require.NoError(t, err)
		return e
	}

	t.Run("has a verdict on every state", func(t *testing.T) {
		c := newCriterion(t)
		for name, s := range states {
			e := judge(t, c, s)
			assert.LessOrEqual(t, e.Verdict, agent.Forbid, "the verdict %s", name)
			if e.Stops() {
				assert.NotEmpty(t, e.Signal.Reason, "the reason of the stop %s", name)
			}
		}
	})
	t.Run("judges a state, not what came before it", func(t *testing.T) {
		c := newCriterion(t)
		verdicts := lo.MapValues(states, func(s agent.State, _ string) agent.Verdict { return judge(t, c, s).Verdict })
		for range 3 {
			for name, s := range states { // in another order each time
				assert.Equal(t, verdicts[name], judge(t, c, s).Verdict, "the verdict %s, asked again", name)
				assert.Equal(t, verdicts[name], judge(t, newCriterion(t), s).Verdict, "the verdict %s, of a new criterion", name)
			}
		}
	})
	t.Run("serves several runs at once", func(t *testing.T) {
		c := newCriterion(t)
		verdicts := lo.MapValues(states, func(s agent.State, _ string) agent.Verdict { return judge(t, c, s).Verdict })
		together(func(int) {
			for name, s := range states {
				e, err := c.Evaluate(t.Context(), s).Get()
				if assert.NoError(t, err) {
					assert.Equal(t, verdicts[name], e.Verdict, "the verdict %s", name)
				}
			}
		})
	})
	t.Run("returns when its context is done", func(t *testing.T) {
		c := newCriterion(t)
		soon(t, "Evaluate", func() { c.Evaluate(newCancelledContext(), states["after an answer"]) })
	})
	t.Run("does not keep the state", func(t *testing.T) {
		c := newCriterion(t)
		checkForgets(t, "the criterion", func(s agent.State) { c.Evaluate(t.Context(), s) })
		judge(t, c, states["after an answer"]) // it is still reachable
	})
}

// judgedStates returns states as criteria see them. The keys say when.
func judgedStates(t *testing.T) map[string]agent.State {
	t.Helper()
	states := map[string]agent.State{}
	see := func(names ...string) agent.Criterion {
		return agent.CriterionFunc(func(ctx context.Context, s agent.State) (agent.Evaluation, error) {
			if name := names[min(s.RunStepCount(), len(names)-1)]; name != "" {
				states[name] = s
			}
			return agent.Base.Evaluate(ctx, s).Get()
		})
	}
	tools := Tools{
		"good": func(context.Context, agent.ToolCall) (string, error) { return "fine", nil },
		"bad":  func(context.Context, agent.ToolCall) (string, error) { return "", errors.New("out of paper") },
		"stop": func(context.Context, agent.ToolCall) (string, error) {
			return "", &agent.SignalError{Signal: agent.Signal{Reason: agent.StopByHook, Source: "agenttest"}}
		},
	}
	for _, run := range []struct {
		names []string
		turns []Turn
	}{
		{[]string{"before the first step", "after a tool", "after a failed tool", "after an answer"}, []Turn{
			Call("good", `{}`).WithTokens(10, 5).WithCost(0.01), Call("bad", `{}`).WithTokens(20, 5), Say("done"),
		}},
		{[]string{"", "after a failed model call"}, []Turn{Fail(errors.New("overloaded"))}},
		{[]string{"", "after a stop"}, []Turn{Call("stop", `{}`)}},
		{[]string{"", "after an answer that was cut"}, []Turn{Say("and the").WithFinish(agent.FinishLength)}},
	} {
		a, err := agent.New(agent.Config{
			Name: "agenttest", Driver: Script(run.turns...), Executor: tools.Executor(), Criterion: see(run.names...),
		}).Get()
		require.NoError(t, err)
		var failed *agent.RunError
		if _, err = a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).Get(); err != nil {
			require.ErrorAs(t, err, &failed)
		}
	}
	require.Len(t, states, 7)
	return states
}
