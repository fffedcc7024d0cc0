package coordinator_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/wire"
)

// The examples of the document that describes hooks around runs of agents, as they are there: blueprints, hooks of blueprints, what hooks
// receive and return, and events.
const (
	exampleProcessor = `{
  "name": "data-processor",
  "type": "autonomous",
  "description": "Processes data with validation and formatting",
  "parameters_schema": {
    "type": "object",
    "required": ["data_source"],
    "properties": {
      "data_source": { "type": "string" },
      "options": { "type": "object" }
    }
  },
  "output_schema": {
    "type": "object",
    "required": ["processed_count", "summary"],
    "properties": {
      "processed_count": { "type": "integer" },
      "summary": { "type": "string" }
    }
  },

  "hooks": {
    "on_run_start": {
      "type": "agent",
      "agent_name": "input-validator",
      "on_error": "block",
      "timeout_seconds": 60
    },
    "on_run_finish": {
      "type": "agent",
      "agent_name": "audit-logger",
      "on_error": "continue",
      "timeout_seconds": 30
    }
  }
}`
	exampleValidator = `{
  "name": "input-validator",
  "type": "autonomous",
  "description": "Validates and enriches input parameters",
  "parameters_schema": {
    "type": "object",
    "description": "Matches on_run_start hook input schema",
    "required": ["parameters", "agent_name"],
    "properties": {
      "parameters": { "type": "object" },
      "agent_name": { "type": "string" },
      "session_id": { "type": "string" },
      "run_id": { "type": "string" }
    }
  },
  "output_schema": {
    "type": "object",
    "description": "Returns on_run_start hook output schema",
    "required": ["action"],
    "properties": {
      "action": { "type": "string", "enum": ["continue", "block"] },
      "parameters": { "type": "object" },
      "block_reason": { "type": "string" }
    }
  },
  "system_prompt": "You are a parameter validator. Analyze the input and either return parameters (possibly enriched) with action='continue', or block with a reason."
}`
	exampleExtractor = `{
  "name": "data-extractor",
  "type": "autonomous",
  "output_schema": {
    "type": "object",
    "properties": {
      "records": { "type": "array" },
      "source": { "type": "string" }
    }
  },
  "hooks": {
    "on_run_finish": {
      "type": "agent",
      "agent_name": "data-processor",
      "on_error": "block"
    }
  }
}`
	exampleGenerator = `{
  "name": "report-generator",
  "type": "procedural",
  "parameters_schema": {
    "type": "object",
    "required": ["report_id"],
    "properties": {
      "report_id": { "type": "string" },
      "resolved_path": { "type": "string" }
    }
  },
  "hooks": {
    "on_run_start": {
      "type": "agent",
      "agent_name": "path-resolver",
      "on_error": "block"
    }
  }
}`
	exampleSecurityHooks = `{
  "hooks": {
    "on_run_start": {
      "type": "agent",
      "agent_name": "security-validator",
      "on_error": "block"
    }
  }
}`
	exampleAuditHooks = `{
  "hooks": {
    "on_run_finish": {
      "type": "agent",
      "agent_name": "audit-logger",
      "on_error": "continue"
    }
  }
}`
	exampleAgentHook = `{
  "type": "agent",
  "agent_name": "parameter-validator",
  "on_error": "block",
  "timeout_seconds": 300
}`
	exampleHTTPHook = `{
  "type": "http",
  "url": "https://api.example.com/validate",
  "method": "POST",
  "headers": {
    "Authorization": "Bearer ${API_TOKEN}",
    "Content-Type": "application/json"
  },
  "on_error": "continue",
  "timeout_seconds": 30
}`
	exampleDefinition = `{
  "name": "audit-logger",
  "type": "http",
  "url": "https://audit.company.com/log",
  "on_error": "continue"
}`
	exampleReference = `{
  "hooks": {
    "on_run_finish": { "$ref": "audit-logger" }
  }
}`
	exampleAsyncHooks = `{
  "hooks": {
    "on_run_finish": {
      "type": "http",
      "url": "https://notifications.com/notify",
      "mode": "async",
      "on_error": "ignore"
    }
  }
}`
	exampleStartInput = `{
  "parameters": { ... },
  "agent_name": "my-agent",
  "session_id": "ses_abc123",
  "run_id": "run_xyz789"
}`
	exampleContinue = `{
  "action": "continue",
  "parameters": { ... }
}`
	exampleBlock = `{
  "action": "block",
  "block_reason": "Insufficient permissions for this operation"
}`
	exampleFinishInput = `{
  "parameters": { ... },
  "result_text": "...",
  "result_data": { ... },
  "status": "completed",
  "error": null,
  "session_id": "ses_abc123",
  "run_id": "run_xyz789",
  "agent_name": "my-agent"
}`
	exampleFinishOutput = `{}`
	exampleEvent        = `{
  "event_type": "hook_complete",
  "session_id": "ses_abc123",
  "run_id": "run_xyz789",
  "timestamp": "2025-01-19T10:30:00Z",
  "hook_type": "on_run_start",
  "target_type": "agent",
  "target_name": "parameter-validator",
  "duration_ms": 1250,
  "action": "continue"
}`
)

