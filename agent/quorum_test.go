package agent_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
)

// verified returns an approval by a person whose identity was verified.
func verified(identity string, roles ...string) agent.Approval {
	return agent.Approval{Verdict: agent.Approve, By: identity, Identity: identity, Roles: roles}
}

// late is the answer of a passed deadline.
func late(verdict agent.ApprovalVerdict) agent.Approval {
	return agent.Approval{Verdict: verdict, Author: agent.AuthorDeadline, By: "timeout"}
}

// A question with approvers or a quorum admits verified people only, and a gate its own event only.
func TestQuestionAdmits(t *testing.T) {
	restricted := agent.Question{By: "pay", Approvers: []string{"ann", "finance"}}
	two := agent.Question{By: "pay", Quorum: 2}
	gate := agent.Question{Kind: agent.QuestionGate, By: "wait", Gate: &agent.Gate{Kind: "file"}}
	ofGate := agent.Approval{Verdict: agent.Approve, Author: agent.AuthorEvent, Covers: []string{gate.ID()}}
	for name, c := range map[string]struct {
		question agent.Question
		answer   agent.Approval
		want     bool
	}{
		"anyone, for an ordinary question":    {agent.Question{By: "pay"}, yes, true},
		"the event of a gate, for a question": {agent.Question{By: "wait"}, ofGate, false},
		"an approver":                         {restricted, verified("ann"), true},
		"a role":                              {restricted, verified("bob", "staff", "finance"), true},
		"another person":                      {restricted, verified("bob", "staff"), false},
		"a name that was only typed":          {restricted, agent.Approval{Verdict: agent.Approve, By: "ann"}, false},
		"a role without an identity":          {restricted, agent.Approval{Verdict: agent.Approve, Roles: []string{"finance"}}, false},
		"an empty role":                       {agent.Question{By: "pay", Approvers: []string{""}}, verified("bob", ""), false},
		"a rejection by another person":       {restricted, agent.Approval{Verdict: agent.RejectAndEnd, Identity: "bob"}, false},
		"a passed deadline":                   {restricted, late(agent.Approve), true},
		"anyone verified, for a quorum":       {two, verified("bob"), true},
		"a person, for a quorum":              {two, yes, false},
		"a quorum of one":                     {agent.Question{Quorum: 1}, yes, true},
		"its event, for a gate":               {gate, ofGate, true},
		"an event that names no gate":         {gate, agent.Approval{Verdict: agent.Approve, Author: agent.AuthorEvent, By: "wait"}, false},
		"another event, for a gate":           {gate, agent.Approval{Verdict: agent.Approve, Author: agent.AuthorEvent, By: "wait", Covers: []string{two.ID()}}, false},
		"an event that names a question":      {two, agent.Approval{Verdict: agent.Approve, Author: agent.AuthorEvent, Identity: "bob", Covers: []string{two.ID()}}, false},
		"an approval of a person, for a gate": {gate, verified("ann"), false},
		"a rejection, for a gate":             {gate, notIt, true},
		"a passed deadline, for a gate":       {gate, late(agent.Approve), true},
	} {
		assert.Equal(t, c.want, c.question.Admits(c.answer), name)
		assert.Equal(t, c.want, agent.Questions{c.question}.Admit(c.answer), name)
	}
}

// A quorum counts people, not answers. One rejection decides, and so does the deadline.
func TestQuorum(t *testing.T) {
	for name, c := range map[string]struct {
		answers []agent.Approval
		want    agent.ApprovalVerdict
		open    bool
	}{
		"one":                      {[]agent.Approval{verified("ann")}, 0, true},
		"the same twice":           {[]agent.Approval{verified("ann"), verified("ann")}, 0, true},
		"two":                      {[]agent.Approval{verified("ann"), verified("bob")}, agent.Approve, false},
		"one that was not checked": {[]agent.Approval{verified("ann"), yes}, 0, true},
		"a rejection":              {[]agent.Approval{verified("ann"), {Verdict: agent.RejectAndContinue, Identity: "bob"}}, agent.RejectAndContinue, false},
		"the deadline approves":    {[]agent.Approval{verified("ann"), late(agent.Approve)}, agent.Approve, false},
		"the deadline rejects":     {[]agent.Approval{verified("ann"), late(agent.RejectAndEnd)}, agent.RejectAndEnd, false},
	} {
		questions := agent.Questions{{By: "pay", Quorum: 2}}
		for _, a := range c.answers {
			questions = questions.WithAnswer(a)
		}
		decided := questions.Decision()
		require.Equal(t, c.open, decided == nil, name)
		if decided != nil {
			assert.Equal(t, c.want, decided.Verdict, name)
		}
	}
}

