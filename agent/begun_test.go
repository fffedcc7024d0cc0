package agent_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
)

func effective(c agent.ToolCall) *agent.Prepared { return &agent.Prepared{Original: &c, Call: &c} }

// begunBefore returns a run whose calls a person has approved, in the state when the first
// of them had begun and the process was killed.
func begunBefore(t *testing.T, a *agent.Agent, call agent.ToolCall) agent.State {
	t.Helper()
	s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	for _, i := range s.Interventions() {
		s = agenttest.WithApproval(s, i.CallID(), agent.Approval{Verdict: agent.Approve, By: "ann"})
	}
	require.False(t, s.Waiting())
	original := call
	original.Arguments = write(call.ID).Arguments
	s = agent.Checkpoint(agent.Checkpoint(s).WithStatus(agent.StatusRunning)).WithCallBegun(&agent.Prepared{Original: &original, Call: &call})
	return stored(t, s)
}

// A call approved at once has a card, like a parked call. A later question about it has another ID.
func TestACallApprovedAtOnceHasACard(t *testing.T) {
	call, begun := write("1"), agent.State{}
	a, err := agent.New(agent.Config{
		Name: "clerk",
		Driver: agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
			if s.RunStepCount() == 0 {
				return agent.Step{Message: agent.Assistant("", call)}, nil
			}
			return agent.Step{Message: agent.Assistant("Done.")}, nil
		}),
		Executor: executor{
			prepare: func(ctx context.Context, s agent.State, c *agent.ToolCall) (*agent.Prepared, error) {
				return (&wantsYes{}).Prepare(ctx, s, c).Get()
			},
			execute: func(_ context.Context, s agent.State, p *agent.Prepared) (*agent.ToolResult, error) {
				open := agent.Checkpoint(s).WithOpenStep(agent.Step{Message: agent.Assistant("", call)}, time.Now())
				begun = agent.Checkpoint(open).WithCallBegun(p)
				return agent.NewResult(p), nil
			},
		},
		Approver: agent.ApproverFunc(func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) {
			return agent.Approval{Verdict: agent.Approve, By: "ann"}, nil
		}),
	}).Get()
	require.NoError(t, err)
	_, err = a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	list := stored(t, begun).Interventions()
	require.Len(t, list, 1)
	assert.Equal(t, list[0].WithID(begun.Run().ID, begun.RunStepCount()).ID, list[0].ID)
}

// LH-51, LH-71: an approval counts once. A begun call needs a new answer before it runs again, and the later calls keep
// their answers.
func TestAnApprovalCountsOnce(t *testing.T) {
	x := &wantsYes{question: agent.Question{By: "guard", Reason: "it writes"}}
	a, _ := parking(t, x, write("1"), write("2"))
	s := begunBefore(t, a, write("1"))
	assert.True(t, agent.Checkpoint(s).InDoubt("1"))
	for range 2 {
		var err error
		s, err = a.Resume(t.Context(), stored(t, s)).Get()
		require.NoError(t, err)
		require.True(t, s.Waiting())
		assert.Empty(t, x.ran)
		i, _ := agent.Checkpoint(s).Intervention("1")
		assert.True(t, i.Begun)
		assert.Nil(t, i.Answer())
		assert.Equal(t, s, agenttest.WithApproval(s, "1", agent.Approval{Verdict: agent.Approve, Arguments: `{"n":7}`}), "its arguments are settled")
		// The answer counts for this repetition, and for no other.
		s = agenttest.WithApproval(s, "1", agent.Approval{Verdict: agent.Approve, By: "bob"})
		require.False(t, s.Waiting())
		s = agent.Checkpoint(agent.Checkpoint(s).WithStatus(agent.StatusRunning)).WithCallBegun(effective(write("1")))
	}
	s, err := a.Resume(t.Context(), stored(t, s)).Get()
	require.NoError(t, err)
	s, err = a.Resume(t.Context(), stored(t, agenttest.WithApproval(s, "1", agent.Approval{Verdict: agent.Approve}))).Get()
	require.NoError(t, err)
	assert.Equal(t, agent.StatusDone, s.Status())
	assert.Equal(t, []string{`write{"n":1}`, `write{"n":2}`}, x.ran)
}

// A begun call runs again with its old arguments, even if hooks would now change them.
func TestABegunCallKeepsItsArguments(t *testing.T) {
	x := &wantsYes{tame: true}
	a, _ := parking(t, x, write("1"))
	x.tame = false
	s := begunBefore(t, a, agent.ToolCall{ID: "1", Name: "write", Arguments: `{"n":50}`})
	x.tame = true
	begun, original, ok := agent.Checkpoint(s).Begun("1")
	require.True(t, ok)
	assert.Equal(t, `{"n":50}`, begun.Arguments)
	assert.Equal(t, write("1"), original)
	x.change = func(c agent.ToolCall) agent.ToolCall { c.Arguments += " "; return c }
	s, err := a.Resume(t.Context(), s).Get()
	require.NoError(t, err)
	require.True(t, s.Waiting())
	i, _ := agent.Checkpoint(s).Intervention("1")
	assert.Equal(t, `{"n":50}`, i.Call.Arguments)
	s, err = a.Resume(t.Context(), agenttest.WithApproval(s, "1", agent.Approval{Verdict: agent.Approve})).Get()
	require.NoError(t, err)
	assert.Equal(t, agent.StatusDone, s.Status())
	assert.Equal(t, []string{`write{"n":50}`}, x.ran)
	step, _ := first(s.RunSteps())
	r := step.Result(0)
	assert.Equal(t, write("1"), r.Original())
	assert.True(t, r.Rewritten())
}