// filled returns an example with a value in place of "{ ... }".
func filled(example, value string) string { return strings.ReplaceAll(example, "{ ... }", value) }

// membersOf returns the names of the members of an object.
func membersOf(t *testing.T, text string) []string {
	t.Helper()
	var all map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(text), &all), text)
	return lo.Keys(all)
}

// withMembers returns a blueprint with the members of an example.
func withMembers(t *testing.T, blueprint string, examples ...string) string {
	t.Helper()
	all := map[string]json.RawMessage{}
	for _, text := range append([]string{blueprint}, examples...) {
		require.NoError(t, json.Unmarshal([]byte(text), &all), text)
	}
	text, err := json.Marshal(all)
	require.NoError(t, err)
	return string(text)
}

// exampleAgent returns an autonomous blueprint of a name that takes any object.
func exampleAgent(name string) string {
	return `{"name": "` + name + `", "type": "autonomous", "parameters_schema": {"type": "object"}}`
}

// webService records the requests to a server, and answers them.
type webService struct {
	*httptest.Server

	mu       sync.Mutex
	answer   string
	requests []webRequest
}

type webRequest struct {
	method, path, body string
	header             http.Header
}

func newWebService(t *testing.T, answer string) *webService {
	t.Helper()
	s := &webService{answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body json.RawMessage
		assert.NoError(t, json.NewDecoder(r.Body).Decode(&body))
		s.mu.Lock()
		defer s.mu.Unlock()
		s.requests = append(s.requests, webRequest{r.Method, r.URL.Path, string(body), r.Header})
		_, _ = w.Write([]byte(s.answer))
	}))
	t.Cleanup(s.Close)
	return s
}

// got returns the requests so far.
func (s *webService) got() []webRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]webRequest(nil), s.requests...)
}

// eventTypes returns the types of the events of hooks.
func eventTypes(d wire.RunDetail) []string {
	return lo.Map(d.Hooks, func(e wire.HookEvent, _ int) string { return e.EventType })
}

// The blueprint with two hooks and that of its validator work as they are: the answers of the validator change the parameters or block the
// run, and the hooks receive exactly the members of the examples.
func TestExampleWithTwoHooks(t *testing.T) {
	for name, c := range map[string]struct {
		answer, failure string
		events          []string
	}{
		"continue": {filled(exampleContinue, `{"data_source": "db", "options": {"limit": 5}}`), "", []string{"hook_start", "hook_complete"}},
		"block":    {exampleBlock, "Blocked by on_run_start hook: Insufficient permissions for this operation", []string{"hook_start", "hook_blocked"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.create(exampleValidator, exampleAgent("audit-logger"), exampleProcessor)
			var started, finished, got string
			b.answers["input-validator"] = func(input string) string { started = input; return c.answer }
			b.answers["data-processor"] = func(input string) string {
				got = input
				return `{"processed_count": 2, "summary": "two"}`
			}
			b.answers["audit-logger"] = func(input string) string { finished = input; return exampleFinishOutput }
			id := b.submit("data-processor", `{"data_source": "db"}`)
			d := b.work(id)
			assert.ElementsMatch(t, membersOf(t, filled(exampleStartInput, "{}")), membersOf(t, started))
			assert.JSONEq(t, `{"parameters": {"data_source": "db"}, "agent_name": "data-processor", "session_id": "`+string(d.SessionID)+`", "run_id": "`+string(id)+`"}`, started)
			assert.ElementsMatch(t, membersOf(t, filled(exampleFinishInput, "{}")), membersOf(t, finished))
			about := `"session_id": "` + string(d.SessionID) + `", "run_id": "` + string(id) + `", "agent_name": "data-processor", "parameters": {"data_source": "db"}`
			assert.Equal(t, append(c.events, "hook_start", "hook_complete"), eventTypes(d))
			if c.failure != "" {
				assert.Equal(t, wire.Failed, d.Status)
				assert.True(t, d.Blocked)
				assert.Equal(t, c.failure, lo.FromPtr(d.Error))
				assert.Empty(t, got, "the agent does not run")
				assert.JSONEq(t, `{"result_text": null, "result_data": null, "status": "failed", "error": "`+c.failure+`", `+about+`}`, finished)
				return
			}
			require.Equal(t, wire.Completed, d.Status, lo.FromPtr(d.Error))
			assert.JSONEq(t, `{"data_source": "db", "options": {"limit": 5}}`, got)
			assert.JSONEq(t, `{"processed_count": 2, "summary": "two"}`, string(d.ResultData))
			assert.JSONEq(t, `{"result_text": null, "result_data": {"processed_count": 2, "summary": "two"}, "status": "completed", "error": null, `+about+`}`, finished)
		})
	}
}

