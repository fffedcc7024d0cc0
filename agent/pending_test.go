package agent_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
)

// delegates is an executor whose calls run another agent and wait for it. A call named
// "stop" ends the run, a call named "break" fails it.
type delegates struct {
	to    *agent.Agent
	given []string // calls that were answered while their run waited
}

func (x *delegates) Prepare(_ context.Context, _ agent.State, c *agent.ToolCall) mo.Result[*agent.Prepared] {
	return mo.Ok(&agent.Prepared{Original: c, Call: c})
}

func (x *delegates) Execute(ctx context.Context, s agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	child, _, waits := agent.Checkpoint(s).Child(p.Original.ID)
	r := agent.NewResult(p)
	switch {
	case p.Call.Name == "stop":
		r.Stop = &agent.Signal{Reason: agent.StopByHook, Message: "enough"}
		return mo.Ok(r)
	case p.Call.Name == "break":
		return mo.Err[*agent.ToolResult](assert.AnError)
	case waits:
		child, _ = x.to.Resume(ctx, child).Get()
	default:
		child, _ = x.to.RunWith(ctx, agent.RunSettings{Parent: s.Run()}, agent.NewState(), agent.UserText("go")).Get()
	}
	if child.Parked() {
		return mo.Err[*agent.ToolResult](&agent.ParkedError{State: child})
	}
	r.Content = agent.TextContent(child.Answer())
	return mo.Ok(r)
}

func (x *delegates) HandleAnswer(_ context.Context, s agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	if _, _, waits := agent.Checkpoint(s).Child(p.Original.ID); waits {
		x.given = append(x.given, p.Original.ID)
	}
	return mo.Ok(p.Answer)
}

func delegating(t *testing.T, parallel int, calls ...agent.ToolCall) (*agent.Agent, *delegates) {
	t.Helper()
	below, _ := parking(t, &wantsYes{}, write("1"))
	x := &delegates{to: below}
	a, err := agent.New(agent.Config{
		Name: "above", Executor: x, Parallel: parallel,
		Driver: agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
			if s.RunStepCount() == 0 {
				return agent.Step{Message: agent.Assistant("", calls...)}, nil
			}
			return agent.Step{Message: agent.Assistant("Done.")}, nil
		}),
	}).Get()
	require.NoError(t, err)
	return a, x
}

func paths(s agent.State) []string {
	return lo.Map(s.Interventions(), func(i agent.Intervention, _ int) string { return i.CallID() })
}

// The names of calls in child runs are unique for any ids that a model chooses, so that
// an answer to one call never counts for another.
func TestNamesOfCallsBelow(t *testing.T) {
	named := func(id string) agent.ToolCall { return agent.ToolCall{ID: id, Name: "delegate"} }
	a, _ := delegating(t, 4, named("a"), named("a/1"), named("a/a/1"), named("b"))
	s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	want := []string{"a/a/a/1", "a/1/1", "a/a/1/1", "b/1"}
	require.Equal(t, want, paths(s))
	s = stored(t, s)
	require.Equal(t, want, paths(s))
	for _, name := range []string{"1", "a", "a/1", "a/a/1", ""} {
		_, ok := agent.Checkpoint(s).Intervention(name)
		assert.False(t, ok, name)
		assert.Equal(t, s, agenttest.WithApproval(s, name, agent.Approval{Verdict: agent.Approve}), name)
	}
	for n, name := range want {
		s = agenttest.WithApproval(s, name, agent.Approval{Verdict: agent.Approve})
		answered := lo.CountBy(s.Interventions(), func(i agent.Intervention) bool { return i.Answer() != nil })
		assert.Equal(t, n+1, answered)
	}
	s, err = a.Resume(t.Context(), stored(t, s)).Get()
	require.NoError(t, err)
	assert.Equal(t, agent.StatusDone, s.Status())
	last := stored(t, s)
	assert.Equal(t, 6, last.MessageCount()-1, "no call has two answers")
}

