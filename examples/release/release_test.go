package release_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/gate"
	"github.com/grapnel-go/grapnel/durable/sqlite"
	"github.com/grapnel-go/grapnel/internal/parts"
	"github.com/grapnel-go/grapnel/pipeline"
)

// The session waits at its gate, and continues in another process.
func TestTheExample(t *testing.T) {
	t.Parallel()
	parts.Command(t, "sh", "install a shell")
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(".")))
	host := action.Host{Parks: true}
	p, err := pipeline.Load(filepath.Join(dir, "release.yaml"), pipeline.LoadOptions{Host: host})
	require.NoError(t, err)
	job, err := p.Job(pipeline.SessionOptions{Name: "friday", Dir: filepath.Join(dir, ".grapnel", "pipelines", "friday"), Workspace: dir})
	require.NoError(t, err)
	store, err := sqlite.Open(t.Context(), filepath.Join(dir, "runs.db"), sqlite.Options{})
	require.NoError(t, err)
	defer store.Close()
	runs, err := store.Submit(t.Context(), job)
	require.NoError(t, err)

	work := func() pipeline.Status {
		keeper := durable.Keep(store, durable.Options{})
		w, err := durable.NewWorker(store, durable.WorkerOptions{Runners: pipeline.Runners(store, keeper, pipeline.Options{Pipelines: []string{p.Name}, Host: host})})
		require.NoError(t, err)
		require.NoError(t, w.ExecuteReady(t.Context()))
		about, err := store.Run(t.Context(), runs[0].ID)
		require.NoError(t, err)
		status, err := pipeline.StatusOf(t.Context(), store, about)
		require.NoError(t, err)
		return status
	}
	status := work()
	require.Len(t, status.WaitsFor, 1, "%+v", status)
	assert.Equal(t, `Create the file "go" to begin the work.`, status.WaitsFor[0].Reason)

	watcher, err := gate.NewWatcher(store, gate.Options{Poll: 10 * time.Millisecond})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() { watcher.Run(ctx) })
	defer watching.Wait()
	defer stop()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	require.Eventually(t, func() bool { return work().Status.Ended() }, 5*time.Minute, 50*time.Millisecond)

	status = work()
	assert.Equal(t, pipeline.Completed, status.Reason, status.Error)
	text, err := os.ReadFile(filepath.Join(dir, "journal.txt"))
	require.NoError(t, err)
	assert.Equal(t, strings.TrimSpace(`
session friday
plan 1: continue
plan 2: continue
plan 3: stop
work 1:
work 2:
work 3:
review 1:
ended`), strings.TrimSpace(strings.ReplaceAll(string(text), ": \n", ":\n")))
}