// A run that has failed, or was stopped, is told with its status; an agent without output_schema has a text as its result.
func TestExampleStatuses(t *testing.T) {
	b := newBench(t)
	b.create(exampleAgent("audit-logger"), withMembers(t, exampleAgent("my-agent"), exampleAuditHooks))
	var finished string
	b.answers["audit-logger"] = func(input string) string { finished = input; return exampleFinishOutput }
	b.answers["my-agent"] = func(string) string { return "a text" }
	told := func(status, text, failure string) {
		var in struct {
			Status     string          `json:"status"`
			ResultText *string         `json:"result_text"`
			ResultData json.RawMessage `json:"result_data"`
			Error      *string         `json:"error"`
		}
		require.NoError(t, json.Unmarshal([]byte(finished), &in))
		assert.Equal(t, status, in.Status)
		assert.Equal(t, text, lo.FromPtr(in.ResultText))
		assert.Equal(t, "null", string(in.ResultData))
		assert.Contains(t, lo.FromPtr(in.Error), failure)
		assert.Equal(t, status == "failed", in.Error != nil, "only a failed run has an error")
	}
	assert.Equal(t, wire.Completed, b.work(b.submit("my-agent", `{"a": 1}`)).Status)
	told("completed", "a text", "")

	id := b.submit("my-agent", `{}`)
	require.NoError(t, b.c.Stop(t.Context(), id, "enough", "ann"))
	assert.Equal(t, wire.Stopped, b.work(id).Status)
	told("stopped", "", "")

	b.create(withMembers(t, `{"name": "broken", "type": "procedural", "command": {"argv": ["false"]}}`, exampleAuditHooks))
	assert.Equal(t, wire.Failed, b.work(b.submit("broken", `{}`)).Status)
	told("failed", "", "exited with code 1")
}

// The hook of the reference of type agent, and the event of its call: every field of the table is there.
func TestExampleEvents(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		last   string
		fields map[string]any // of the last event
	}{
		"complete": {`{"action": "continue"}`, exampleEvent, map[string]any{"event_type": "hook_complete", "action": "continue"}},
		"blocked": {
			exampleBlock, `{"hook_type": "", "block_reason": ""}`,
			map[string]any{"event_type": "hook_blocked", "block_reason": "Insufficient permissions for this operation"},
		},
		"failed": {`?`, `{"hook_type": "", "error": "", "on_error_behavior": ""}`, map[string]any{"event_type": "hook_failed", "on_error_behavior": "block"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.create(exampleAgent("parameter-validator"), startHook(exampleAgentHook))
			b.answers["parameter-validator"] = func(string) string { return c.answer }
			id := b.submit("job", `{}`)
			d := b.work(id)
			require.Len(t, d.Hooks, 2)
			fields := func(e wire.HookEvent) (all map[string]any) {
				text, err := json.Marshal(e)
				require.NoError(t, err)
				require.NoError(t, json.Unmarshal(text, &all))
				return all
			}
			about := map[string]any{
				"session_id": string(d.SessionID), "run_id": string(id), "hook_type": "on_run_start", "target_type": "agent", "target_name": "parameter-validator",
			}
			first, last := fields(d.Hooks[0]), fields(d.Hooks[1])
			assert.Subset(t, first, lo.Assign(about, map[string]any{"event_type": "hook_start"}))
			assert.Subset(t, last, lo.Assign(about, c.fields))
			for _, member := range membersOf(t, c.last) {
				assert.Contains(t, last, member)
			}
			assert.WithinDuration(t, time.Now(), d.Hooks[1].Timestamp, time.Hour)
			assert.IsType(t, 0.0, last["duration_ms"])
		})
	}
}

