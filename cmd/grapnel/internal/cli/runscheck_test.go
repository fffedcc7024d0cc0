package cli

import (
	"database/sql"
	"encoding/json"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/agents"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/api"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/sqlite"
)

// The command reads a store or asks a service, and reports a history that is not whole.
func TestRunsCheck(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	require.NoError(t, err)
	defer store.Close()
	c, err := coordinator.New(coordinator.Options{Store: store})
	require.NoError(t, err)
	_, err = c.CreateBlueprint(t.Context(), []byte(`{"name": "job", "type": "procedural", "command": {"argv": ["cat"]}}`), "ann")
	require.NoError(t, err)
	run, err := c.Submit(t.Context(), wire.RunRequest{AgentName: "job"}, "ann")
	require.NoError(t, err)
	server := httptest.NewServer(api.Handler(c, api.Options{Token: "secret"}))
	defer server.Close()
	t.Setenv(storage.TokenVariable, "secret")
	t.Setenv(agents.KeyVariable, "")
	forms := map[string][]string{"service": {"--server", server.URL}, "store": {"--store", path}}
	check := func(want int, text string, args ...string) {
		t.Helper()
		for name, form := range forms {
			code, written := execute(t, append(append([]string{"runs", "check"}, form...), args...))
			assert.Equal(t, want, code, "%s: %s", name, written)
			assert.Contains(t, written, text, name)
		}
	}
	check(console.ExitDone, "Checked 1 runs (1 have not ended) with 0 events")
	check(console.ExitFailed, "the run has not ended: it is pending", "--ended")

	l, err := store.Acquire(t.Context(), run.ID, "r1", time.Hour, durable.TakeFree)
	require.NoError(t, err)
	now := time.Now()
	require.NoError(t, store.Commit(t.Context(), l, durable.Commit{
		Events: []durable.Event{{At: now, Name: "one"}, {At: now, Name: "two"}, {At: now, Name: "three"}},
		Update: durable.Update{Status: durable.StatusCompleted, Result: json.RawMessage(`{"text": "done"}`)},
	}))
	check(console.ExitDone, "with 4 events and 0 events of hooks: no problem", "--ended", "--since", "1h", string(run.ID))

	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer db.Close()
	_, err = db.ExecContext(t.Context(), `DELETE FROM events WHERE name = 'two'`)
	require.NoError(t, err)
	check(console.ExitFailed, "event 3 (three) follows event 1: events are missing")
	check(console.ExitFailed, `"problem": "event 3 (three) follows event 1: events are missing"`, "--json")

	code, written := execute(t, []string{"runs", "check", "--server", "ftp://x"})
	assert.Equal(t, console.ExitUsage, code)
	assert.Contains(t, written, "ftp://…: expected")
	code, written = execute(t, []string{"runs", "check", "--server", server.URL, "run_unknown"})
	assert.Equal(t, console.ExitFailed, code, written)
	assert.Contains(t, written, "no such run")
}

// A coordinator does not offer what executes runs or maintains its store.
func TestCommandsThatNeedAStore(t *testing.T) {
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "runs.db"), sqlite.Options{})
	require.NoError(t, err)
	defer store.Close()
	c, err := coordinator.New(coordinator.Options{Store: store})
	require.NoError(t, err)
	_, err = c.CreateBlueprint(t.Context(), []byte(`{"name": "job", "type": "procedural", "command": {"argv": ["cat"]}}`), "ann")
	require.NoError(t, err)
	run, err := c.Submit(t.Context(), wire.RunRequest{AgentName: "job"}, "ann")
	require.NoError(t, err)
	server := httptest.NewServer(api.Handler(c, api.Options{Token: "secret"}))
	defer server.Close()
	t.Setenv(storage.TokenVariable, "secret")
	t.Setenv(agents.KeyVariable, "")
	for _, args := range [][]string{
		{"runs", "delete", string(run.ID)}, {"runs", "resume", "--all"},
		{"approvals", "serve"},
	} {
		code, written := execute(t, append(args, "--server", server.URL))
		assert.Equal(t, console.ExitUsage, code, "%q: %s", args, written)
		assert.Contains(t, written, "is a coordinator: this command needs a store", args)
	}
	code, written := execute(t, []string{"runs", "prune", "--older-than", "1h", "--server", server.URL})
	assert.Equal(t, console.ExitDone, code, written)
	assert.Contains(t, written, "Runs removed: 0")
	for _, on := range []string{"on", "off"} {
		code, written := execute(t, []string{"runs", "deny-tools", on, "--server", server.URL})
		assert.Equal(t, console.ExitDone, code, "%s: %s", on, written)
	}
}
