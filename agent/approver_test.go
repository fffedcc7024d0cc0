package agent_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
)

// approving returns an agent whose model makes the calls, with an approver.
func approving(t *testing.T, x agent.Executor, approver agent.Approver, calls ...agent.ToolCall) *agent.Agent {
	t.Helper()
	a, err := agent.New(agent.Config{
		Name: "clerk", Executor: x, Approver: approver,
		Driver: agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
			if s.RunStepCount() == 0 {
				return agent.Step{Message: agent.Assistant("", calls...)}, nil
			}
			return agent.Step{Message: agent.Assistant("Done.")}, nil
		}),
	}).Get()
	require.NoError(t, err)
	return a
}

// An approver's panic does not escape the run: it approves nothing, and the run fails with it.
func TestAnApproverPanics(t *testing.T) {
	x := &wantsYes{}
	a := approving(t, x, agent.ApproverFunc(func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) { panic("boom") }), write("1"))
	var result error
	require.NotPanics(t, func() { result = a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Error() })
	require.ErrorContains(t, result, "asking for approval: the approver panicked: boom")
	assert.Empty(t, x.ran)
}

// A name says nothing about who decides: "timeout" is a name like others, and an approver cannot answer as if a deadline had passed.
func TestNamesAreNotMarkers(t *testing.T) {
	for name, c := range map[string]struct {
		answer agent.Approval
		says   string
	}{
		"a name":          {agent.Approval{Verdict: agent.Approve, By: "timeout"}, ""},
		"a forged author": {agent.Approval{Verdict: agent.Approve, By: "timeout", Author: agent.AuthorDeadline}, "as if a deadline had passed"},
	} {
		x := &wantsYes{question: agent.Question{By: "two", Quorum: 2, Within: time.Hour, OnTimeout: agent.Approve}}
		a := approving(t, x, agent.ApproverFunc(func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) { return c.answer, nil }), write("1"))
		err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Error()
		assert.Empty(t, x.ran, name)
		if c.says != "" {
			require.ErrorContains(t, err, c.says, name)
		}
		q := agent.Question{By: "two", Quorum: 2, Answers: []agent.Approval{{Verdict: agent.Approve, By: "timeout"}}}
		assert.Nil(t, q.Decision(), "one of two people")
	}
}

// An approver's answers to single questions count only where their authors may answer, and it cannot answer as if a deadline had passed there.
func TestAnswersToSingleQuestionsAreAdmitted(t *testing.T) {
	question := agent.Question{By: "pay", Approvers: []string{"cfo"}, Within: time.Hour, OnTimeout: agent.Approve}
	for name, c := range map[string]struct {
		given agent.Approval
		ran   int
	}{
		"an approver":       {verified("cfo"), 1},
		"another person":    {verified("bob"), 0},
		"a typed name":      {agent.Approval{Verdict: agent.Approve, By: "cfo"}, 0},
		"a forged deadline": {late(agent.Approve), 0},
		"a forged hook":     {agent.Approval{Verdict: agent.Approve, Author: agent.AuthorHook}, 0},
	} {
		x := &wantsYes{question: question}
		answered := question
		answered.Answers = []agent.Approval{c.given}
		a := approving(t, x, agent.ApproverFunc(func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) {
			return agent.Approval{Verdict: agent.Approve, Questions: agent.Questions{answered}}, nil
		}), write("1"))
		require.NoError(t, a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Error(), name)
		assert.Len(t, x.ran, c.ran, name)
	}
}

// What is asked again about a call has another ID, and so has everything that differs in a field.
func TestCardIDs(t *testing.T) {
	call := agent.ToolCall{ID: "c", Name: "pay", Arguments: `{"n":1}`}
	card := func(change func(i *agent.Intervention)) string {
		i := agent.Intervention{Original: call, Call: call, Round: 1, Questions: agent.Questions{{By: "q", Reason: "r"}}}
		change(&i)
		return i.WithID("run", 1).ID
	}
	same := card(func(*agent.Intervention) {})
	seen := map[string]string{}
	for name, change := range map[string]func(i *agent.Intervention){
		"same": func(*agent.Intervention) {}, "round": func(i *agent.Intervention) { i.Round++ }, "call": func(i *agent.Intervention) { i.Original.ID = "d" },
		"arguments": func(i *agent.Intervention) { i.Call.Arguments = `{"n":2}` }, "tool": func(i *agent.Intervention) { i.Call.Name = "send" },
		"asked for": func(i *agent.Intervention) { i.Original.Arguments = `{}` }, "schema": func(i *agent.Intervention) { i.Schema = "{}" },
		"description": func(i *agent.Intervention) { i.Description = "x" }, "begun": func(i *agent.Intervention) { i.Begun = true },
		"reason": func(i *agent.Intervention) { i.Questions[0].Reason = "s" }, "by": func(i *agent.Intervention) { i.Questions[0].By = "s" },
		"rule": func(i *agent.Intervention) { i.Questions[0].Rule = "s" }, "quorum": func(i *agent.Intervention) { i.Questions[0].Quorum = 2 },
		"approvers": func(i *agent.Intervention) { i.Questions[0].Approvers = []string{"a"} },
		"two names": func(i *agent.Intervention) { i.Questions[0].Approvers = []string{"a", "b"} },
		"required":  func(i *agent.Intervention) { i.Questions[0].Required = true },
		"kind":      func(i *agent.Intervention) { i.Questions[0].Kind = agent.QuestionDoubt },
		"gate":      func(i *agent.Intervention) { i.Questions[0].Gate = &agent.Gate{Kind: "file"} },
		"input":     func(i *agent.Intervention) { i.Questions[0].Input = &agent.InputRequest{Message: "m"} },
		"more":      func(i *agent.Intervention) { i.Questions = append(i.Questions, agent.Question{}) },
	} {
		id := card(change)
		assert.Empty(t, seen[id], "%s and %s", name, seen[id])
		seen[id] = name
		assert.Equal(t, name == "same", id == same, name)
	}
}

// A question has the same ID before and after it is stored, and each time it is asked about the same.
func TestQuestionIDs(t *testing.T) {
	q := agent.Question{
		Kind: agent.QuestionGate, By: "wait", Reason: "broken \xff\xfe <text>\u2028",
		Gate: &agent.Gate{Kind: "file", Data: json.RawMessage(`{ "path": "a<b" }`)},
	}
	data, err := json.Marshal(q)
	require.NoError(t, err)
	var stored agent.Question
	require.NoError(t, json.Unmarshal(data, &stored))
	assert.Equal(t, q.ID(), stored.ID())
	stored.Gate.Host, stored.Gate.Seen, stored.Within = "elsewhere", json.RawMessage(`{"size":7}`), time.Hour
	assert.Equal(t, q.ID(), stored.ID())
	stored.Gate.Data = json.RawMessage(`{"path":"c"}`)
	assert.NotEqual(t, q.ID(), stored.ID())
}