// on_error says what follows when a hook has failed: the run has failed with its error, or goes on as it was.
func TestExampleOnError(t *testing.T) {
	b := newBench(t)
	b.answers["security-validator"] = func(string) string { return "not JSON" }
	job := `{"name": "my-agent", "type": "procedural", "command": {"argv": ["cat"]}}`
	b.create(exampleAgent("security-validator"), withMembers(t, job, exampleSecurityHooks),
		withMembers(t, strings.Replace(job, "my-agent", "lenient", 1), strings.Replace(exampleSecurityHooks, `"block"`, `"continue"`, 1)))
	d := b.work(b.submit("my-agent", `{"a": 1}`))
	assert.Equal(t, wire.Failed, d.Status)
	assert.False(t, d.Blocked)
	assert.Contains(t, lo.FromPtr(d.Error), "on_run_start hook (agent security-validator) failed: ")
	d = b.work(b.submit("lenient", `{"a": 1}`))
	assert.Equal(t, wire.Completed, d.Status)
	assert.JSONEq(t, `{"a": 1}`, string(d.ResultData))

	b.answers["security-validator"] = func(string) string { return exampleBlock }
	d = b.work(b.submit("lenient", `{"a": 1}`))
	assert.True(t, d.Blocked, "a decision is no failure")
}

// The request over HTTP has the method, the headers and the secret of the example, and its response decides.
func TestExampleHTTPHook(t *testing.T) {
	secrets := filepath.Join(t.TempDir(), "secrets")
	require.NoError(t, os.WriteFile(secrets, []byte("API_TOKEN=tok-123456\n"), 0o600))
	service := newWebService(t, exampleBlock)
	hook := strings.Replace(exampleHTTPHook, "https://api.example.com", service.URL, 1)
	b := newBench(t, func(o *coordinator.Options) { o.Host.Secrets.File = secrets })
	b.create(startHook(hook))
	id := b.submit("job", `{"a": 1}`)
	d := b.work(id)
	assert.Equal(t, "Blocked by on_run_start hook: Insufficient permissions for this operation", lo.FromPtr(d.Error))
	got := service.got()
	require.Len(t, got, 1)
	assert.Equal(t, "POST", got[0].method)
	assert.Equal(t, "/validate", got[0].path)
	assert.Equal(t, "Bearer tok-123456", got[0].header.Get("Authorization"))
	assert.Equal(t, "application/json", got[0].header.Get("Content-Type"))
	assert.JSONEq(t, `{"parameters": {"a": 1}, "agent_name": "job", "session_id": "`+string(d.SessionID)+`", "run_id": "`+string(id)+`"}`, got[0].body)
	text, err := json.Marshal(d)
	require.NoError(t, err)
	assert.NotContains(t, string(text), "tok-123456")

	service.mu.Lock()
	service.answer = filled(exampleContinue, `{"b": 2}`)
	service.mu.Unlock()
	assert.JSONEq(t, `{"b": 2}`, string(b.work(b.submit("job", `{"a": 1}`)).ResultData))

	service.mu.Lock()
	service.answer = `{"error": "tok-123456 is not JSON that a hook understands"}`
	service.mu.Unlock()
	d = b.work(b.submit("job", `{"a": 1}`))
	assert.JSONEq(t, `{"a": 1}`, string(d.ResultData), "the hook has failed, and on_error is continue")
	text, err = json.Marshal(d)
	require.NoError(t, err)
	assert.NotContains(t, string(text), "tok-123456")
}

