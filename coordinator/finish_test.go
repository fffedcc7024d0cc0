package coordinator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/client"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
)

const finishHook = `"hooks": {"on_run_finish": {"type": "agent", "agent_name": "audit", "on_error": "continue"}}`

// CO-22, CO-25: the hook after a run is told of completed, failed and stopped runs, and of blocked ones, and changes nothing.
func TestFinishHook(t *testing.T) {
	for name, c := range map[string]struct {
		blueprint string
		status    wire.Status
		want      string
	}{
		"completed": {
			`"command": {"argv": ["cat"]}, ` + finishHook, wire.Completed,
			`"result_text": null, "result_data": {"a": 1}, "status": "completed", "error": null`,
		},
		"text": {
			`"command": {"argv": ["echo", "done"]}, ` + finishHook, wire.Completed,
			`"result_text": "done\n", "result_data": null, "status": "completed", "error": null`,
		},
		"failed": {
			`"command": {"argv": ["sh", "-c", "exit 3"]}, ` + finishHook, wire.Failed,
			`"result_text": null, "result_data": null, "status": "failed", "error": "the command exited with code 3"`,
		},
		"blocked": {
			`"command": {"argv": ["cat"]}, "hooks": {
				"on_run_start": {"type": "command", "argv": ["echo", "{\"action\": \"block\"}"], "on_error": "block"},
				"on_run_finish": {"type": "agent", "agent_name": "audit", "on_error": "continue"}}`, wire.Failed,
			`"result_text": null, "result_data": null, "status": "failed", "error": "Blocked by on_run_start hook: No reason provided"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.create(`{"name": "audit", "type": "autonomous", "parameters_schema": {"type": "object"}}`)
			b.create(`{"name": "job", "type": "procedural", ` + c.blueprint + `}`)
			var got string
			b.answers["audit"] = func(input string) string { got = input; return "what?" }
			id := b.submit("job", `{"a": 1}`)
			d := b.work(id)
			assert.Equal(t, c.status, d.Status)
			assert.JSONEq(t, `{"parameters": {"a": 1}, `+c.want+`, "session_id": "`+string(d.SessionID)+`", "run_id": "`+string(id)+`", "agent_name": "job"}`, got)
			last := d.Hooks[len(d.Hooks)-1]
			assert.Equal(t, "hook_complete", last.EventType)
			children, err := b.store.List(t.Context(), durable.Filter{Parent: id, Kind: durable.KindAgent})
			require.NoError(t, err)
			require.Len(t, children, 1)
			assert.True(t, strings.HasPrefix(string(children[0].Session), "hook_"))
		})
	}
}

// CO-24: a hook after a run that fails changes nothing in the run, and is one event.
func TestFailingFinishHook(t *testing.T) {
	b := newBench(t)
	b.create(jobWith(`"on_run_finish": {"type": "command", "argv": ["sh", "-c", "exit 1"], "on_error": "block"}`))
	d := b.work(b.submit("job", `{}`))
	assert.Equal(t, wire.Completed, d.Status)
	var types []string
	for _, e := range d.Hooks {
		types = append(types, e.EventType)
	}
	assert.Equal(t, []string{"hook_start", "hook_failed"}, types)
}

// CO-14: the time limit of a hook stops the run that it has started.
func TestTimeLimitOfHook(t *testing.T) {
	b := newBench(t)
	b.create(`{"name": "slow", "type": "procedural", "command": {"argv": ["sleep", "600"]}}`, `{"name": "job", "type": "procedural",
		"command": {"argv": ["cat"]}, "hooks": {"on_run_start": {"type": "agent", "agent_name": "slow", "on_error": "block", "timeout_seconds": 1}}}`)
	defer b.run(b.worker())()
	id := b.submit("job", `{}`)
	d := b.await(id)
	assert.Equal(t, wire.Failed, d.Status)
	assert.Equal(t, "hook_timeout", d.Hooks[len(d.Hooks)-1].EventType)
	require.Eventually(t, func() bool {
		children, err := b.store.List(t.Context(), durable.Filter{Parent: id, Name: "slow"})
		return err == nil && len(children) == 1 && children[0].Status == durable.StatusCancelled
	}, time.Minute, 10*time.Millisecond)
}

// CO-15, CO-16, CO-17: one worker with room for one run suffices, and another process continues where one was stopped.
func TestAnotherProcessContinues(t *testing.T) {
	b := newBench(t)
	b.create(validator, report)
	asked := make(chan struct{})
	release := make(chan struct{})
	b.answers["validator"] = func(string) string {
		close(asked)
		<-release
		return `{"action": "continue"}`
	}
	stop := b.run(b.hooksWorker())
	id := b.submit("report", `{"month": "May"}`)
	require.Eventually(t, func() bool { // the hook waits for its agent, which no worker executes yet
		d, err := b.c.Run(t.Context(), id)
		return err == nil && d.Status == wire.Hooking && len(d.WaitsFor) == 1
	}, time.Minute, 5*time.Millisecond)
	stop()
	defer b.run(b.worker())()
	<-asked
	close(release)
	d := b.await(id)
	assert.Equal(t, wire.Completed, d.Status)
	assert.Equal(t, []string{"hook_start", "hook_complete"}, lo.Map(d.Hooks, func(e wire.HookEvent, _ int) string { return e.EventType }))
}

// Stopping a run whose hooks decide stops the run of the hook, too.
func TestStopWhileHooking(t *testing.T) {
	b := newBench(t)
	b.create(`{"name": "slow", "type": "procedural", "command": {"argv": ["sleep", "600"]}}`, `{"name": "job", "type": "procedural",
		"command": {"argv": ["cat"]}, "hooks": {"on_run_start": {"type": "agent", "agent_name": "slow", "on_error": "block"}}}`)
	defer b.run(b.worker())()
	id := b.submit("job", `{}`)
	require.Eventually(t, func() bool {
		d, err := b.c.Run(t.Context(), id)
		return err == nil && len(d.WaitsFor) == 1
	}, time.Minute, 5*time.Millisecond)
	require.NoError(t, b.c.Stop(t.Context(), id, "changed my mind", "ann"))
	d := b.await(id)
	assert.Equal(t, wire.Stopped, d.Status)
	assert.Contains(t, *d.Error, "changed my mind")
	require.Eventually(t, func() bool {
		children, err := b.store.List(t.Context(), durable.Filter{Parent: id, Name: "slow"})
		return err == nil && len(children) == 1 && children[0].Status == durable.StatusCancelled
	}, time.Minute, 10*time.Millisecond)
}

// An interrupted hook has not failed: if its process stops, it is called again, and if its run is stopped, it has no outcome.
func TestInterruptedHook(t *testing.T) {
	for _, c := range []struct {
		point, onError string
		stopsRun       bool
	}{
		{"on_run_start", "block", true},
		{"on_run_start", "continue", true},
		{"on_result", "block", true},
		{"on_result", "continue", true},
		{"on_run_start", "block", false},
		{"on_result", "continue", false},
		{"on_run_finish", "continue", false},
	} {
		t.Run(fmt.Sprint(c.point, ", on_error ", c.onError, lo.Ternary(c.stopsRun, ", the run is stopped", "")), func(t *testing.T) {
			calls := make(chan bool, 10)
			b := newBench(t, withFuncs(map[string]action.Body{"slow": func(ctx context.Context, _ *action.Request) (*action.Decision, error) {
				if calls <- true; len(calls) > 1 {
					return &action.Decision{Decision: hooks.Allow}, nil
				}
				<-ctx.Done()
				return nil, ctx.Err()
			}}))
			hook := `{"type": "func", "func": "slow", "on_error": "` + c.onError + `"}`
			b.create(jobWith(`"` + c.point + `": [` + hook + `, ` + hook + `]`))
			worker := func() *durable.Worker {
				return b.worker(func(o *durable.WorkerOptions) { o.Grace = time.Millisecond })
			}
			stop := b.run(worker())
			id := b.submit("job", `{}`)
			require.Eventually(t, func() bool { return len(calls) == 1 }, time.Minute, time.Millisecond)
			want := []string{"hook_start", "hook_complete", "hook_start", "hook_complete"}
			if c.stopsRun {
				require.NoError(t, b.c.Stop(t.Context(), id, "changed my mind", "ann"))
				want = want[:1]
			} else {
				stop()
				stop = b.run(worker())
			}
			defer stop()
			d := b.await(id)
			assert.Equal(t, lo.Ternary(c.stopsRun, wire.Stopped, wire.Completed), d.Status)
			require.Eventually(t, func() bool {
				d, _ = b.c.Run(t.Context(), id)
				return len(d.Hooks) >= len(want)
			}, time.Minute, time.Millisecond)
			assert.Equal(t, want, lo.Map(d.Hooks, func(e wire.HookEvent, _ int) string { return e.EventType }))
			assert.Empty(t, d.FailedHooks)
		})
	}
}

// While a hook waits for its run, the hooks after it have not begun.
func TestHookAfterAWaitingHook(t *testing.T) {
	calls := 0
	b := newBench(t, withTell(func(*action.Request) { calls++ }))
	b.create(`{"name": "audit", "type": "procedural", "command": {"argv": ["true"]}}`,
		jobWith(`"on_run_finish": [{"type": "agent", "agent_name": "audit", "on_error": "continue"}, `+tellHook+`]`))
	d := b.work(b.submit("job", `{}`))
	assert.Equal(t, []string{"hook_start", "hook_complete", "hook_start", "hook_complete"},
		lo.Map(d.Hooks, func(e wire.HookEvent, _ int) string { return e.EventType }))
	assert.Equal(t, 1, calls)
}

// CO-36: a stream continues after the last event that was received, and ends when the run and its hooks have ended.
func TestStream(t *testing.T) {
	b := newBench(t)
	b.create(jobWith(`"on_run_start": {"type": "command", "argv": ["echo", "{\"action\": \"continue\"}"], "on_error": "block"},
		"on_run_finish": {"type": "command", "argv": ["true"], "on_error": "continue"}`))
	id := b.submit("job", `{}`)
	b.work(id)
	names, ids := b.stream(id, "")
	assert.Equal(t, []string{"hook_start", "hook_complete", "run_completed", "hook_start", "hook_complete"}, names)
	for i, last := range ids {
		_, more := b.stream(id, last)
		assert.Equal(t, ids[i+1:], append([]string{}, more...), "after %s", last)
	}
}

// A token that was revoked or has expired is not valid.
func TestTokens(t *testing.T) {
	b := newBench(t)
	s := b.serve()
	_, err := b.client(s, wire.Viewer).Blueprints(t.Context(), "", 10)
	require.NoError(t, err)
	admin := b.client(s, wire.Admin)
	tokens, err := admin.Tokens(t.Context())
	require.NoError(t, err)
	require.Len(t, tokens, 2)
	first, _ := lo.Find(tokens, func(t wire.Token) bool { return t.Role == wire.Viewer })
	viewer := b.client(s, wire.Operator)
	require.NoError(t, admin.RevokeToken(t.Context(), first.ID))
	_, err = viewer.Blueprints(t.Context(), "", 10)
	require.NoError(t, err)
	assert.ErrorIs(t, admin.RevokeToken(t.Context(), first.ID), durable.ErrNotFound)
	token, err := admin.NewToken(t.Context(), "short", wire.Viewer, time.Second)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/runs", nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode == http.StatusUnauthorized
	}, time.Minute, 50*time.Millisecond)
}

// CO-01, CO-02, CO-20, CO-29, CO-30: what is wrong with blueprints and requests is refused, with all mistakes.
func TestRefused(t *testing.T) {
	b := newBench(t)
	b.create(validator, report, `{"name": "a", "type": "procedural", "command": {"argv": ["true"]}}`)
	for text, want := range map[string]string{
		`{"name": "x"}`: "type:",
		`{"name": "x", "type": "procedural", "colour": 1}`:                                                                                "not known",
		`{"name": "x", "type": "procedural", "command": {"argv": []}}`:                                                                    "argv",
		`{"name": "x", "type": "procedural", "hooks": {"on_run_begin": {"type": "agent"}}}`:                                               "on_run_begin",
		`{"name": "x", "type": "procedural", "hooks": {"on_run_start": {"type": "agent", "agent_name": "unknown", "on_error": "block"}}}`: "create it first",
		`{"name": "x", "type": "procedural", "hooks": {"on_run_start": {"type": "agent", "agent_name": "x", "on_error": "block"}}}`:       "its own hook",
		`{"name": "x", "type": "autonomous", "hooks": {"PostToolUse": {"id": "p", "decision": "withhold", "reason": "secret"}}}`:          "PostToolUse: the coordinator does not call",
		`{"name": "x", "type": "procedural", "hooks": {"on_tool_call": {"id": "p", "decision": "deny", "reason": "no"}}}`:                 "calls no tools",
		`{"name": "x", "type": "autonomous", "hooks": {"on_tool_call": {"type": "agent", "agent_name": "a", "on_error": "block"}}}`:       "around a run",
		`{"name": "x", "type": "procedural", "hooks": {"on_run_start": {"type": "agent", "agent_name": "a", "on_error": "explode"}}}`:     "explode",
	} {
		_, err := b.c.CreateBlueprint(t.Context(), []byte(text), "ann")
		var invalid *coordinator.InvalidError
		require.ErrorAs(t, err, &invalid, text)
		assert.Contains(t, err.Error(), want, text)
	}
	_, err := b.c.CreateBlueprint(t.Context(), []byte(validator), "ann")
	require.ErrorIs(t, err, durable.ErrConflict)
	for params, want := range map[string]string{`{}`: "month", `{"month": 1}`: "parameters.month", `[]`: "parameters", `{"month": "a", "month": "b"}`: "parameters"} {
		_, err := b.c.Submit(t.Context(), wire.RunRequest{AgentName: "report", Parameters: json.RawMessage(params)}, "ann")
		require.Error(t, err)
		assert.Contains(t, err.Error(), want)
	}
	_, err = b.c.Submit(t.Context(), wire.RunRequest{AgentName: "a", Labels: map[string]string{"coordinator.hooks": "yes"}}, "ann")
	require.ErrorContains(t, err, "labels.coordinator.hooks")
	_, err = b.c.Submit(t.Context(), wire.RunRequest{AgentName: "unknown"}, "ann")
	require.ErrorContains(t, err, "unknown")
}

// Every mistake in a blueprint is listed, with the member or the list item that has it.
func TestAllMistakes(t *testing.T) {
	b := newBench(t)
	b.create(`{"name": "job", "type": "autonomous"}`)
	admin := b.plain(b.serve(), wire.Admin)
	blueprint := func(name string) map[string]any {
		return map[string]any{
			"name": name, "type": "autonomous", "colour": nil, "system_prompt": 1, "parameters_schema": map[string]any{"type": "objekt"},
			"agent": map[string]any{"modl": "x"}, "demands": map[string]any{"coordinator.x": "1", "a/b": 2},
			"hooks": map[string]any{
				"on_run_start": []any{
					map[string]any{"type": "agent", "agent_name": "unknown", "on_error": "stop"},
					map[string]any{"type": "shell", "command": "true", "on_error": "block"},
					map[string]any{"type": "agent", "agent_name": "other", "on_error": "block", "timeout_seconds": 0},
				},
				"on_run_finish": map[string]any{"type": "func", "func": "nothing", "on_error": "continue"},
				"on_tool_call":  map[string]any{"type": "agent", "agent_name": "other", "on_error": "block"},
				"StepEnd":       map[string]any{"type": "shell", "command": "true"},
			},
		}
	}
	want := []string{
		"agent.modl", "colour", "demands.a~1b", "demands.coordinator.x", "hooks.StepEnd", "hooks.on_run_finish.func",
		"hooks.on_run_start.0.agent_name", "hooks.on_run_start.0.on_error",
		"hooks.on_run_start.2.agent_name", "hooks.on_run_start.2.timeout_seconds", "hooks.on_tool_call.agent_name",
		"parameters_schema", "system_prompt",
	}
	for path, method := range map[string]string{"/blueprints": http.MethodPost, "/blueprints?dry_run=true": http.MethodPost, "/blueprints/job?dry_run=true": http.MethodPatch, "/blueprints/job": http.MethodPatch} {
		status, text := admin.send(method, path, "", blueprint("job"))
		assert.Equal(t, http.StatusUnprocessableEntity, status, path)
		var problem client.Error
		require.NoError(t, json.Unmarshal(text, &problem))
		got := lo.Map(problem.Errors, func(e client.FieldError, _ int) string {
			if strings.HasSuffix(e.Location, ".agent_name") {
				assert.Regexp(t, "^on_(run_start|tool_call), entry", e.Message, "the point as the blueprint names it")
			}
			return strings.TrimPrefix(e.Location, "body.")
		})
		if method == http.MethodPatch {
			got = append(got, "colour") // null removes it
		}
		assert.ElementsMatch(t, want, got, "%s: %s", path, text)
	}
	status, text := admin.send(http.MethodPost, "/blueprints?dry_run=true&with=first&with=second", "", map[string]any{
		"name": "third", "type": "procedural", "hooks": map[string]any{"on_run_finish": []any{
			map[string]any{"type": "agent", "agent_name": "second", "on_error": "continue"},
		}},
	})
	assert.Equal(t, http.StatusOK, status, "%s", text)
	_, err := b.c.Blueprint(t.Context(), "third", 0)
	require.ErrorIs(t, err, durable.ErrNotFound)
}

// Hooks of blueprints may use only the environment variables of the process that its operator allows, when they are stored and when they
// are called.
func TestEnvironmentOfBlueprints(t *testing.T) {
	t.Setenv("DEPLOY_TOKEN", "open-sesame")
	const hook = `{"name": "x", "type": "procedural", "command": {"argv": ["true"]}, "hooks": {"on_run_start": `
	stages := func(of string) string {
		return lo.Must(jsonOf(map[string]any{"name": "x", "type": "pipeline", "pipeline": map[string]any{"files": map[string]string{
			"pipeline.yaml": "name: p\nstages:\n  - name: one\n    termination: {type: fixed, iterations: 1}\n    command: {argv: [\"true\"]" + of + "\n",
		}}}))
	}
	texts := map[string]string{
		"a header":          hook + `{"type": "http", "url": "https://a.example.com", "headers": {"A": "${DEPLOY_TOKEN}"}, "env": ["DEPLOY_TOKEN"], "on_error": "block"}}}`,
		"a command":         hook + `{"type": "command", "argv": ["env"], "inherit": ["PATH", "DEPLOY_TOKEN"], "on_error": "block"}}}`,
		"a pattern":         hook + `{"type": "shell", "command": "env", "inherit": ["DEPLOY_*"], "on_error": "block"}}}`,
		"a gate":            hook + `{"type": "gate", "by": "callback", "webhook": {"url": "https://a.example.com/${DEPLOY_TOKEN}", "env": "DEPLOY_TOKEN"}, "on_error": "block"}}}`,
		"a pipeline":        stages(", inherit: [DEPLOY_TOKEN]}"),
		"a pipeline's hook": stages("}\nhooks:\n  on_session_start: {type: webhook, url: '${DEPLOY_TOKEN}'}"),
	}
	withFolder := func(o *coordinator.Options) { o.Pipelines.Dir = t.TempDir() }
	none := newBench(t, withFolder)
	for name, text := range texts {
		_, err := none.c.CreateBlueprint(t.Context(), []byte(text), "ann")
		require.ErrorContains(t, err, "start the process with --env DEPLOY_", name)
		some := newBench(t, withFolder, func(o *coordinator.Options) { o.Env = []string{"DEPLOY_*"} })
		_, err = some.c.CreateBlueprint(t.Context(), []byte(text), "ann")
		require.NoError(t, err, name)
	}
	some := newBench(t, func(o *coordinator.Options) { o.Env = []string{"DEPLOY_TOKEN"} })
	some.create(texts["a command"])
	less, err := coordinator.New(coordinator.Options{Store: some.store})
	require.NoError(t, err)
	some.c = less
	d := some.work(some.submit("x", "{}"))
	assert.NotEqual(t, wire.Completed, d.Status)
	assert.Contains(t, d.LastError, "--env DEPLOY_TOKEN")
}

// jsonOf returns a value as JSON.
func jsonOf(v any) (string, error) {
	text, err := json.Marshal(v)
	return string(text), err
}

// CO-20, CO-29: hooks that would start each other without end are refused when the second one is stored; absent members of an update
// stay, and {} clears.
func TestUpdate(t *testing.T) {
	b := newBench(t)
	b.create(`{"name": "a", "type": "procedural", "command": {"argv": ["true"]}}`,
		`{"name": "b", "type": "procedural", "command": {"argv": ["true"]}, "hooks": {"on_run_finish": {"type": "agent", "agent_name": "a", "on_error": "continue"}}}`)
	_, err := b.c.UpdateBlueprint(t.Context(), "a", []byte(`{"hooks": {"on_run_finish": {"type": "agent", "agent_name": "b", "on_error": "continue"}}}`), 0, "ann")
	require.ErrorContains(t, err, "a → b → a")
	s, err := b.c.UpdateBlueprint(t.Context(), "b", []byte(`{"description": "d"}`), 0, "ann")
	require.NoError(t, err)
	assert.NotEmpty(t, s.Hooks)
	assert.EqualValues(t, 2, s.Version)
	require.ErrorContains(t, b.c.DeleteBlueprint(t.Context(), "a", 0), `"b"`)
	s, err = b.client(b.serve(), wire.Admin).UpdateBlueprint(t.Context(), "b", json.RawMessage(`{"hooks": {}}`), 0)
	require.NoError(t, err)
	assert.Empty(t, s.Hooks)
	assert.Equal(t, "d", s.Description)
	require.NoError(t, b.c.DeleteBlueprint(t.Context(), "a", 0))
	_, err = b.c.Blueprint(t.Context(), "a", 0)
	require.ErrorIs(t, err, durable.ErrNotFound)
	_, err = b.c.UpdateBlueprint(t.Context(), "a", []byte(`{}`), 0, "ann")
	require.ErrorIs(t, err, durable.ErrNotFound)
}

// A second request with an idempotency key is the first run, with the hooks after it once.
func TestIdempotencyKey(t *testing.T) {
	b := newBench(t)
	b.create(jobWith(`"on_run_finish": {"type": "command", "argv": ["true"], "on_error": "continue"}`))
	r := wire.RunRequest{AgentName: "job", Parameters: json.RawMessage(`{"a": 1}`), IdempotencyKey: "k"}
	first, err := b.c.Submit(t.Context(), r, "ann")
	require.NoError(t, err)
	second, err := b.c.Submit(t.Context(), r, "ann")
	require.NoError(t, err)
	assert.Equal(t, first.ID, second.ID)
	b.create(`{"name": "plain", "type": "procedural", "command": {"argv": ["cat"]}, "demands": {"zone": "eu"}}`)
	p := wire.RunRequest{AgentName: "plain", IdempotencyKey: "other"}
	before, err := b.c.Submit(t.Context(), p, "ann")
	require.NoError(t, err)
	_, err = b.c.UpdateBlueprint(t.Context(), "plain", []byte(`{"hooks": {"on_run_finish": {"type": "command", "argv": ["true"], "on_error": "continue"}}}`), 0, "ann")
	require.NoError(t, err)
	after, err := b.c.Submit(t.Context(), p, "ann")
	require.NoError(t, err, "the blueprint has hooks since then")
	assert.Equal(t, before.ID, after.ID)
	require.NoError(t, b.c.Stop(t.Context(), before.ID, "", "ann"))
	_, err = b.c.Submit(t.Context(), wire.RunRequest{AgentName: "plain", Demands: map[string]string{"zone": "us"}}, "ann")
	require.ErrorContains(t, err, "demands.zone")
	r.Parameters = json.RawMessage(`{"a": 2}`)
	_, err = b.c.Submit(t.Context(), r, "ann")
	require.ErrorIs(t, err, coordinator.ErrKeyUsed)
	assert.Len(t, b.work(first.ID).Hooks, 2)
}

// await waits until a run has ended.
func (b *bench) await(id agent.RunID) (d wire.RunDetail) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		var err error
		d, err = b.c.Run(b.t.Context(), id)
		return err == nil && lo.Contains([]wire.Status{wire.Completed, wire.Failed, wire.Stopped}, d.Status)
	}, time.Minute, 10*time.Millisecond)
	return d
}
