package pipeline_test

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
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/sqlite"
	"github.com/grapnel-go/grapnel/internal/parts"
	"github.com/grapnel-go/grapnel/pipeline"
)

// bench is a directory with a store, where tests run pipelines.
type bench struct {
	t      *testing.T
	dir    string
	store  durable.Store
	global string // the file with the user's hooks
	driver agent.Driver
	host   action.Host
	again  func(name string) bool
	mu     sync.Mutex // guards asked while agents run side by side
	asked  []string   // the inputs of the agents
}

func newBench(t *testing.T) *bench {
	t.Helper()
	parts.Command(t, "sh", "install a shell")
	dir := t.TempDir()
	store, err := sqlite.Open(t.Context(), filepath.Join(dir, "runs.db"), sqlite.Options{Sync: sqlite.SyncNormal})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, store.Close()) })
	b := &bench{t: t, dir: dir, store: store}
	require.NoError(t, os.Mkdir(b.path("work"), 0o700))
	return b
}

// path returns the path of a file.
func (b *bench) path(names ...string) string {
	return filepath.Join(append([]string{b.dir}, names...)...)
}

// write writes a file.
func (b *bench) write(name, text string) string {
	b.t.Helper()
	require.NoError(b.t, os.WriteFile(b.path(name), []byte(text), 0o600))
	return b.path(name)
}

// lines returns the lines of a file in the workspace.
func (b *bench) lines(name string) []string {
	b.t.Helper()
	text, err := os.ReadFile(b.path("work", name))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(b.t, err)
	if len(text) == 0 {
		return nil // a program has opened it and not yet written
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// load loads a pipeline.
func (b *bench) load(text string) *pipeline.Pipeline {
	b.t.Helper()
	p, err := pipeline.Load(b.write("pipeline.yaml", text), pipeline.LoadOptions{Global: b.global, Host: b.host})
	require.NoError(b.t, err)
	return p
}

// submit starts a session.
func (b *bench) submit(text string) durable.Run {
	b.t.Helper()
	job, err := b.load(text).Job(pipeline.SessionOptions{Name: "demo", Dir: b.path("sessions", "demo"), Workspace: b.path("work")})
	require.NoError(b.t, err)
	runs, err := b.store.Submit(b.t.Context(), job)
	require.NoError(b.t, err)
	return runs[0]
}

// options returns the options of workers.
func (b *bench) options(keeper *durable.Keeper) pipeline.Options {
	return pipeline.Options{
		Pipelines: []string{"p", "child"}, Host: b.host, Again: b.again,
		Agents: func(_ context.Context, s pipeline.AgentStage) (*agent.Agent, func() error, error) {
			driver := agent.DriverFunc(func(ctx context.Context, state agent.State) (agent.Step, error) {
				if state.RunStepCount() == 0 {
					var texts []string
					for _, message := range state.Messages() {
						texts = append(texts, message.Text())
					}
					b.mu.Lock()
					b.asked = append(b.asked, strings.Join(texts, " + "))
					b.mu.Unlock()
				}
				return b.driver.Next(ctx, state).Get()
			})
			a, err := builder.New().WithName(s.Agent).WithDriver(driver).
				With(capability.UseTools(s.Tools...), capability.UseDurability{Keeper: keeper}).Build().Get()
			return a, nil, err
		},
	}
}

// worker returns a worker.
func (b *bench) worker() *durable.Worker {
	b.t.Helper()
	keeper := durable.Keep(b.store, durable.Options{})
	w, err := durable.NewWorker(b.store, durable.WorkerOptions{Runners: pipeline.Runners(b.store, keeper, b.options(keeper))})
	require.NoError(b.t, err)
	return w
}

// serve lets a worker run until a session has ended.
func (b *bench) serve(id agent.RunID) pipeline.Status {
	b.t.Helper()
	w := b.worker()
	var working sync.WaitGroup
	working.Go(func() { assert.NoError(b.t, w.Run(b.t.Context())) })
	defer working.Wait()
	defer w.Drain()
	require.Eventually(b.t, func() bool { return b.status(id).Status.Ended() }, 5*time.Minute, 20*time.Millisecond)
	return b.status(id)
}

// run runs a pipeline to its end and returns its status.
func (b *bench) run(text string) pipeline.Status {
	b.t.Helper()
	run := b.submit(text)
	require.NoError(b.t, b.worker().ExecuteReady(b.t.Context()))
	return b.status(run.ID)
}

func (b *bench) status(id agent.RunID) pipeline.Status {
	b.t.Helper()
	run, err := b.store.Run(b.t.Context(), id)
	require.NoError(b.t, err)
	s, err := pipeline.StatusOf(b.t.Context(), b.store, run)
	require.NoError(b.t, err)
	return s
}

// iterations returns the runs of the iterations of a session.
func (b *bench) iterations(id agent.RunID) []durable.Run {
	b.t.Helper()
	runs, err := b.store.List(b.t.Context(), durable.Filter{Parent: id, Limit: 1000})
	require.NoError(b.t, err)
	return runs
}