// A definition may have its name in it; blueprints refer to it by its name, and a wrong reference is an error with the place.
func TestExampleReusableDefinition(t *testing.T) {
	service := newWebService(t, exampleFinishOutput)
	definition := strings.Replace(exampleDefinition, "https://audit.company.com", service.URL, 1)
	definitions := `{"definitions": {"audit-logger": ` + definition + `}}`
	job := `{"name": "job", "type": "procedural", "command": {"argv": ["cat"]}}`
	b := newBench(t)
	api := b.client(b.serve(), wire.Admin)
	_, err := api.CreateBlueprint(t.Context(), json.RawMessage(withMembers(t, job, definitions, exampleReference)))
	require.NoError(t, err)
	d := b.work(b.submit("job", `{"a": 1}`))
	assert.Equal(t, wire.Completed, d.Status)
	assert.Equal(t, []string{"hook_start", "hook_complete"}, eventTypes(d))
	assert.Equal(t, "http", d.Hooks[0].TargetType)
	got := service.got()
	require.Len(t, got, 1)
	assert.Equal(t, "/log", got[0].path)
	assert.ElementsMatch(t, membersOf(t, filled(exampleFinishInput, "{}")), membersOf(t, got[0].body))

	s, err := api.UpdateBlueprint(t.Context(), "job", json.RawMessage(`{"description": "d"}`), 0)
	require.NoError(t, err)
	assert.JSONEq(t, `{"audit-logger": `+definition+`}`, string(s.Definitions), "an update of other members keeps it")
	_, err = api.UpdateBlueprint(t.Context(), "job", json.RawMessage(`{"definitions": {}}`), 0)
	require.ErrorContains(t, err, `unknown definition "audit-logger"`)
	_, err = api.UpdateBlueprint(t.Context(), "job", json.RawMessage(`{"definitions": {}, "hooks": {}}`), 0)
	require.NoError(t, err)

	wrong := func(members ...string) []coordinator.FieldError {
		_, err := b.c.CreateBlueprint(t.Context(), []byte(withMembers(t, job, members...)), "ann")
		invalid, ok := errors.AsType[*coordinator.InvalidError](err)
		require.True(t, ok, "%v", err)
		return invalid.Fields
	}
	fields := wrong(definitions, `{"hooks": {"on_run_finish": [{"type": "func", "func": "x"}, {"$ref": "audit-loger"}]}}`)
	assert.Equal(t, "hooks.on_run_finish.1.$ref", fields[len(fields)-1].Field)
	assert.Contains(t, fields[len(fields)-1].Message, `$ref: unknown definition "audit-loger" (did you mean "audit-logger"?)`)
	fields = wrong(strings.Replace(definitions, `"name": "audit-logger"`, `"name": "other"`, 1), exampleReference)
	require.Len(t, fields, 1)
	assert.Equal(t, "definitions.audit-logger.name", fields[0].Field)
	assert.Contains(t, fields[0].Message, `"audit-logger" has the name "other" in it`)
	fields = wrong(`{"definitions": {"a": 1}}`)
	require.Len(t, fields, 1)
	assert.Equal(t, "definitions.a", fields[0].Field)
}

// An async hook does not delay anything: the run of the hooks ends although the service has not answered.
func TestExampleAsyncHook(t *testing.T) {
	service := newWebService(t, `{}`)
	b := newBench(t)
	b.create(withMembers(t, `{"name": "job", "type": "procedural", "command": {"argv": ["cat"]}}`,
		strings.Replace(exampleAsyncHooks, "https://notifications.com", service.URL, 1)))
	d := b.work(b.submit("job", `{"a": 1}`))
	assert.Equal(t, wire.Completed, d.Status)
	require.Eventually(t, func() bool { return len(service.got()) == 1 }, time.Minute, 10*time.Millisecond)
	assert.Equal(t, "/notify", service.got()[0].path)
	d, err := b.c.Run(t.Context(), d.RunID)
	require.NoError(t, err)
	assert.Equal(t, []string{"hook_start", "hook_complete"}, eventTypes(d))
	assert.Equal(t, service.URL, d.Hooks[1].TargetName)

	service.Close() // its failure is the outcome
	d = b.work(b.submit("job", `{"a": 1}`))
	assert.Equal(t, wire.Completed, d.Status)
	assert.Equal(t, []string{"hook_start", "hook_failed"}, eventTypes(d))
	assert.Equal(t, "continue", d.Hooks[1].OnErrorBehavior)

	_, err = b.c.UpdateBlueprint(t.Context(), "job", []byte(strings.Replace(exampleAsyncHooks, `"type"`, `"when": "false", "type"`, 1)), 0, "ann")
	require.NoError(t, err)
	d = b.work(b.submit("job", `{"a": 1}`))
	assert.Equal(t, []string{"hook_start", "hook_complete"}, eventTypes(d), "a condition that is false begins no action")
}

