package agent_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
)

// asking returns an executor that requires approval for tools whose names ask for it, and records the calls that ran.
func asking(ran *[]string) agent.Executor {
	return executor{
		prepare: func(_ context.Context, _ agent.State, c *agent.ToolCall) (*agent.Prepared, error) {
			p := &agent.Prepared{Original: c, Call: c}
			switch c.Name {
			case "deny":
				return denied(c), nil
			case "ask", "also ask":
				p.Disposition = agent.DisposeAsk
				p.SetQuestions(agent.Questions{{By: "guard", Reason: "it is risky"}})
			case "ask mock":
				p.Disposition, p.Answer = agent.DisposeAsk, mocked(c).Answer
			}
			return p, nil
		},
		execute: func(_ context.Context, _ agent.State, p *agent.Prepared) (*agent.ToolResult, error) {
			*ran = append(*ran, p.Call.Name)
			return &agent.ToolResult{Content: agent.TextContent("ran")}, nil
		},
	}
}

func TestAPersonDecides(t *testing.T) {
	yes := agent.Approval{Verdict: agent.Approve, By: "eve"}
	no := agent.Approval{By: "eve", Reason: "not today"} // the zero verdict is a rejection
	skip := agent.Approval{Verdict: agent.RejectAndContinue}
	for name, tc := range map[string]struct {
		tools   []string
		says    map[string]agent.Approval
		ran     []string
		answers []string
		status  agent.Status
		text    string // of the first answer
	}{
		"yes": {
			[]string{"ask", "add"}, map[string]agent.Approval{"ask": yes}, []string{"ask", "add"},
			[]string{"call_1_1 executed ", "call_1_2 executed "}, agent.StatusDone, "ran",
		},
		"no": {
			[]string{"ask", "add"}, map[string]agent.Approval{"ask": no}, []string{"add"},
			[]string{"call_1_1 not_executed rejected", "call_1_2 executed "}, agent.StatusInterrupted, `tool "ask": rejected by eve: not today`,
		},
		"no, but go on": {
			[]string{"ask", "add"}, map[string]agent.Approval{"ask": skip}, []string{"add"},
			[]string{"call_1_1 not_executed rejected", "call_1_2 executed "}, agent.StatusDone,
			`tool "ask": rejected by a person: no reason given`,
		},
		"yes and no": {
			[]string{"ask", "also ask"}, map[string]agent.Approval{"ask": yes, "also ask": no}, []string{"ask"},
			[]string{"call_1_1 executed ", "call_1_2 not_executed rejected"}, agent.StatusInterrupted, "ran",
		},
		"a mock waits for the approval": {
			[]string{"ask mock"}, map[string]agent.Approval{"ask mock": yes}, nil,
			[]string{"call_1_1 mocked "}, agent.StatusDone, "mock",
		},
		"and does not answer without it": {
			[]string{"ask mock"}, map[string]agent.Approval{"ask mock": skip}, nil,
			[]string{"call_1_1 not_executed rejected"}, agent.StatusDone, `tool "ask mock": rejected by a person: no reason given`,
		},
		"no question about the denied": {
			[]string{"deny", "ask"}, map[string]agent.Approval{"ask": yes}, []string{"ask"},
			[]string{"call_1_1 not_executed denied", "call_1_2 executed "}, agent.StatusDone, "denied by guard: no",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var ran, asked []string
			a := build(t, agent.Config{
				Driver: agenttest.Script(calls(tc.tools...), agenttest.Say("done")), Executor: asking(&ran),
				Approver: agent.ApproverFunc(func(_ context.Context, _ agent.State, p *agent.Prepared) (agent.Approval, error) {
					assert.Empty(t, ran, "nothing of the batch runs while a person is asked")
					asked = append(asked, p.Call.Name)
					return tc.says[p.Call.Name], nil
				}),
			})
			final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("hello")).Get()
			require.NoError(t, err)
			assert.ElementsMatch(t, lo.Keys(tc.says), asked)
			assert.Equal(t, tc.ran, ran)
			assert.Equal(t, tc.answers, answers(final))
			assert.Equal(t, tc.status, final.Status())
			assert.Equal(t, tc.text, final.Message(2).Text())
			if tc.status == agent.StatusInterrupted {
				assert.Equal(t, agent.Signal{Reason: agent.StopRejected, Message: "not today", Source: "eve"}, signalOf(t, final))
			}
			for _, step := range final.RunSteps() {
				for _, r := range step.Results() {
					assert.Equal(t, r.Reason == agent.ReasonRejected || r.Reason == agent.ReasonDenied, r.Denied())
				}
			}
		})
	}
}

