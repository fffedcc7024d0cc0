package policy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
)

// AP-14, AP-16, AP-25, CO-29: at the points of pipelines and around the runs of blueprints, what an entry leaves open is what the
// document that they come from says. At other points it is the action's own.
func TestDefaultsOfSourceDocuments(t *testing.T) {
	type compiled struct {
		limit   time.Duration // of the work, without the time that it has to end
		tries   int           // of the whole action
		resends int           // of the web request alone
		delay   time.Duration // between these
	}
	const web = "url: 'https://example.com/x'"
	for name, tc := range map[string]struct {
		kind  Kind
		entry string
		want  compiled
	}{
		"a shell of a pipeline":             {Pipelines, "on_error: {type: shell, command: 'true'}", compiled{limit: 300 * time.Second}},
		"a shell with a time limit":         {Pipelines, "on_error: {type: shell, command: 'true', timeout: 7}", compiled{limit: 7 * time.Second}},
		"a command of a pipeline":           {Pipelines, "on_error: {type: command, argv: ['true']}", compiled{limit: 600 * time.Second}},
		"a shell of an agent":               {Policies, "StepEnd: {type: shell, command: 'true'}", compiled{limit: 600 * time.Second}},
		"a shell that is tried again":       {Pipelines, "on_error: {type: shell, command: 'true', await: true, on_failure: retry}", compiled{limit: 300 * time.Second, tries: 3}},
		"a shell that is not":               {Pipelines, "on_error: {type: shell, command: 'true', await: true, on_failure: retry, retries: 0}", compiled{limit: 300 * time.Second}},
		"a pipeline that a pipeline spawns": {Pipelines, "on_error: {type: spawn, pipeline: p, on_failure: retry}", compiled{limit: time.Hour}},
		"a spawn that is tried again":       {Pipelines, "on_error: {type: spawn, pipeline: p, on_failure: retry, retries: 2}", compiled{limit: time.Hour, tries: 2}},
		"a pipeline that an agent spawns":   {Policies, "StepEnd: {type: spawn, pipeline: p, on_failure: retry}", compiled{limit: time.Hour, tries: 3}},
		"a webhook of a pipeline":           {Pipelines, "on_error: {type: webhook, " + web + "}", compiled{4*30*time.Second + 3*5*time.Second, 0, 3, 5 * time.Second}},
		"a webhook with retries":            {Pipelines, "on_error: {type: webhook, " + web + ", retries: 1, retry_delay: 2}", compiled{62 * time.Second, 0, 1, 2 * time.Second}},
		"a webhook without retries":         {Pipelines, "on_error: {type: webhook, " + web + ", retries: 0}", compiled{30 * time.Second, 0, 0, 5 * time.Second}},
		"a webhook that is waited for":      {Pipelines, "on_error: {type: webhook, " + web + ", await: true, retries: 2, on_failure: abort}", compiled{time.Hour, 0, 2, 5 * time.Second}},
		"a webhook that is tried again":     {Pipelines, "on_error: {type: webhook, " + web + ", await: true, on_failure: retry, retries: 2}", compiled{time.Hour, 2, 0, 0}},
		"on_error is on_failure":            {Blueprints, "on_run_start: {type: http, " + web + ", on_error: retry, retries: 2}", compiled{300 * time.Second, 2, 0, 0}},
		"a command of a blueprint":          {Blueprints, "on_run_start: {type: command, argv: ['true']}", compiled{limit: 300 * time.Second}},
		"a shell of a blueprint":            {Blueprints, "on_result: {type: shell, command: 'true'}", compiled{limit: 300 * time.Second}},
		"a request of a blueprint":          {Blueprints, "on_run_finish: {type: http, " + web + "}", compiled{300 * time.Second, 0, 0, 5 * time.Second}},
		"a request that is not awaited":     {Blueprints, "on_error: {type: webhook, " + web + ", mode: async}", compiled{300 * time.Second, 0, 0, 5 * time.Second}},
		"a blueprint with a time limit":     {Blueprints, "on_timeout: {type: command, argv: ['true'], timeout_seconds: 7}", compiled{limit: 7 * time.Second}},
		"a person of a blueprint":           {Blueprints, "on_run_start: {type: webhook, " + web + ", await: true}", compiled{time.Hour, 0, 0, 5 * time.Second}},
		"a tool call of a blueprint":        {Blueprints, "on_tool_call: {type: command, argv: ['true']}", compiled{limit: 600 * time.Second}},
		"a webhook of an agent":             {Policies, "StepEnd: {type: webhook, " + web + ", observe: true, await: false}", compiled{30 * time.Second, 0, 0, 5 * time.Second}},
		"a request with retries":            {Policies, "StepEnd: {type: http, " + web + ", retries: 3}", compiled{4*30*time.Second + 3*5*time.Second, 0, 3, 5 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			head := map[Kind]string{Policies: "policy: p\n"}[tc.kind]
			p, err := parseKind(tc.kind, "file.yaml", []byte(head+"hooks:\n  "+tc.entry), Options{})
			require.NoError(t, err)
			require.Len(t, p.rules, 1)
			r := p.rules[0]
			request, _ := r.task.action.(action.HTTP)
			if gate, ok := r.task.action.(action.Gate); ok {
				request = *gate.Webhook
			}
			ending := action.Func{Timeout: time.Second}.Limit() - time.Second
			assert.Equal(t, tc.want, compiled{r.task.action.Limit() - ending, r.failure.retries, request.Retries, request.RetryDelay})
		})
	}
}

