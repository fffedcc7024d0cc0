package agent_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
)

var (
	yes   = agent.Approval{Verdict: agent.Approve, By: "ada"}
	no    = agent.Approval{Verdict: agent.RejectAndEnd, By: "ada"}
	notIt = agent.Approval{Verdict: agent.RejectAndContinue, By: "bob"}
)

// The call runs when every question is approved; one rejection decides, and the stricter
// one counts.
func TestQuestionsDecision(t *testing.T) {
	answered := func(answers ...agent.Approval) agent.Question { return agent.Question{Answers: answers} }
	for name, c := range map[string]struct {
		questions agent.Questions
		want      *agent.Approval
	}{
		"no question":                       {nil, nil},
		"an open question":                  {agent.Questions{{}}, nil},
		"one of two approved":               {agent.Questions{answered(yes), {}}, nil},
		"all approved":                      {agent.Questions{answered(yes), answered(yes)}, &yes},
		"one rejected":                      {agent.Questions{{}, answered(notIt)}, &notIt},
		"the stricter rejection first":      {agent.Questions{answered(no), answered(notIt)}, &no},
		"the stricter rejection last":       {agent.Questions{answered(notIt), answered(yes), answered(no)}, &no},
		"a rejection and an approval":       {agent.Questions{answered(yes, notIt)}, &notIt},
		"an answer that decides nothing":    {agent.Questions{answered(agent.Approval{Verdict: agent.Park})}, nil},
		"an approval that is not the first": {agent.Questions{answered(agent.Approval{Verdict: agent.NobodyToAsk}, yes)}, &yes},
	} {
		assert.Equal(t, c.want, c.questions.Decision(), name)
	}
}

// The earliest deadline and the strictest verdict apply to all questions.
func TestQuestionsTimeout(t *testing.T) {
	q := func(within time.Duration, onTimeout agent.ApprovalVerdict) agent.Question {
		return agent.Question{Within: within, OnTimeout: onTimeout}
	}
	for name, c := range map[string]struct {
		questions agent.Questions
		within    time.Duration
		onTimeout agent.ApprovalVerdict
	}{
		"no question":                         {nil, 0, agent.RejectAndEnd},
		"one":                                 {agent.Questions{q(time.Hour, agent.Approve)}, time.Hour, agent.Approve},
		"no deadline is no approval":          {agent.Questions{q(time.Second, agent.Approve), q(0, agent.RejectAndEnd)}, time.Second, agent.RejectAndEnd},
		"reject before the rest":              {agent.Questions{q(1, agent.Approve), q(3, agent.RejectAndEnd), q(2, agent.RejectAndContinue)}, 1, agent.RejectAndEnd},
		"reject and go on before an approval": {agent.Questions{q(5, agent.RejectAndContinue), q(2, agent.Approve)}, 2, agent.RejectAndContinue},
	} {
		assert.Equal(t, c.within, c.questions.Within(), name)
		assert.Equal(t, c.onTimeout, c.questions.OnTimeout(), name)
	}
}

// Changed arguments void the answers to the call with its old arguments, and a call in
// doubt cannot be changed.
func TestInterventionWithAnswer(t *testing.T) {
	byHook := agent.Approval{Verdict: agent.Approve, By: "hook", Arguments: `{}`}
	i := agent.Intervention{
		Call:      agent.ToolCall{ID: "c", Name: "write", Arguments: `{}`},
		Questions: agent.Questions{{By: "a", Answers: []agent.Approval{byHook}}, {By: "b"}},
	}
	as := i.WithAnswer(yes)
	assert.Equal(t, []agent.Approval{byHook}, as.Questions[0].Answers, "an answer is one to the open questions")
	assert.Equal(t, []agent.Approval{yes}, as.Questions[1].Answers)
	assert.Nil(t, i.Answer(), "the receiver stays as it was")
	assert.Equal(t, as, as.WithAnswer(no), "it was decided")

	edited := agent.Approval{Verdict: agent.Approve, By: "ada", Arguments: `{"a":2}`}
	as = i.WithAnswer(edited)
	assert.Equal(t, []agent.Approval{edited}, as.Questions[0].Answers, "the hook approved something else")
	assert.Equal(t, &edited, as.Answer())

	i.Questions = append(i.Questions, agent.Question{Kind: agent.QuestionDoubt, By: "doubt"})
	assert.Equal(t, i, i.WithAnswer(edited), "only the same call can be repeated")
	assert.Equal(t, &yes, i.WithAnswer(yes).Answer())
	assert.Equal(t, i, i.WithAnswer(agent.Approval{Verdict: agent.Park}))
}

// States of version 1, with a single question and its answer, are read, and written in
// the current version.
func TestStateOfVersionOne(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "parked-v1.json"))
	require.NoError(t, err)
	check := func(s agent.State) {
		t.Helper()
		list := s.Interventions()
		require.Len(t, list, 3)
		assert.Equal(t, agent.Questions{{By: "guard", Reason: "it writes", Within: time.Minute, OnTimeout: agent.RejectAndContinue}}, list[0].Questions)
		assert.Nil(t, list[0].Answer())
		edited := agent.Approval{Verdict: agent.Approve, By: "ada", Arguments: `{"a":4}`}
		assert.Equal(t, agent.Questions{{By: "guard", Reason: "it writes", Answers: []agent.Approval{edited}}}, list[1].Questions)
		assert.Equal(t, &edited, list[1].Answer())
		assert.Equal(t, agent.Questions{{}}, list[2].Questions, "a call that is asked about has a question")
		assert.True(t, s.Waiting())
	}
	var old agent.State
	require.NoError(t, json.Unmarshal(text, &old))
	check(old)
	now, err := json.Marshal(old)
	require.NoError(t, err)
	assert.Contains(t, string(now), `"version":3`)
	assert.NotContains(t, string(now), `"question":`)
	var again agent.State
	require.NoError(t, json.Unmarshal(now, &again))
	check(again)

	changes, err := agent.Checkpoint(old).Changes(agent.State{})
	require.NoError(t, err)
	restored, err := agent.Restore(changes)
	require.NoError(t, err)
	check(restored)

	for wrong, names := range map[string]string{
		`"questions":[{"kind":"vote"}]`:              "kind",
		`"questions":[{"within_ns":-1}]`:             "within_ns",
		`"questions":[{}],"question":{"by":"guard"}`: "question",
		`"questions":[{"approver":"x"}]`:             "approver",
	} {
		spoilt := strings.Replace(string(text), `"prepared": "p3"`, `"prepared": "p3", `+wrong, 1)
		assert.ErrorContains(t, json.Unmarshal([]byte(spoilt), &again), names)
	}
}

// An intervention in the old form, with a single question, can be read.
func TestInterventionOfVersionOne(t *testing.T) {
	var i agent.Intervention
	require.NoError(t, json.Unmarshal([]byte(`{"original":{"id":"c","name":"w","arguments":"{}"},"call":{"id":"c","name":"w","arguments":"{}"},`+
		`"question":{"by":"guard","reason":"why"},"asked":"2026-05-04T12:00:00Z","answer":{"verdict":"reject","by":"ada"}}`), &i))
	assert.Equal(t, "w", i.Call.Name)
	assert.Equal(t, agent.Questions{{By: "guard", Reason: "why", Answers: []agent.Approval{no}}}, i.Questions)
	text, err := json.Marshal(i)
	require.NoError(t, err)
	var again agent.Intervention
	require.NoError(t, json.Unmarshal(text, &again))
	assert.Equal(t, i, again)
	require.Error(t, json.Unmarshal([]byte(`{"questions":[{"kind":"vote"}]}`), &i))
}