// Without a person to ask, the call is denied, and the model is told so.
func TestNobodyToAskIsANo(t *testing.T) {
	var ran []string
	a := build(t, agent.Config{Driver: agenttest.Script(calls("ask", "add"), agenttest.Say("done")), Executor: asking(&ran)})
	final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("hello")).Get()
	require.NoError(t, err)
	assert.Equal(t, []string{"add"}, ran)
	assert.Equal(t, []string{"call_1_1 not_executed nobody_to_ask", "call_1_2 executed "}, answers(final))
	assert.Equal(t, `tool "ask": denied by guard: needs approval (it is risky) and there is no person to ask`, final.Message(2).Text())
	assert.Equal(t, agent.StatusDone, final.Status())
}

// An approval that comes after the end of the context does not count.
func TestAYesAfterTheEndIsNoYes(t *testing.T) {
	var ran []string
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	a := build(t, agent.Config{
		Driver: agenttest.Script(calls("ask", "add", "also ask")), Executor: asking(&ran),
		Approver: agent.ApproverFunc(func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) {
			asked++
			cancel()
			return agent.Approval{Verdict: agent.Approve}, nil
		}),
	})
	failed := runError(t, a.Run(ctx, agent.NewState(), agent.UserText("hello")))
	assert.Equal(t, agent.StatusCancelled, failed.State.Status())
	assert.Empty(t, ran)
	assert.Equal(t, 1, asked, "no person is asked after the end")
	assert.Equal(t, []string{
		"call_1_1 not_executed cancelled", "call_1_2 not_executed cancelled", "call_1_3 not_executed cancelled",
	}, answers(failed.State))
}

type approvers func(pending []*agent.Prepared) ([]agent.Approval, error)

func (f approvers) Approve(_ context.Context, _ agent.State, pending []*agent.Prepared) ([]agent.Approval, error) {
	return f(pending)
}

// An approver that fails, or gives another number of answers, fails the run; no call of the batch runs.
func TestAnApproverThatFailsFailsTheRun(t *testing.T) {
	lost := errors.New("the line is dead")
	for name, tc := range map[string]struct {
		approver approvers
		says     string
	}{
		"by error":          {func([]*agent.Prepared) ([]agent.Approval, error) { return nil, lost }, "asking for approval: the line is dead"},
		"by answers":        {func([]*agent.Prepared) ([]agent.Approval, error) { return make([]agent.Approval, 3), nil }, "3 answers to 2 questions"},
		"by saying nothing": {func([]*agent.Prepared) ([]agent.Approval, error) { return nil, nil }, "0 answers to 2 questions"},
	} {
		t.Run(name, func(t *testing.T) {
			var ran []string
			a := build(t, agent.Config{
				Driver: agenttest.Script(calls("add", "ask", "also ask")), Executor: asking(&ran), Approver: tc.approver,
			})
			failed := runError(t, a.Run(t.Context(), agent.NewState(), agent.UserText("hello")))
			require.ErrorContains(t, failed, tc.says)
			assert.Equal(t, agent.StatusFailed, failed.State.Status())
			assert.Empty(t, ran)
			assert.Len(t, answers(failed.State), 3)
		})
	}
}

// All questions of a step are asked in one call of the approver, in call order.
func TestTheQuestionsOfAStepAreAskedTogether(t *testing.T) {
	var ran []string
	var batches [][]string
	a := build(t, agent.Config{
		Driver: agenttest.Script(calls("also ask", "add", "ask"), agenttest.Say("done")), Executor: asking(&ran),
		Approver: approvers(func(pending []*agent.Prepared) ([]agent.Approval, error) {
			batches = append(batches, lo.Map(pending, func(p *agent.Prepared, _ int) string { return p.Call.Name }))
			return lo.RepeatBy(len(pending), func(int) agent.Approval { return agent.Approval{Verdict: agent.Approve} }), nil
		}),
	})
	_, err := a.Run(t.Context(), agent.NewState(), agent.UserText("hello")).Get()
	require.NoError(t, err)
	assert.Equal(t, [][]string{{"also ask", "ask"}}, batches)
	assert.Equal(t, []string{"also ask", "add", "ask"}, ran)
}