// If another call ends the run, no call waits any more.
func TestACallThatWaitsWhileTheRunEnds(t *testing.T) {
	waits := agent.ToolCall{ID: "w", Name: "delegate"}
	for name, tc := range map[string]struct {
		other  string
		status agent.Status
	}{"stopped": {"stop", agent.StatusStopped}, "broken": {"break", agent.StatusFailed}} {
		t.Run(name, func(t *testing.T) {
			a, x := delegating(t, 2, agent.ToolCall{ID: "o", Name: tc.other}, waits)
			s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
			if tc.status == agent.StatusFailed {
				s = runError(t, mo.TupleToResult(s, err)).State
			}
			assert.Equal(t, tc.status, s.Status())
			assert.Equal(t, []string{"w"}, x.given)
			step := s.LastStep()
			r := step.Result(1)
			assert.Equal(t, agent.ReasonRunStopped, r.Reason)
			assert.Equal(t, "no result: the run ended before there was one", r.Text())
			stored(t, s)
		})
	}
}

// Changes are as small in a child run as in any other run.
func TestChangesOfARunBelow(t *testing.T) {
	call := agent.ToolCall{ID: "w", Name: "delegate"}
	s, err := delegatingState(t, call)
	require.NoError(t, err)
	child, begun, ok := agent.Checkpoint(s).Child("w")
	require.True(t, ok)
	assert.Equal(t, call, begun)
	assert.False(t, agent.Checkpoint(s).InDoubt("w"), "it is known how far it came")
	assert.True(t, agent.Checkpoint(agent.Checkpoint(s).WithCallChild("w", agent.Checkpoint(child).WithStatus(agent.StatusRunning))).InDoubt("w"), "it was cut off")
	long := child.With(agent.UserText(strings.Repeat("x", 10_000)))
	before := agent.Checkpoint(s).WithCallChild("w", long)
	after := agent.Checkpoint(before).WithCallChild("w", long.With(agent.UserText("more")))
	first, err := agent.Checkpoint(before).Changes(agent.State{})
	require.NoError(t, err)
	second, err := agent.Checkpoint(after).Changes(before)
	require.NoError(t, err)
	assert.Less(t, len(second), 2_000)
	restored, err := agent.Restore(first, second)
	require.NoError(t, err)
	got, err := json.Marshal(restored)
	require.NoError(t, err)
	want, err := json.Marshal(after)
	require.NoError(t, err)
	assert.JSONEq(t, string(want), string(got))
	assert.Equal(t, s, agent.Checkpoint(s).WithCallChild("other", child))
}

func delegatingState(t *testing.T, call agent.ToolCall) (agent.State, error) {
	t.Helper()
	a, _ := delegating(t, 1, call)
	return a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
}

// Invalid child runs in JSON are errors with the location.
func TestRunsBelowThatCannotBe(t *testing.T) {
	s, err := delegatingState(t, agent.ToolCall{ID: "w", Name: "delegate"})
	require.NoError(t, err)
	text, err := json.Marshal(s)
	require.NoError(t, err)
	const at = `"child":{"version":3,`
	require.Contains(t, string(text), at)
	for name, tc := range map[string]struct{ old, now, says string }{
		"a version":    {at, `"child":{"version":4,`, "/open_step/calls/0/child/version"},
		"changes":      {at, `"child_changes":{"version":2},` + at, "/open_step/calls/0/child_changes"},
		"no begin":     {`"begun":{"id":"w","name":"delegate","arguments":""},`, ``, "/open_step/calls/0/begun"},
		"a bad number": {`"accepted":1`, `"accepted":9`, "accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			wrong := strings.Replace(string(text), tc.old, tc.now, 1)
			require.NotEqual(t, string(text), wrong)
			require.ErrorContains(t, json.Unmarshal([]byte(wrong), new(agent.State)), tc.says)
		})
	}
}
