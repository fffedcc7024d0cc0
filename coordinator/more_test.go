package coordinator_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
)

// CO-06, CO-11, CO-21: what a failed hook does, by its on_error, and an empty object as changed parameters.
func TestFailedStartHook(t *testing.T) {
	for name, c := range map[string]struct {
		blueprint, hook string
		status          wire.Status
		result          string
		events          []string
	}{
		"empty parameters": {
			hook: `{"type": "command", "argv": ["echo", "{\"action\": \"continue\", \"parameters\": {}}"], "on_error": "block"}`, status: wire.Completed, result: `{}`,
			events: []string{"hook_start", "hook_complete"},
		},
		"agent fails, block": {
			hook: `{"type": "agent", "agent_name": "broken", "on_error": "block"}`, status: wire.Failed, events: []string{"hook_start", "hook_failed"},
		},
		"agent fails, continue": {
			hook: `{"type": "agent", "agent_name": "broken", "on_error": "continue"}`, status: wire.Completed, result: `{"a": 1}`,
			events: []string{"hook_start", "hook_failed"},
		},
		"agent fails, ignore": {
			hook: `{"type": "agent", "agent_name": "broken", "on_error": "ignore"}`, status: wire.Completed, result: `{"a": 1}`,
			events: []string{"hook_start", "hook_failed"},
		},
		"input not accepted": {
			hook: `{"type": "agent", "agent_name": "picky", "on_error": "block"}`, status: wire.Failed, events: []string{"hook_start", "hook_failed"},
		},
		"malformed, continue": {
			hook: `{"type": "command", "argv": ["echo", "what?"], "on_error": "continue"}`, status: wire.Completed, result: `{"a": 1}`,
			events: []string{"hook_start", "hook_failed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.create(`{"name": "broken", "type": "procedural", "command": {"argv": ["false"]}}`,
				`{"name": "picky", "type": "procedural", "command": {"argv": ["true"]}, "parameters_schema": {"type": "object", "required": ["x"]}}`, startHook(c.hook))
			d := b.work(b.submit("job", `{"a": 1}`))
			assert.Equal(t, c.status, d.Status)
			if c.result != "" {
				assert.JSONEq(t, c.result, string(d.ResultData))
			}
			assert.Equal(t, c.events, lo.Map(d.Hooks, func(e wire.HookEvent, _ int) string { return e.EventType }))
		})
	}
}

// CO-28: hooks of a list change the parameters one after the other, and their events are in order, with the values before and after.
func TestChainedHooks(t *testing.T) {
	add := func(name string) string {
		return `{"type": "func", "func": "` + name + `", "on_error": "block"}`
	}
	b := newBench(t, withFuncs(map[string]action.Body{
		"one": changeOnce(`{"n":0}`, `{"n":1}`), "two": changeOnce(`{"n":1}`, `{"n":1,"m":2}`),
	}))
	b.create(startHook("[" + add("one") + ", " + add("two") + "]"))
	d := b.work(b.submit("job", `{"n": 0}`))
	assert.JSONEq(t, `{"n": 1, "m": 2}`, string(d.ResultData))
	require.Len(t, d.Hooks, 6, "the first hook is asked about the last parameters, too")
	assert.JSONEq(t, `{"n": 0}`, string(d.Hooks[1].Before))
	assert.JSONEq(t, `{"n": 1}`, string(d.Hooks[1].After))
	assert.JSONEq(t, `{"n": 1}`, string(d.Hooks[3].Before))
}

// A hook by HTTP gets exactly what is about the run, and its response decides.
func TestHookOverHTTP(t *testing.T) {
	var mu sync.Mutex
	var got []string
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body json.RawMessage
		assert.NoError(t, json.NewDecoder(r.Body).Decode(&body))
		mu.Lock()
		defer mu.Unlock()
		got = append(got, string(body))
		_, _ = w.Write([]byte(`{"action": "block", "block_reason": "closed"}`))
	}))
	defer service.Close()
	b := newBench(t)
	b.create(startHook(`{"type": "http", "url": "` + service.URL + `/check", "on_error": "continue"}`))
	id := b.submit("job", `{"a": 1}`)
	d := b.work(id)
	assert.Equal(t, "Blocked by on_run_start hook: closed", lo.FromPtr(d.Error))
	require.Len(t, got, 1)
	assert.JSONEq(t, `{"parameters": {"a": 1}, "agent_name": "job", "session_id": "`+string(d.SessionID)+`", "run_id": "`+string(id)+`"}`, got[0])
}

