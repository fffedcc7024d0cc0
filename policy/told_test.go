package policy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
	"github.com/grapnel-go/grapnel/policy"
)

// notes keeps the JSON form of what funcs were told, by point.
type notes struct {
	mu   sync.Mutex
	told map[hooks.PointName][]string
}

func (n *notes) host() policy.Options {
	n.told = map[hooks.PointName][]string{}
	return policy.Options{Host: action.Host{Funcs: map[string]action.Body{
		"note": func(_ context.Context, r *action.Request) (*action.Decision, error) {
			text, err := json.Marshal(r)
			n.mu.Lock()
			defer n.mu.Unlock()
			n.told[r.Point] = append(n.told[r.Point], string(text))
			return nil, err
		},
	}}}
}

// assertTold checks members of the last request at a point.
func (n *notes) assertTold(t *testing.T, at hooks.PointName, want string) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	require.NotEmpty(t, n.told[at], at)
	text := n.told[at][len(n.told[at])-1]
	var got, members map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &got))
	require.NoError(t, json.Unmarshal([]byte(want), &members))
	for name, value := range members {
		assert.Equal(t, value, got[name], "%s: %s", at, name)
	}
	for name := range got { // what is told can be named in a text
		_, err := policy.Parse("told.yaml", fmt.Appendf(nil, `policy: p
variables: {x: 1}
hooks: {%s: {type: http, url: 'https://example.com', observe: true, await: false, body: "${%s}"}}
`, at, name), policy.Options{})
		assert.NoError(t, err)
	}
}

// LH-56, LH-67, LH-79: a declared hook receives the data that a Go hook has at its point.
func TestWhatActionsAreToldAtTheirPoints(t *testing.T) {
	n := &notes{}
	p := load(t, `
policy: p
hooks:
  InterventionRequested: {type: func, func: note, observe: true}
  InterventionResolved: {type: func, func: note}
  InterventionStopped: {type: func, func: note}
  PreSubagent: {type: func, func: note, observe: true}
  PostSubagent: {type: func, func: note, observe: true}
  SubagentFailed: {type: func, func: note}
  StageComplete: {type: func, func: note, await: true}
  IterationFailed: {type: func, func: note, await: true}
  SessionComplete: {type: func, func: note, await: true}
`, n.host())
	for _, at := range []hookstest.Moment{
		hookstest.Intervention("pay", `{"to":"bob"}`),
		hookstest.InterventionAnswer("pay", `{"to":"bob"}`, agent.Approval{Verdict: agent.RejectAndContinue, By: "ann", Reason: "too much"}),
		hookstest.InterventionStopped("pay", `{"to":"bob"}`, "no"),
		hookstest.SubagentResult("helper", "look", "seen"),
		hookstest.Pipeline(hooks.StageComplete, hooks.Pipeline{Name: "work", Reason: "all done"}),
		hookstest.Pipeline(hooks.SessionComplete, hooks.Pipeline{Name: "work", Reason: "max iterations"}),
		hookstest.Pipeline(hooks.IterationFailed, hooks.Pipeline{Name: "work", Err: assert.AnError}),
	} {
		fire(t, p, at)
	}
	const asked = `"approvals":[{"call_id":"call_1","tool":"pay","arguments":{"to":"bob"}`
	n.assertTold(t, hooks.InterventionRequested, `{"tool":"pay"}`)
	n.assertTold(t, hooks.InterventionResolved, `{"call_id":"call_1",`+asked+`,"question":"a person must look at it","action":"reject_and_continue","by":"ann","reason":"too much"}]}`)
	n.assertTold(t, hooks.InterventionStopped, `{"call_id":"call_1"}`)
	n.assertTold(t, hooks.PostSubagent, `{"subagent":{"agent":"helper","instruction":"look","result":"seen","status":"done"}}`)
	n.assertTold(t, hooks.StageComplete, `{"pipeline":{"name":"work","reason":"all done"}}`)
	n.assertTold(t, hooks.SessionComplete, `{"pipeline":{"name":"work","reason":"max iterations"}}`)
	n.assertTold(t, hooks.IterationFailed, `{"error":"`+assert.AnError.Error()+`"}`)
}