// An answer goes to the open questions that admit it, and the call runs when all are decided.
func TestWithAnswerOfSeveralPeople(t *testing.T) {
	questions := agent.Questions{
		{By: "plain"}, {By: "pay", Approvers: []string{"finance"}, Quorum: 2},
		{Kind: agent.QuestionGate, By: "wait", Gate: &agent.Gate{Kind: "file"}},
	}
	after := questions.WithAnswer(yes)
	assert.Equal(t, []int{1, 0, 0}, lo.Map(after, func(q agent.Question, _ int) int { return len(q.Answers) }))
	for _, identity := range []string{"ann", "ann", "bob"} {
		assert.Nil(t, after.Decision())
		after = after.WithAnswer(verified(identity, "finance"))
	}
	assert.Equal(t, []int{1, 2, 0}, lo.Map(after, func(q agent.Question, _ int) int { return len(q.Answers) }))
	assert.Nil(t, after.Decision(), "the gate is closed")
	after = after.WithAnswer(agent.Approval{Verdict: agent.Approve, Author: agent.AuthorEvent, Covers: []string{after[2].ID()}})
	require.NotNil(t, after.Decision())
	assert.Equal(t, agent.Approve, after.Decision().Verdict)
	assert.Empty(t, questions[0].Answers, "the receiver stays as it was")
}

// No set of answers with fewer identities than the quorum approves, and with as many it does unless one rejects.
func TestNoApprovalBelowTheQuorum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		quorum := rapid.IntRange(2, 4).Draw(t, "quorum")
		approvers := rapid.SampledFrom([][]string{nil, {"a", "b", "c", "d"}, {"team"}}).Draw(t, "approvers")
		questions := agent.Questions{{By: "pay", Approvers: approvers, Quorum: quorum}}
		people, rejected := map[string]bool{}, false
		for range rapid.IntRange(0, 12).Draw(t, "answers") {
			a := agent.Approval{
				Verdict:  rapid.SampledFrom([]agent.ApprovalVerdict{agent.Approve, agent.Approve, agent.Approve, agent.Park, agent.RejectAndContinue}).Draw(t, "verdict"),
				By:       rapid.SampledFrom([]string{"a", "b", "x"}).Draw(t, "by"),
				Identity: rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e"}).Draw(t, "identity"),
				Roles:    rapid.SampledFrom([][]string{nil, {"team"}, {"other"}}).Draw(t, "roles"),
				Author:   rapid.SampledFrom([]agent.Author{"", "", "", agent.AuthorEvent}).Draw(t, "author"),
				Covers:   rapid.SampledFrom([][]string{nil, {questions[0].ID()}}).Draw(t, "covers"),
			}
			admitted := a.Author == agent.AuthorPerson && a.Identity != "" &&
				(approvers == nil || lo.Contains(approvers, a.Identity) || lo.Some(approvers, a.Roles))
			open := !rejected && len(people) < quorum
			questions = questions.WithAnswer(a)
			switch {
			case !admitted || !open:
			case a.Verdict == agent.Approve:
				people[a.Identity] = true
			case a.Verdict == agent.RejectAndContinue:
				rejected = true
			}
			decided := questions.Decision()
			approved := decided != nil && decided.Verdict == agent.Approve
			if want := !rejected && len(people) >= quorum; approved != want {
				t.Fatalf("approved %t, want %t: %d of %d people, rejected %t", approved, want, len(people), quorum, rejected)
			}
		}
	})
}

