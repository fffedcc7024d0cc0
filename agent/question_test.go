package agent_test

import (
	"encoding/json"
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

// A question that no state can hold is an error with the location.
func TestWrongQuestions(t *testing.T) {
	for asked, says := range map[string]string{
		`"id":"q","questions":[{"by":"guard"}]`:       "",
		`"questions":[{"by":"guard"}]`:                "/open_step/calls/0/asked/id: no id",
		`"id":"q"`:                                    "/open_step/calls/0/asked/questions: no questions",
		`"id":"q","questions":[{"kind":"vote"}]`:      `/open_step/calls/0/asked/questions/0/kind: unknown kind of question "vote"`,
		`"id":"q","questions":[{"within_ns":-1}]`:     "/open_step/calls/0/asked/questions/0/within_ns: the time for an answer is negative",
		`"id":"q","questions":[{"approver":"x"}]`:     "/open_step/calls/0/asked/questions/0/approver",
		`"id":"q","questions":[{}],"question":{}`:     "/open_step/calls/0/asked/question",
		`"id":"q","questions":[{}],"answer":{"by":1}`: "/open_step/calls/0/asked/answer",
	} {
		err := json.Unmarshal([]byte(`{"version":3,"status":"parked","open_step":{"reply":{"role":"assistant","calls":[{"id":"c","name":"w","arguments":""}]},`+
			`"calls":[{"asked":{"call":{"id":"c","name":"w","arguments":""},"prepared":"p","asked":"2026-05-04T12:00:00Z",`+asked+`}}]}}`), new(agent.State))
		if says == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, says)
	}
	require.ErrorContains(t, json.Unmarshal([]byte(`{"id":"q","questions":[{"kind":"vote"}]}`), new(agent.Intervention)), "unknown kind of question")
	require.ErrorContains(t, json.Unmarshal([]byte(`{"id":"q"}`), new(agent.Intervention)), "no questions")
}