// LH-51: a begun call that does not run again has an unknown outcome, whatever prevents it from running.
func TestACallThatIsNotRepeated(t *testing.T) {
	approver := func(answer agent.Approval) agent.Approver {
		return agent.ApproverFunc(func(_ context.Context, _ agent.State, p *agent.Prepared) (agent.Approval, error) {
			assert.True(t, p.Begun)
			return answer, nil
		})
	}
	for name, tc := range map[string]struct {
		approver agent.Approver
		reason   agent.ReasonCode
		status   agent.Status
	}{
		"no person to ask":  {nil, agent.ReasonNobodyToAsk, agent.StatusDone},
		"not repeated":      {approver(agent.Approval{Verdict: agent.RejectAndContinue, By: "ann"}), agent.ReasonRejected, agent.StatusDone},
		"the end":           {approver(agent.Approval{By: "ann"}), agent.ReasonRejected, agent.StatusInterrupted},
		"changed arguments": {approver(agent.Approval{Verdict: agent.Approve, Arguments: `{"n":3}`}), agent.ReasonRejected, agent.StatusDone},
	} {
		t.Run(name, func(t *testing.T) {
			x := &wantsYes{question: agent.Question{By: "guard", Reason: "it writes"}}
			a, _ := parking(t, x, write("1"))
			s := begunBefore(t, a, write("1"))
			b, err := agent.New(agent.Config{Name: "clerk", Executor: x, Approver: tc.approver, Driver: agent.DriverFunc(
				func(context.Context, agent.State) (agent.Step, error) {
					return agent.Step{Message: agent.Assistant("Done.")}, nil
				})}).Get()
			require.NoError(t, err)
			s, err = b.Resume(t.Context(), s).Get()
			require.NoError(t, err)
			assert.Equal(t, tc.status, s.Status())
			assert.Empty(t, x.ran)
			step, _ := first(stored(t, s).RunSteps())
			r := step.Result(0)
			assert.Equal(t, agent.ToolUnknown, r.Status)
			assert.Equal(t, tc.reason, r.Reason)
			assert.Contains(t, r.Text(), "outcome unknown, not repeated")
			assert.False(t, r.Executed())
			assert.False(t, r.Denied())
			assert.True(t, r.IsError())
			assert.Zero(t, r.Attempts)
		})
	}
}

// Only a person answers a question: answers and questions about doubt that an executor
// sets are ignored.
func TestExecutorsDoNotAnswer(t *testing.T) {
	yes := []agent.Approval{{Verdict: agent.Approve, By: "me"}}
	x := &wantsYes{question: agent.Question{Kind: agent.QuestionDoubt, By: "doubt", Answers: yes}}
	a, _ := parking(t, x, write("1"))
	s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	require.True(t, s.Waiting())
	assert.False(t, s.Interventions()[0].Questions.InDoubt())
	s, err = a.Resume(t.Context(), begunBefore(t, a, write("1"))).Get()
	require.NoError(t, err)
	require.True(t, s.Waiting(), "the doubt is a person's to resolve")
	assert.Empty(t, x.ran)
}

// LH-66: an approver's answer after the deadline does not count.
func TestAnApproverThatIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &wantsYes{question: agent.Question{By: "guard", Within: time.Minute, OnTimeout: agent.RejectAndContinue}}
		a, err := agent.New(agent.Config{Executor: x, Driver: agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
			if s.RunStepCount() == 1 {
				return agent.Step{Message: agent.Assistant("Done.")}, nil
			}
			return agent.Step{Message: agent.Assistant("", write("1"))}, nil
		}), Approver: agent.ApproverFunc(func(ctx context.Context, _ agent.State, _ *agent.Prepared) (agent.Approval, error) {
			<-ctx.Done()
			return agent.Approval{Verdict: agent.Approve, By: "ann"}, nil
		})}).Get()
		require.NoError(t, err)
		s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
		require.NoError(t, err)
		step, _ := first(s.RunSteps())
		assert.Equal(t, "timeout", step.Result(0).DecidedBy)
		assert.Empty(t, x.ran)
	})
}

// LH-66: at or after the deadline, the question's OnTimeout decides.
func TestAnAnswerBehindTheDeadline(t *testing.T) {
	for name, tc := range map[string]struct {
		after time.Duration
		want  agent.ApprovalVerdict
	}{
		"before": {-time.Nanosecond, agent.Approve},
		"at":     {0, agent.RejectAndContinue},
		"behind": {time.Hour, agent.RejectAndContinue},
	} {
		t.Run(name, func(t *testing.T) {
			x := &wantsYes{question: agent.Question{By: "guard", Within: time.Minute, OnTimeout: agent.RejectAndContinue}}
			a, _ := parking(t, x, write("1"))
			s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
			require.NoError(t, err)
			i, _ := agent.Checkpoint(s).Intervention("1")
			s = s.WithApprovalAt(s.Interventions()[0].ID, agent.Approval{Verdict: agent.Approve, By: "ann"}, i.Deadline.Add(tc.after))
			i, _ = agent.Checkpoint(s).Intervention("1")
			require.NotNil(t, i.Answer())
			assert.Equal(t, tc.want, i.Answer().Verdict)
			late := s.WithApprovalAt(s.Interventions()[0].ID, agent.Approval{Verdict: agent.Approve}, i.Asked)
			assert.Equal(t, s, late, "it is answered")
		})
	}
}