// askingAbout returns an executor that asks a question about every call.
func askingAbout(q agent.Question, ran *[]string) agent.Executor {
	return executor{
		prepare: func(_ context.Context, _ agent.State, c *agent.ToolCall) (*agent.Prepared, error) {
			p := &agent.Prepared{Original: c, Call: c, Disposition: agent.DisposeAsk}
			p.SetQuestions(agent.Questions{q})
			return p, nil
		},
		execute: func(_ context.Context, _ agent.State, p *agent.Prepared) (*agent.ToolResult, error) {
			*ran = append(*ran, p.Call.Arguments)
			return &agent.ToolResult{Content: agent.TextContent("ran")}, nil
		},
	}
}

// The answer of a person at hand satisfies neither approvers nor a quorum nor a gate, and the model is told why. Without
// a person to ask, it is told the same.
func TestAPersonAtHandDoesNotSuffice(t *testing.T) {
	restricted := agent.Question{By: "guard", Reason: "it pays", Approvers: []string{"finance"}, Quorum: 2}
	gate := agent.Question{Kind: agent.QuestionGate, By: "guard", Gate: &agent.Gate{Kind: "file"}}
	for name, c := range map[string]struct {
		question agent.Question
		answer   agent.Approval
		want     string
	}{
		"a typed name":      {restricted, agent.Approval{Verdict: agent.Approve, By: "finance"}, "it needs 2 approvals by finance"},
		"one person":        {restricted, verified("ann", "finance"), "it needs 2 approvals by finance"},
		"an edit":           {restricted, agent.Approval{Verdict: agent.Approve, Identity: "ann", Roles: []string{"finance"}, Arguments: `{"n":2}`}, "does not suffice"},
		"a closed gate":     {gate, yes, "it waits for a file"},
		"no person":         {restricted, agent.Approval{Verdict: agent.NobodyToAsk}, "it needs 2 approvals by finance"},
		"no person, a gate": {gate, agent.Approval{Verdict: agent.NobodyToAsk}, "it waits for a file"},
	} {
		t.Run(name, func(t *testing.T) {
			var ran []string
			a := build(t, agent.Config{
				Driver: agenttest.Script(calls("pay"), agenttest.Say("done")), Executor: askingAbout(c.question, &ran),
				Approver: agent.ApproverFunc(func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) { return c.answer, nil }),
			})
			final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("pay")).Get()
			require.NoError(t, err)
			assert.Empty(t, ran)
			assert.Equal(t, []string{"call_1_1 not_executed nobody_to_ask"}, answers(final))
			assert.Contains(t, final.Message(2).Text(), c.want)
			assert.Contains(t, final.Message(2).Text(), "only a durable run can wait for that")
		})
	}
}

// LH-63: two people approve a parked call. A third answer has no effect, and an edit of the arguments neither.
func TestAParkedCallWaitsForItsQuorum(t *testing.T) {
	var ran []string
	a := build(t, agent.Config{
		Driver:   agenttest.Script(calls("pay"), agenttest.Say("done")),
		Executor: askingAbout(agent.Question{By: "guard", Quorum: 2, Within: time.Hour}, &ran), Approver: agent.ParkApprover,
	})
	s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("pay")).Get()
	require.NoError(t, err)
	id := s.Interventions()[0].CallID()
	edited := verified("cid")
	edited.Arguments = `{"n":2}`
	for i, answer := range []agent.Approval{yes, edited, verified("ann"), verified("ann"), verified("bob")} {
		require.True(t, s.Waiting(), fmt.Sprint("before answer ", i))
		s = agenttest.WithApproval(s, id, answer)
	}
	require.False(t, s.Waiting())
	final, err := a.Resume(t.Context(), s).Get()
	require.NoError(t, err)
	assert.Equal(t, agent.StatusDone, final.Status())
	assert.Equal(t, []string{`{}`}, ran)
}
