package durable_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// silentStore does not answer Reconcile until it is released.
type silentStore struct {
	durable.Store

	release chan struct{}
}

func (s *silentStore) Reconcile(ctx context.Context) (durable.Reconciled, error) {
	<-s.release
	return s.Store.Reconcile(ctx)
}

// A worker reports that the store does not answer while that lasts, and when it answers again.
func TestAWorkerReportsAStall(t *testing.T) {
	store, w := &silentStore{openStore(t), make(chan struct{})}, newWorld()
	c := employ(t, store, func(k *durable.Keeper) *agent.Agent { return w.agent(t, k) }, durable.WorkerOptions{}, durable.Options{})
	c.next(t, durable.WorkerStalled)
	assert.Contains(t, c.worker.Health().Error, "has not answered")
	close(store.release)
	e := c.next(t, durable.WorkerRecovered)
	require.NoError(t, e.Err)
	assert.GreaterOrEqual(t, e.Took, time.Second)
	require.Eventually(t, func() bool { return c.worker.Health().Error == "" }, time.Minute, 10*time.Millisecond)
}

// countingReconcile counts the calls of Reconcile.
type countingReconcile struct {
	durable.Store

	calls atomic.Int64
}

func (s *countingReconcile) Reconcile(ctx context.Context) (durable.Reconciled, error) {
	s.calls.Add(1)
	return s.Store.Reconcile(ctx)
}

// A worker reports that the clock of its machine was set, and expires nothing in the pass that notices a jump ahead.
func TestAWorkerReportsAClockThatJumps(t *testing.T) {
	store, w := &countingReconcile{Store: openStore(t)}, newWorld()
	keeper := durable.Keep(store, durable.Options{})
	var jumps []time.Duration
	worker, err := durable.NewWorker(store, durable.WorkerOptions{
		Runners: map[durable.Kind]durable.Runner{durable.KindAgent: durable.AgentRunner(keeper, durable.AgentMap{"clerk": w.agent(t, keeper)})},
		Observe: func(e durable.WorkerEvent) {
			if e.Kind == durable.WorkerClockJumped {
				jumps = append(jumps, e.Jump.Round(time.Minute))
			}
		},
	})
	require.NoError(t, err)
	offset := time.Duration(0)
	worker.SetClock(func() time.Time { return time.Now().Add(offset) })
	for i, tc := range []struct {
		offset     time.Duration
		jump       time.Duration // zero when none is reported
		reconciles bool
	}{
		{0, 0, true}, {time.Second, 0, true}, {time.Hour, time.Hour, false}, {time.Hour, 0, true}, {0, -time.Hour, true}, {0, 0, true},
	} {
		jumps, offset = nil, tc.offset
		before := store.calls.Load()
		require.NoError(t, worker.ExecuteReady(t.Context())) // one pass
		if tc.jump == 0 {
			assert.Empty(t, jumps, i)
		} else {
			assert.Equal(t, []time.Duration{tc.jump}, jumps, i)
		}
		assert.Equal(t, tc.reconciles, store.calls.Load() > before, i)
	}
}

// askingRunner makes each run wait for an answer, of a kind.
type askingRunner struct {
	durable.Runner

	store durable.Store
	kind  func(durable.Run) durable.WaitKind
}

func (r *askingRunner) Execute(ctx context.Context, about durable.Run) error {
	return r.store.Commit(ctx, about.Lease(), durable.Commit{Update: durable.Update{
		Status: durable.StatusWaiting, Waits: []durable.Wait{{ID: "pay", Kind: r.kind(about), Subject: "h"}},
	}})
}

// A worker reports a run that waits because a call may have happened, and no other run that waits.
func TestAWorkerReportsDoubt(t *testing.T) {
	store, w := openStore(t), newWorld()
	keeper := durable.Keep(store, durable.Options{})
	ordinary := submitClerk(t, store, nil)
	kind := func(r durable.Run) durable.WaitKind {
		if r.ID == ordinary.ID {
			return durable.WaitApproval
		}
		return durable.WaitDoubt
	}
	runner := &askingRunner{durable.AgentRunner(keeper, durable.AgentMap{"clerk": w.agent(t, keeper)}), store, kind}
	c := employ(t, store, nil, durable.WorkerOptions{
		Capacity: 1, Runners: map[durable.Kind]durable.Runner{durable.KindAgent: runner},
	}, durable.Options{})
	assert.Equal(t, ordinary.ID, c.next(t, durable.WorkerReleased).Run.ID)
	doubtful := submitClerk(t, store, nil)
	assert.Equal(t, doubtful.ID, c.next(t, durable.WorkerInDoubt).Run.ID, "the first of these events")
}

// agedStore returns how queues were served some time ago.
type agedStore struct {
	durable.Store

	age atomic.Int64
}

func (s *agedStore) QueueServices(ctx context.Context, keys ...durable.Key) (map[durable.Key]durable.Service, error) {
	all, err := s.Store.QueueServices(ctx, keys...)
	for key, service := range all {
		if service.LastPoll.IsZero() && service.Backlog > 0 {
			service.Oldest = service.Oldest.Add(-time.Duration(s.age.Load()))
			all[key] = service
		}
	}
	return all, err
}

// A worker reports a queue that no worker serves once, and not while its runs have not waited for long.
func TestAWorkerReportsUnservedRuns(t *testing.T) {
	for _, age := range []time.Duration{time.Minute, 71 * time.Second} {
		store, w := &agedStore{Store: openStore(t)}, newWorld()
		store.age.Store(int64(age))
		stranger := durable.Job{Name: "stranger", Demands: map[string]string{"gpu": "a100"}}
		_, err := store.Submit(t.Context(), stranger)
		require.NoError(t, err)
		c := employ(t, store, func(k *durable.Keeper) *agent.Agent { return w.agent(t, k) }, durable.WorkerOptions{Poll: time.Millisecond}, durable.Options{})
		if age < 70*time.Second {
			submitClerk(t, store, nil)
			c.next(t, durable.WorkerReleased) // the queues are measured before
			c.stop()
			close(c.events)
			for e := range c.events {
				assert.NotEqual(t, durable.WorkerUnserved, e.Kind)
			}
			continue
		}
		e := c.next(t, durable.WorkerUnserved)
		assert.Equal(t, stranger.Needs(), e.Needs)
		assert.Equal(t, 1, e.Service.Backlog)
		assert.True(t, e.Service.LastPoll.IsZero())
	}
}