// Chaining: the second agent receives the result of the first as its parameters, in a session of its own below that of the first.
func TestExampleChaining(t *testing.T) {
	b := newBench(t)
	b.create(exampleAgent("data-processor"), exampleExtractor)
	b.answers["data-extractor"] = func(string) string { return `{"records": [1, 2], "source": "mail"}` }
	var got string
	b.answers["data-processor"] = func(input string) string { got = input; return "processed" }
	id := b.submit("data-extractor", `{"prompt": "Read the mail"}`)
	d := b.work(id)
	require.Equal(t, wire.Completed, d.Status, lo.FromPtr(d.Error))
	assert.ElementsMatch(t, membersOf(t, filled(exampleFinishInput, "{}")), membersOf(t, got))
	assert.Contains(t, got, `"result_data":{"records":[1,2],"source":"mail"}`)
	next, err := b.c.Run(t.Context(), b.child(id, "data-processor").ID)
	require.NoError(t, err)
	assert.Equal(t, d.SessionID, next.ParentSessionID)
	assert.NotEqual(t, d.SessionID, next.SessionID)
}

// Enrichment: a hook adds the path, and the runner gets it. What the schema does not accept never reaches the hook.
func TestExampleEnrichment(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the command is one of a POSIX system")
	}
	b := newBench(t)
	b.create(exampleAgent("path-resolver"), withMembers(t, exampleGenerator, `{"command": {"argv": ["cat"]}}`))
	var asked []string
	b.answers["path-resolver"] = func(input string) string {
		asked = append(asked, input)
		return filled(exampleContinue, `{"report_id": "R123", "resolved_path": "/data/reports/R123.csv"}`)
	}
	d := b.work(b.submit("report-generator", `{"report_id": "R123"}`))
	assert.JSONEq(t, `{"report_id": "R123", "resolved_path": "/data/reports/R123.csv"}`, string(d.ResultData))
	assert.JSONEq(t, `{"report_id": "R123"}`, string(d.OriginalParameters))
	require.Len(t, asked, 1)
	assert.Contains(t, asked[0], `"parameters":{"report_id":"R123"}`)
	_, err := b.c.Submit(t.Context(), wire.RunRequest{AgentName: "report-generator"}, "ann")
	require.ErrorContains(t, err, "report_id")
	assert.Len(t, asked, 1)

	b.answers["path-resolver"] = func(string) string { return filled(exampleContinue, `{"resolved_path": "/data"}`) }
	d = b.work(b.submit("report-generator", `{"report_id": "R123"}`))
	assert.Equal(t, wire.Failed, d.Status)
	assert.Contains(t, lo.FromPtr(d.Error), "does not accept the changed parameters")
}

// The further hooks of the document: on_result changes a result, on_tool_call is accepted for agents, on_error and on_timeout are called
// after a failure and after a run that took too long.
func TestExampleFurtherHooks(t *testing.T) {
	var told []string
	b := newBench(t, withTell(func(r *action.Request) { told = append(told, string(r.Point)) }))
	tells := `"hooks": {"on_error": ` + tellHook + `, "on_timeout": ` + tellHook + `}`
	b.create(exampleAgent("format"), jobWith(`"on_result": {"type": "agent", "agent_name": "format", "on_error": "block"}`),
		`{"name": "broken", "type": "procedural", "command": {"argv": ["false"]}, `+tells+`}`,
		`{"name": "slow", "type": "procedural", "command": {"argv": ["sleep", "600"], "timeout_seconds": 1}, `+tells+`}`,
		`{"name": "tools", "type": "autonomous", "hooks": {"on_tool_call": {"type": "command", "argv": ["true"], "on_error": "block"}}}`)
	b.answers["format"] = func(string) string { return `{"action": "continue", "result_data": {"formatted": true}}` }
	d := b.work(b.submit("job", `{"a": 1}`))
	require.Equal(t, wire.Completed, d.Status, lo.FromPtr(d.Error))
	require.Empty(t, lo.FromPtr(d.ResultText))
	assert.JSONEq(t, `{"formatted": true}`, string(d.ResultData))
	b.work(b.submit("broken", `{}`))
	assert.Equal(t, []string{"RunFailed"}, told)
	d = b.work(b.submit("slow", `{}`))
	assert.Equal(t, wire.Failed, d.Status)
	assert.Equal(t, []string{"RunFailed", "RunFailed", "RunTimeout"}, told)
}