func ExampleApproverFunc() {
	var ran []string
	person := agent.ApproverFunc(func(_ context.Context, _ agent.State, p *agent.Prepared) (agent.Approval, error) {
		fmt.Printf("%s wants to know: may %s run, although %s?\n", p.Questions()[0].By, p.Call.Name, p.Questions()[0].Reason)
		return agent.Approval{Verdict: agent.RejectAndContinue, By: "Ada", Reason: "use ls"}, nil
	})
	a := agent.New(agent.Config{
		Driver: agenttest.Script(agenttest.Call("ask", `{}`), agenttest.Say("all right")), Executor: asking(&ran), Approver: person,
	}).MustGet()
	final := a.Run(context.Background(), agent.NewState(), agent.UserText("tidy up")).MustGet()
	fmt.Print(agenttest.Transcript(final))
	// Output:
	// guard wants to know: may ask run, although it is risky?
	// user: tidy up
	// assistant calls ask {}
	// tool ask (not_executed): tool "ask": rejected by Ada: use ls
	// assistant: all right
}

// The events name the person who decided, or the deadline.
func TestApprovalsAreTold(t *testing.T) {
	waits := func(ctx context.Context, _ agent.State, _ *agent.Prepared) (agent.Approval, error) {
		<-ctx.Done()
		return agent.Approval{}, ctx.Err()
	}
	says := func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) {
		return agent.Approval{Verdict: agent.Approve, By: "ann", Reason: "fine"}, nil
	}
	for name, tc := range map[string]struct {
		approver agent.ApproverFunc
		question agent.Question
		want     agent.Approval
	}{
		"a person":                 {says, agent.Question{By: "guard"}, agent.Approval{Verdict: agent.Approve, By: "ann", Reason: "fine"}},
		"a deadline that approves": {waits, agent.Question{By: "guard", Within: time.Minute, OnTimeout: agent.Approve}, agent.Approval{Verdict: agent.Approve, Author: agent.AuthorDeadline, By: "timeout", Reason: "no answer came in time"}},
		"a deadline that does not": {waits, agent.Question{By: "guard", Within: time.Minute}, agent.Approval{Verdict: agent.RejectAndEnd, Author: agent.AuthorDeadline, By: "timeout", Reason: "no answer came in time"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				events := agenttest.Record()
				a := build(t, agent.Config{
					Driver: agenttest.Script(agenttest.Call("write", `{"n":1}`), agenttest.Say("done")), Executor: &wantsYes{question: tc.question},
					Approver: tc.approver, Observer: events,
				})
				require.NoError(t, a.Run(t.Context(), agent.NewState(), agent.UserText("hello")).Error())
				told := agenttest.Of[agent.ApprovalCompleted](events)
				require.Len(t, told, 1)
				assert.False(t, told[0].Approval.At.IsZero(), "it is told when the answer was given")
				assert.Equal(t, []agent.Approval{told[0].Approval}, told[0].Answers)
				told[0].Approval.At = time.Time{}
				assert.Equal(t, tc.want, told[0].Approval)
				assert.Equal(t, tc.want.Author == agent.AuthorDeadline, told[0].Approval.TimedOut())
				assert.Equal(t, "write", told[0].Call.Name)
				assert.Equal(t, "approval.completed", told[0].EventName())
				assert.Len(t, agenttest.Of[agent.ApprovalRequested](events), 1)
			})
		})
	}
}

// If a person was asked before the run was parked, there is no second event for the question, but one for the answer.
func TestStoredApprovalsAreTold(t *testing.T) {
	events := agenttest.Record()
	a := build(t, agent.Config{
		Driver: agenttest.Script(agenttest.Call("write", `{"n":1}`), agenttest.Say("done")), Executor: &wantsYes{question: agent.Question{By: "guard"}},
		Approver: agent.ParkApprover, Observer: events,
	})
	parked, err := a.Run(t.Context(), agent.NewState(), agent.UserText("hello")).Get()
	require.NoError(t, err)
	require.Len(t, agenttest.Of[agent.ApprovalRequested](events), 1)
	require.Empty(t, agenttest.Of[agent.ApprovalCompleted](events), "the answer comes later")
	answer := agent.Approval{Verdict: agent.Approve, By: "ann"}
	final, err := a.Resume(t.Context(), agenttest.WithApproval(parked, parked.Interventions()[0].CallID(), answer)).Get()
	require.NoError(t, err)
	assert.Equal(t, agent.StatusDone, final.Status())
	assert.Len(t, agenttest.Of[agent.ApprovalRequested](events), 1)
	told := agenttest.Of[agent.ApprovalCompleted](events)
	require.Len(t, told, 1)
	assert.Equal(t, answer.By, told[0].Approval.By)
	assert.False(t, told[0].Approval.TimedOut())
}
