package coordinator_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
)

// lie is a report of a runner that does not keep to the protocol.
type lie struct {
	path   string
	body   map[string]any
	status int
}

// A runner that lies about its run is refused: it cannot claim that a hook has decided, let the coordinator run a program, or store
// what the API could not read again.
func TestRunnerThatLies(t *testing.T) {
	b := newBench(t)
	s := b.serve()
	b.create(`{"name": "job", "type": "procedural", "command": {"argv": ["cat"]}}`)
	c := b.plain(s, wire.RunnerRole)
	id := b.submit("job", `{}`)
	run := c.claim("r1").Runs[0]
	now := time.Now().UTC().Format(time.RFC3339)
	update := func(members map[string]any) map[string]any { return map[string]any{"update": members} }
	event := func(name string) map[string]any {
		return map[string]any{"events": []any{map[string]any{"event_type": name, "time": now}}}
	}
	gate := func(kind durable.WaitKind) map[string]any {
		return update(map[string]any{"status": "waiting", "waits": []any{map[string]any{"id": "g", "kind": kind, "hash": "h", "host": "localhost", "asked": now}}})
	}
	for name, l := range map[string]lie{
		"a hook has blocked":       {"events", event("hook_blocked"), 422},
		"a hook in the journal":    {"journal", event("hook_complete"), 422},
		"the run has ended":        {"events", event("run_completed"), 422},
		"it has started":           {"journal", event("run_start"), 422},
		"an event without a type":  {"events", event(""), 422},
		"a gate by command":        {"journal", gate(durable.WaitCommand), 422},
		"a gate by file":           {"journal", gate(durable.WaitFile), 422},
		"a gate by callback":       {"journal", gate(durable.WaitCallback), 422},
		"an unknown status":        {"journal", update(map[string]any{"status": "done"}), 422},
		"back to ready":            {"journal", update(map[string]any{"status": "ready"}), 422},
		"a malformed result":       {"journal", update(map[string]any{"status": "completed", "result": []byte("{")}), 422},
		"an entry without a kind":  {"journal", map[string]any{"entries": []any{map[string]any{"seq": 1, "kind": "", "at": now}}}, 422},
		"a gap in the journal":     {"journal", map[string]any{"entries": []any{map[string]any{"seq": 7, "kind": "call", "at": now}}}, 409},
		"a stale epoch":            {"renew", map[string]any{"epoch": run.Epoch - 1}, 409},
		"an epoch of the future":   {"completed", map[string]any{"epoch": run.Epoch + 1}, 409},
		"a negative epoch":         {"started", map[string]any{"epoch": -1}, 409},
		"no epoch":                 {"started", map[string]any{"epoch": 0}, 409},
		"no epoch in a journal":    {"journal", map[string]any{"epoch": 0, "handled_signals": 1}, 409},
		"an epoch that is a text":  {"started", map[string]any{"epoch": "1"}, 422},
		"an epoch that is too big": {"started", map[string]any{"epoch": json.RawMessage("1e30")}, 422},
		"a long lease":             {"renew", map[string]any{"lease_seconds": 601}, 422},
	} {
		t.Run(name, func(t *testing.T) {
			if _, ok := l.body["epoch"]; !ok {
				l.body["epoch"] = run.Epoch
			}
			if l.path == "journal" {
				l.body["commit_id"] = name
			}
			status, text := c.send(http.MethodPost, "/runner/runs/"+string(id)+"/"+l.path, "r1", l.body)
			assert.Equal(t, l.status, status, string(text))
			assert.Contains(t, string(text), `"detail"`)
		})
	}
	d, err := b.c.Run(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, wire.Running, d.Status, "nothing of it counts")
	events, err := b.store.Events(t.Context(), id, 0, 10)
	require.NoError(t, err)
	assert.Empty(t, events)
	assert.Equal(t, http.StatusNoContent, c.report("r1", id, "completed", map[string]any{"epoch": run.Epoch}))
}

// A runner sees the runs that it has, and their blueprints: those of others may hold secrets.
func TestRunsOfOtherRunners(t *testing.T) {
	b := newBench(t)
	s := b.serve()
	b.create(`{"name": "job", "type": "procedural", "command": {"argv": ["cat"], "env": {"KEY": "hidden"}}}`)
	c := b.plain(s, wire.RunnerRole)
	other, _ := b.newToken("other", wire.RunnerRole, 0)
	id := b.submit("job", `{"a": "hidden"}`)
	run := c.claim("r1").Runs[0]
	for _, stranger := range []struct {
		plain

		runner string
	}{{c, "r2"}, {plain{t, s.URL, other}, "r1"}} {
		for _, path := range []string{"/runner/blueprints/job?version=1", "/runner/runs/" + string(id), "/runner/runs/" + string(id) + "/journal"} {
			_, text := stranger.send(http.MethodGet, path, stranger.runner, nil)
			assert.NotContains(t, string(text), "hidden", path)
		}
		for _, what := range []string{"started", "renew", "completed", "failed", "stopped", "release", "journal"} {
			body := map[string]any{"epoch": run.Epoch}
			if what == "journal" {
				body["commit_id"] = "1"
			}
			assert.Equal(t, http.StatusConflict, stranger.report(stranger.runner, id, what, body), what)
		}
		assert.Empty(t, stranger.claim(stranger.runner).Signals)
	}
	status, text := c.send(http.MethodGet, "/runner/blueprints/job?version=1", "r1", nil)
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, string(text), "hidden")
}

// What a runner has begun is known to the next one, whichever kind it is, and the same report again changes nothing.
func TestBegun(t *testing.T) {
	b := newBench(t)
	s := b.serve()
	b.create(`{"name": "job", "type": "procedural", "command": {"argv": ["cat"]}}`)
	c := b.plain(s, wire.RunnerRole)
	id := b.submit("job", `{}`)
	run := c.claim("r1").Runs[0]
	assert.Equal(t, http.StatusNoContent, c.report("r1", id, "release", map[string]any{"epoch": run.Epoch}))
	run = c.claim("r1").Runs[0]
	assert.False(t, run.Begun, "nothing has started")
	for range 2 {
		assert.Equal(t, http.StatusNoContent, c.report("r1", id, "started", map[string]any{"epoch": run.Epoch}))
	}
	events, err := b.store.Events(t.Context(), id, 0, 10)
	require.NoError(t, err)
	assert.Len(t, events, 1)
	assert.Equal(t, http.StatusNoContent, c.report("r1", id, "release", map[string]any{"epoch": run.Epoch}))
	run = c.claim("r2").Runs[0]
	assert.True(t, run.Begun)
	assert.Equal(t, http.StatusNoContent, c.report("r2", id, "release", map[string]any{"epoch": run.Epoch}))
	assert.Contains(t, *b.work(id).Error, "it is unknown what the command did", "the runner in Go knows it, too")
}