// CO-18, CO-19, CO-32: the run of a hook has the demands of its own blueprint, and only a matching runner gets it.
func TestDemands(t *testing.T) {
	b := newBench(t)
	s := b.serve()
	b.create(`{"name": "check", "type": "procedural", "command": {"argv": ["echo", "{\"action\": \"continue\"}"]}, "demands": {"zone": "eu"}}`,
		startHook(`{"type": "agent", "agent_name": "check", "on_error": "block"}`))
	defer b.run(b.hooksWorker())()
	id := b.submit("job", `{}`)
	child := b.child(id, "check")
	assert.True(t, strings.HasPrefix(string(child.Session), "hook_"))
	runners := b.plain(s, wire.RunnerRole)
	assert.Empty(t, runners.claim("r1").Runs, "a runner without the label")
	claimed := runners.claim("r2", "zone=eu").Runs
	require.Len(t, claimed, 1)
	assert.Equal(t, child.ID, claimed[0].RunID)
	assert.Empty(t, runners.claim("r3", "zone=eu").Runs, "another runner has it")
}

// CO-33, CO-34: a simple runner reports that a run has started and its result; a stop reaches it before other runs.
func TestSimpleRunner(t *testing.T) {
	b := newBench(t)
	s := b.serve()
	b.create(`{"name": "sum", "type": "procedural", "output_schema": {"type": "object", "required": ["total"]}}`)
	c := b.plain(s, wire.RunnerRole)
	post := func(id agent.RunID, path string, body map[string]any) int { return c.report("r1", id, path, body) }
	const label = "coordinator.command/sum=yes"

	first := b.submit("sum", `{}`)
	run := c.claim("r1", label).Runs[0]
	require.Equal(t, first, run.RunID)
	assert.Equal(t, http.StatusNoContent, post(first, "started", map[string]any{"epoch": run.Epoch}))
	d, err := b.c.Run(t.Context(), first)
	require.NoError(t, err)
	assert.Equal(t, wire.Running, d.Status)
	assert.Equal(t, http.StatusConflict, c.report("r2", first, "completed", map[string]any{"epoch": run.Epoch, "result_data": map[string]int{"total": 1}}))
	assert.Equal(t, http.StatusConflict, post(first, "completed", map[string]any{"epoch": run.Epoch + 1, "result_data": map[string]int{"total": 1}}))
	for range 2 { // a response may be lost
		assert.Equal(t, http.StatusNoContent, post(first, "completed", map[string]any{"epoch": run.Epoch, "result_data": map[string]int{"total": 1}}))
	}
	d, err = b.c.Run(t.Context(), first)
	require.NoError(t, err)
	assert.JSONEq(t, `{"total": 1}`, string(d.ResultData))
	events, err := b.store.Events(t.Context(), first, 0, 10)
	require.NoError(t, err)
	assert.Equal(t, []string{"run_start"}, lo.Map(events, func(e durable.Event, _ int) string { return e.Name }))

	second, third := b.submit("sum", `{}`), b.submit("sum", `{}`)
	run = c.claim("r1", label).Runs[0]
	require.Equal(t, second, run.RunID)
	require.NoError(t, b.c.Stop(t.Context(), second, "enough", "ann"))
	signals := c.claim("r1", label)
	require.Len(t, signals.Signals, 1, "before the next run")
	assert.Empty(t, signals.Runs)
	assert.Equal(t, durable.SignalCancel, signals.Signals[0].Kind)
	assert.Equal(t, http.StatusNoContent, post(second, "stopped", map[string]any{"epoch": run.Epoch, "reason": "enough"}))
	run = c.claim("r1", label).Runs[0]
	require.Equal(t, third, run.RunID)
	assert.Equal(t, http.StatusNoContent, post(third, "completed", map[string]any{"epoch": run.Epoch, "result_data": map[string]int{"sum": 1}}))
	d, err = b.c.Run(t.Context(), third)
	require.NoError(t, err)
	assert.Equal(t, wire.Failed, d.Status, "the schema does not accept the result")
}

