package action_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/hooks"
)

// A value that can never be there is found before the action is needed.
func TestCheckValues(t *testing.T) {
	vars := map[string]any{"limit": 3, "mail": map[string]any{"to": "ann"}}
	preToolUse := func(d action.Declared) error { return action.CheckValues(d, hooks.AtPreToolUse, false, vars) }
	stop := func(d action.Declared) error { return action.CheckValues(d, hooks.AtStop, false, vars) }
	stepEnd := func(d action.Declared) error { return action.CheckValues(d, hooks.AtStepEnd, false, vars) }
	body := func(text string) action.Declared { return action.HTTP{Body: map[string]any{"text": []any{text}}} }
	for text, check := range map[string]func(action.Declared) error{
		"${SESSION} ${args.path.0} ${arguments} ${tool} ${run.agent} ${usage.cost}": preToolUse,
		"${calls.read_file.denied} ${vars.limit} ${vars.mail.to} ${TOKEN}":          preToolUse,
		"${end.reason} ${answer} ${continuations_left}":                             stop,
		"${reply.tools.0} ${duration_ms} ${step_kind}":                              stepEnd,
	} {
		assert.NoError(t, check(body(text)), text)
	}
	for text, tc := range map[string]struct {
		check func(action.Declared) error
		want  string
	}{
		"${result.text}":        {preToolUse, "body: ${result.text}: a request at PreToolUse has no result"},
		"${tool}":               {stop, "body: ${tool}: a request at Stop has no tool"},
		"${args.path}":          {stepEnd, "body: ${args.path}: a request at StepEnd has no arguments"},
		"${usage.dollars}":      {stop, "body: ${usage.dollars}: usage has no dollars: available: tokens, input_tokens"},
		"${calls.bash.allowed}": {stop, "calls.bash has no allowed: available: calls, ok, denied"},
		"${answer.text}":        {stop, "body: ${answer.text}: answer has no text"},
		"${vars.limits}":        {stop, "body: ${vars.limits}: undefined variable limits: available: limit, mail"},
		"${reslt.text}":         {stop, "body: ${reslt.text}: a request has no reslt: available: version, hook"},
		"${decided}":            {stop, "body: ${decided}: a request at Stop has no decided"},
	} {
		err := tc.check(body(text))
		assert.ErrorContains(t, err, tc.want)
	}
	assert.NoError(t, action.CheckValues(body("${decided.decision}"), hooks.AtStop, true, nil))

	const wrong = "${nowhere.else}"
	for field, d := range map[string]action.Declared{
		"url":            action.HTTP{URL: "https://example.com/" + wrong},
		"headers.Accept": action.HTTP{Headers: map[string]string{"Accept": wrong}},
		"reason":         action.Gate{Reason: wrong},
		"webhook.url":    action.Gate{Webhook: &action.HTTP{URL: wrong}},
		"arguments":      action.MCPTool{Arguments: map[string]any{"x": wrong}},
		"input":          action.Agent{Input: map[string]any{"x": wrong}},
		"inputs":         action.Spawn{Inputs: map[string]any{"x": wrong}},
	} {
		fields := action.Fields(preToolUse(d))
		if assert.Len(t, fields, 1, field) {
			assert.Equal(t, field, fields[0].Field)
		}
	}
}