// LH-56: usage, cost, attempts, tools and the end are there as the run goes.
func TestWhatActionsAreToldOfARun(t *testing.T) {
	n := &notes{}
	p := load(t, `
policy: p
hooks:
  PreToolUse: {type: func, func: note, observe: true}
  PostToolUse: {type: func, func: note, observe: true, when: 'result.attempts == 1'}
  PostInference: {type: func, func: note, observe: true, when: 'reply.finish_reason == "length"'}
  StepEnd: {type: func, func: note, observe: true, when: 'usage.tokens == 42 && usage.reasoning_tokens == 2 && usage.cache_read_tokens == 4'}
  Stop: {type: func, func: note, observe: true}
  ExecutionEnd: {type: func, func: note, when: 'end.source == "agent"'}
`, n.host())
	run(t, p, []string{"read"},
		agenttest.Call("read", `{"path":"a"}`).Call("read", `{"path":"b"}`).
			WithUsage(agent.Usage{InputTokens: 10, OutputTokens: 5, CacheReadTokens: 4, ReasoningTokens: 2}),
		agenttest.Say("do").WithFinish(agent.FinishLength).WithUsage(agent.Usage{InputTokens: 20, OutputTokens: 7}))
	const calls = `"calls":{"read":{"calls":2,"ok":2,"denied":0}}`
	n.assertTold(t, hooks.PreToolUse, `{"tool":"read"}`)
	n.assertTold(t, hooks.PostToolUse, `{"result":{"text":"ran {\"path\":\"b\"}","status":"executed","attempts":1}}`)
	n.assertTold(t, hooks.StepEnd, `{"step_kind":"final_response","should_continue":false,`+calls+`,
		"usage":{"tokens":42,"input_tokens":30,"output_tokens":12,"cache_read_tokens":4,"cache_write_tokens":0,"reasoning_tokens":2}}`)
	n.assertTold(t, hooks.Stop, `{"end":{"reason":"finish_reason","message":"the reply was cut at its token limit","source":"agent",
		"details":{"finishReason":"length"}},`+calls+`}`)
	n.assertTold(t, hooks.ExecutionEnd, `{"status":"done",`+calls+`}`)
	require.Len(t, n.told[hooks.PostInference], 1, "of the reply that was cut")
	assert.Contains(t, n.told[hooks.PostInference][0], `"finish_reason":"length"`)
	assert.Len(t, n.told[hooks.StepEnd], 1, "of the step after which so much was used")
	assert.NotContains(t, n.told[hooks.PreToolUse][0], `"reply"`, "what a point does not know is left out")
	assert.NotContains(t, n.told[hooks.PreToolUse][0], `"calls"`, "no step was recorded yet")
}

// A name that belongs to another point is an error, like any unknown name.
func TestFactsOfOtherPoints(t *testing.T) {
	for when, at := range map[string]string{
		"step_duration > duration('1s')": "PreToolUse", "result.attempts > 1": "PreToolUse", "reply.model == 'x'": "Stop",
		"approvals.exists(a, a.action == 'reject')": "StepEnd", "subagent.status == 'done'": "PreSubagent", "end.source == 'x'": "StepEnd",
		"usage.cached > 1": "StepEnd",
	} {
		_, err := policy.Parse("policy.yaml", []byte("policy: p\nhooks:\n  "+at+": {type: func, func: f, observe: true, when: \""+when+"\"}"), policy.Options{})
		require.Error(t, err, when)
		assert.Contains(t, err.Error(), "policy.yaml:3:", when)
	}
	_, err := policy.Parse("policy.yaml", []byte("policy: p\nhooks:\n  InterventionResolved: {type: func, func: f, when: \"approvals.exists(a, a.action == 'reject' && a.by == 'ann')\"}"), policy.Options{})
	assert.NoError(t, err)
}