// A runner may repeat a commit whose response was lost: it counts once, also when the coordinator was started again.
func TestRepeatedCommit(t *testing.T) {
	b := newBench(t)
	s := b.serve()
	b.create(`{"name": "job", "type": "procedural", "command": {"argv": ["cat"]}}`)
	c := b.plain(s, wire.RunnerRole)
	id := b.submit("job", `{}`)
	run := c.claim("r1").Runs[0]
	events := map[string]any{"epoch": run.Epoch, "commit_id": "one", "events": []any{map[string]any{"time": time.Now(), "event_type": "said"}}}
	entries := func(id string) map[string]any {
		entry := map[string]any{"seq": 1, "kind": "call", "at": time.Now().UTC()}
		return map[string]any{"epoch": run.Epoch, "commit_id": id, "entries": []any{entry}}
	}
	for _, commit := range []map[string]any{events, events, entries("two"), entries("three")} {
		assert.Equal(t, http.StatusNoContent, c.report("r1", id, "journal", commit))
	}
	other := entries("four")
	other["entries"].([]any)[0].(map[string]any)["kind"] = "other"
	assert.Equal(t, http.StatusConflict, c.report("r1", id, "journal", other))
	assert.Equal(t, http.StatusConflict, c.report("r2", id, "journal", events), "another runner")
	said, err := b.store.Events(t.Context(), id, 0, 10)
	require.NoError(t, err)
	assert.Len(t, said, 1)
	written, err := b.store.Entries(t.Context(), id, 0)
	require.NoError(t, err)
	assert.Len(t, written, 1)
}

// CO-35: a run that no runner takes in time has failed.
func TestStartWithin(t *testing.T) {
	told := make(chan *action.Request, 1)
	b := newBench(t, withTell(func(r *action.Request) { told <- r }))
	b.create(`{"name": "job", "type": "procedural", "command": {"argv": ["true"]}, "hooks": {
		"on_timeout": {"type": "command", "argv": ["true"], "on_error": "continue"}, "on_error": ` + tellHook + `}}`)
	r, err := b.c.Submit(t.Context(), wire.RunRequest{AgentName: "job", StartWithinSeconds: 1}, "ann")
	require.NoError(t, err)
	defer b.run(b.hooksWorker())()
	d := b.await(r.ID)
	assert.Equal(t, []any{wire.Failed, durable.CancelStartBy}, []any{d.Status, d.CancelCause})
	request := <-told
	assert.Equal(t, agent.StatusFailed, request.Status)
	assert.Equal(t, *d.Error, request.Error)
	require.Eventually(t, func() bool {
		d, err := b.c.Run(t.Context(), r.ID)
		return err == nil && slices.ContainsFunc(d.Hooks, func(e wire.HookEvent) bool {
			return e.HookType == "on_timeout" && e.EventType == "hook_complete"
		})
	}, time.Minute, 10*time.Millisecond)
}

// CO-23, CO-26: the result is there before the hook after the run is called, and hooks after runs form a chain, each run a child of
// the one before it.
func TestChainOfRuns(t *testing.T) {
	b := newBench(t)
	next := func(name string) string {
		return `"hooks": {"on_run_finish": {"type": "agent", "agent_name": "` + name + `", "on_error": "continue"}}`
	}
	b.create(`{"name": "c", "type": "procedural", "command": {"argv": ["cat"]}}`,
		`{"name": "b", "type": "procedural", "command": {"argv": ["cat"]}, `+next("c")+`}`,
		`{"name": "a", "type": "procedural", "command": {"argv": ["cat"]}, `+next("b")+`}`)
	id := b.submit("a", `{"x": 1}`)
	d := b.work(id)
	assert.Equal(t, wire.Completed, d.Status)
	child := b.child(id, "b")
	grandchild := b.child(child.ID, "c")
	assert.Equal(t, durable.StatusCompleted, grandchild.Status)
	first, err := b.store.Run(t.Context(), id)
	require.NoError(t, err)
	assert.False(t, first.Updated.After(child.Created), "the run has ended before")
}

