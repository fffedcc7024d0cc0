package durable_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
	"github.com/grapnel-go/grapnel/durable/sqlite"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// parkedRuns is how many runs the test parks; "make parked" does it with 100,000.
const parkedRuns = "GRAPNEL_PARKED_RUNS"

// Parked runs are rows: no goroutine, nothing in memory. Each continues when it was
// approved, and of two approvals at once exactly one counts.
func TestParkedRuns(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv(parkedRuns))
	if err != nil {
		n = 200
	}
	path := filepath.Join(t.TempDir(), "runs.db")
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{Sync: sqlite.SyncNormal})
	require.NoError(t, err)
	defer store.Close()
	other, err := sqlite.Open(t.Context(), path, sqlite.Options{Sync: sqlite.SyncNormal})
	require.NoError(t, err)
	defer other.Close()
	k := durable.Keep(store, durable.Options{})
	var paid atomic.Int64
	pay := toolexec.Func("pay", "Pays.", func(context.Context, struct{ Cents int }) (string, error) { paid.Add(1); return "paid", nil })
	a, err := builder.New().WithName("clerk").
		WithDriver(agenttest.Script(agenttest.Call("pay", `{"Cents":100}`), agenttest.Say("Paid.")).EachRun()).
		With(capability.UseTools(pay), capability.UseHooks(hooks.On(hooks.AtPreToolUse, "guard", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Ask("it pays") })), capability.UseDurability{Keeper: k},
			capability.UseApproval(agent.ParkApprover)).Build().Get()
	require.NoError(t, err)

	goroutines, heap := runtime.NumGoroutine(), inUse()
	ids := make([]agent.RunID, n)
	started := time.Now()
	for i := range ids {
		ids[i] = agent.NewRunID()
		s, err := a.RunWith(t.Context(), agent.RunSettings{ID: ids[i]}, agent.NewState(), agent.UserText("Pay the bill.")).Get()
		require.NoError(t, err)
		require.True(t, s.Waiting())
	}
	parking := time.Since(started)
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= goroutines+5 }, time.Minute, 5*time.Millisecond,
		"a run that waits has no goroutine; those of the last queries end by themselves")
	more := max(inUse(), heap) - heap
	size := int64(0)
	for _, file := range []string{path, path + "-wal"} {
		if info, err := os.Stat(file); err == nil {
			size += info.Size()
		}
	}

	some := ids[:min(n, 1000)]
	var took []time.Duration
	for _, id := range some {
		var won, lost atomic.Int64
		var both sync.WaitGroup
		for _, s := range []durable.Store{store, other} {
			both.Go(func() {
				switch err := durabletest.Approve(context.Background(), s, id, "call_1_1", agent.Approval{Verdict: agent.Approve}); {
				case err == nil:
					won.Add(1)
				case errors.Is(err, durable.ErrAnswered):
					lost.Add(1)
				default:
					assert.NoError(t, err)
				}
			})
		}
		both.Wait()
		require.EqualValues(t, 1, won.Load())
		require.EqualValues(t, 1, lost.Load())
		began := time.Now()
		s, err := k.Resume(t.Context(), a, id, durable.TakeFree).Get()
		took = append(took, time.Since(began))
		require.NoError(t, err)
		require.Equal(t, agent.StatusDone, s.Status())
	}
	assert.EqualValues(t, len(some), paid.Load())
	slices.Sort(took)
	t.Logf("%d parked runs: %s to park one, %d bytes of memory and %d on disk each; resumed in %s (median), %s (p99)",
		n, parking/time.Duration(n), int(more)/n, int(size)/n, took[len(took)/2], took[len(took)*99/100])
}

// Of two processes that resume one run at once, one resumes it; the other gets a HeldError or the ended run.
func TestTwoResumeOneRun(t *testing.T) {
	store, w := openStore(t), newWorld()
	k := durable.Keep(store, durable.Options{})
	parking := func(k *durable.Keeper) *agent.Agent {
		return w.agent(t, k, asks("guard"), capability.UseApproval(agent.ParkApprover))
	}
	s, err := parking(k).Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	id := s.Run().ID
	require.NoError(t, durabletest.Approve(t.Context(), store, id, "a", agent.Approval{Verdict: agent.Approve}))
	require.NoError(t, durabletest.Approve(t.Context(), store, id, "b", agent.Approval{Verdict: agent.Approve}))
	var both sync.WaitGroup
	for range 4 {
		both.Go(func() {
			k := durable.Keep(store, durable.Options{})
			s, err := k.Resume(context.Background(), parking(k), id, durable.TakeFree).Get()
			var held *durable.HeldError
			if !errors.As(err, &held) && assert.NoError(t, err) {
				assert.Equal(t, agent.StatusDone, s.Status())
			}
		})
	}
	both.Wait()
	assert.Len(t, w.effects, 2*lastStep)
	for key, n := range w.effects {
		assert.Equal(t, 1, n, key)
	}
	for step, n := range w.models {
		assert.Equal(t, 1, n, step)
	}
}

func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}