// A webhook that waits at a point of pipelines listens on the port of the source document, on which a proxy can rely.
func TestCallbackPort(t *testing.T) {
	for name, tc := range map[string]struct {
		kind  Kind
		entry string
		want  int
	}{
		"of a pipeline":          {Pipelines, "on_stage_complete: {type: webhook, url: 'https://example.com/x', await: true}", 8765},
		"of a pipeline, changed": {Pipelines, "on_stage_complete: {type: webhook, url: 'https://example.com/x', await: true, callback_port: 9000}", 9000},
		"in a policy, at a point of pipelines": {
			Policies, "StageComplete: {type: webhook, url: 'https://example.com/x', await: true}", 8765,
		},
		"of an agent": {Policies, "PreToolUse: {id: ask, type: webhook, url: 'https://example.com/x', await: true}", 0},
		"a gate":      {Pipelines, "on_stage_complete: {id: ask, type: gate, by: callback, webhook: {url: 'https://example.com/x'}}", 0},
	} {
		t.Run(name, func(t *testing.T) {
			head := map[Kind]string{Policies: "policy: p\n"}[tc.kind]
			p, err := parseKind(tc.kind, "file.yaml", []byte(head+"hooks:\n  "+tc.entry), Options{})
			require.NoError(t, err)
			require.Len(t, p.rules, 1)
			gate, ok := p.rules[0].task.action.(action.Gate)
			require.True(t, ok)
			assert.Equal(t, tc.want, gate.Port)
		})
	}
}

// What has no use for retries refuses them, and no rule has more than a hundred.
func TestRetriesThatCount(t *testing.T) {
	for entry, want := range map[string]string{
		"{type: shell, command: 'true', retries: 2}":                           "retries requires on_failure: retry",
		"{type: http, url: 'https://example.com', retries: 2, then: open}":     "then requires on_failure: retry",
		"{type: http, url: 'https://example.com', retries: 101}":               "expected a whole number from 0 to 100",
		"{type: shell, command: 'true', on_failure: retry, retries: -1}":       "expected a whole number from 0 to 100",
		"{type: http, url: 'https://example.com', retries: 1, retry_delay: 0}": "expected a time above zero",
		"{type: agent, agent_name: a, retries: 0}":                             "retries requires on_failure: retry",
	} {
		_, err := parseKind(Policies, "file.yaml", []byte("policy: p\nhooks:\n  StepEnd: "+entry), Options{})
		require.Error(t, err, entry)
		assert.Contains(t, err.Error(), want, entry)
	}
}