// child returns the run of a blueprint that a hook of a run has started.
func (b *bench) child(id agent.RunID, name string) (child durable.Run) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		list, err := b.store.List(b.t.Context(), durable.Filter{Parent: id, Name: name})
		list = slices.DeleteFunc(list, func(r durable.Run) bool { return r.Kind == coordinator.KindHooks })
		if err == nil && len(list) == 1 {
			child = list[0]
		}
		return child.ID != ""
	}, time.Minute, 5*time.Millisecond)
	return child
}

// A hook after a run that is not awaited starts its run, whose own hooks are called, and does not wait for it.
func TestAsyncHook(t *testing.T) {
	b := newBench(t)
	b.create(`{"name": "c", "type": "procedural", "command": {"argv": ["cat"]}}`,
		`{"name": "b", "type": "procedural", "command": {"argv": ["cat"]}, "hooks": {"on_run_finish": {"type": "agent", "agent_name": "c", "on_error": "continue"}}}`,
		`{"name": "a", "type": "procedural", "command": {"argv": ["cat"]},
			"hooks": {"on_run_finish": {"type": "agent", "agent_name": "b", "on_error": "ignore", "mode": "async"}}}`)
	id := b.submit("a", `{}`)
	b.work(id)
	child := b.child(id, "b")
	assert.Equal(t, durable.StatusCompleted, child.Status)
	assert.Equal(t, durable.StatusCompleted, b.child(child.ID, "c").Status)
}

// Blueprints that name each other although that was refused do not start each other without end.
func TestCycleAtRunTime(t *testing.T) {
	b := newBench(t)
	for name, next := range map[string]string{"a": "b", "b": "a"} { // as two requests at the same time may store them
		_, err := b.store.PutDocument(t.Context(), durable.Document{Kind: wire.KindBlueprint, Name: name, Data: []byte(`{"name": "` + name + `",
			"type": "procedural", "command": {"argv": ["cat"]}, "hooks": {"on_run_finish": {"type": "agent", "agent_name": "` + next + `", "on_error": "continue"}}}`)})
		require.NoError(t, err)
	}
	id := b.submit("a", `{}`)
	b.work(id)
	d, err := b.c.Run(t.Context(), b.child(id, "b").ID)
	require.NoError(t, err)
	assert.Equal(t, "hook_failed", d.Hooks[len(d.Hooks)-1].EventType)
	all, err := b.store.List(t.Context(), durable.Filter{Kind: durable.KindCommand})
	require.NoError(t, err)
	assert.Len(t, all, 2)
}

// A run whose hooks cannot be loaded can be stopped.
func TestStopWithoutHooks(t *testing.T) {
	b := newBench(t, withFuncs(map[string]action.Body{"gone": changeOnce("", "")}))
	b.create(startHook(`{"type": "func", "func": "gone", "on_error": "block"}`))
	id := b.submit("job", `{}`)
	other, err := coordinator.New(coordinator.Options{Store: b.store})
	require.NoError(t, err)
	b.c = other
	defer b.run(b.hooksWorker())()
	require.Eventually(t, func() bool {
		r, err := b.store.Run(t.Context(), id)
		return err == nil && r.Attempts > 0
	}, time.Minute, 5*time.Millisecond)
	require.NoError(t, b.c.Stop(t.Context(), id, "", "ann"))
	d := b.await(id)
	assert.Equal(t, wire.Stopped, d.Status)
	assert.Equal(t, "cancelled: by ann", lo.FromPtr(d.Error))
}

// CO-13: a hook whose blueprint is gone has failed.
func TestHookWithoutBlueprint(t *testing.T) {
	b := newBench(t)
	b.create(`{"name": "check", "type": "procedural", "command": {"argv": ["true"]}}`, startHook(`{"type": "agent", "agent_name": "check", "on_error": "block"}`))
	require.NoError(t, b.store.DeleteDocument(t.Context(), wire.KindBlueprint, "check", 0))
	d := b.work(b.submit("job", `{}`))
	assert.Equal(t, wire.Failed, d.Status)
	assert.Contains(t, *d.Error, "check")
}
