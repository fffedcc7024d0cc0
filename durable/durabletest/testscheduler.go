package durabletest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// TestScheduler tests a scheduler against the contract of durable.Scheduler. Open returns a scheduler for the ready runs of
// an empty store, which openStore returns; the tests make the offers that the store owes. How soon a delivery comes is not
// tested. TestScheduler closes the stores.
func TestScheduler(t *testing.T, open func(t *testing.T, s durable.Store) durable.Scheduler, openStore func(t *testing.T) durable.Store) {
	for name, test := range map[string]func(s *schedulerTest){
		"a worker gets a run that it serves":    testDelivery,
		"a waiting worker gets a new run":       testWaitingWorker,
		"no other worker gets it":               testOtherWorker,
		"announced twice is once":               testOfferTwice,
		"a higher number replaces a lower":      testNewerOffer,
		"each time that a run becomes ready":    testReadyAgain,
		"Next ends with its context":            testNextContext,
		"a lost delivery comes back":            testLostDelivery,
		"a returned delivery comes back":        testReturn,
		"a returned delivery for other workers": testReturnToOther,
		"a run that needs no worker":            testEndedRun,
		"one run and many workers":              testOneLease,
		"many runs and many workers":            testAllLeased,
	} {
		t.Run(name, func(t *testing.T) {
			store := openStore(t)
			t.Cleanup(func() { assert.NoError(t, store.Close(), "close the store") })
			test(&schedulerTest{T: t, store: store, scheduler: open(t, store)})
		})
	}
}

type schedulerTest struct {
	*testing.T

	store     durable.Store
	scheduler durable.Scheduler
	workers   atomic.Int64
}

// offer makes the offers that the store owes, and returns them.
func (s *schedulerTest) offer() []durable.Offer {
	offers, err := s.store.Owed(s.Context(), time.Second, 1000)
	if !assert.NoError(s, err) || len(offers) == 0 {
		return nil
	}
	assert.NoError(s, s.scheduler.Offer(s.Context(), offers...))
	assert.NoError(s, s.store.RecordOffers(s.Context(), offerIDs(offers)...))
	return offers
}

// keepOffering reconciles, and makes the offers that the store owes, until the returned func is called.
func (s *schedulerTest) keepOffering() (stop func()) {
	done := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(10 * time.Millisecond):
			}
			_, err := s.store.Reconcile(s.Context())
			assert.NoError(s, err)
			s.offer()
		}
	})
	return func() {
		close(done)
		group.Wait()
	}
}

// worker returns a worker with a name of its own that serves jobs with these names.
func (s *schedulerTest) worker(names ...string) durable.WorkerInfo {
	return durable.WorkerInfo{
		Owner: fmt.Sprint("worker ", s.workers.Add(1)), TTL: hour,
		Serves: func(n durable.Needs) bool { return slices.Contains(names, n.Name) },
	}
}

// patient returns a context that ends when the test has waited long enough.
func (s *schedulerTest) patient() context.Context {
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	s.Cleanup(cancel)
	return ctx
}

// next waits for the delivery of a run, and returns its lease. It skips deliveries of runs that need no worker.
func (s *schedulerTest) next(ctx context.Context, w durable.WorkerInfo) (durable.Lease, durable.Delivery, error) {
	for {
		d, err := s.scheduler.Next(ctx, w)
		if err != nil {
			return durable.Lease{}, nil, err
		}
		if l := d.Lease(); l != nil {
			return *l, d, nil
		}
		l, err := s.store.Acquire(ctx, d.ID().Run, w.Owner, w.TTL, durable.TakeFree)
		switch {
		case errors.Is(err, durable.ErrEnded), errors.Is(err, durable.ErrNotFound), errors.As(err, new(*durable.HeldError)):
			if err := d.Ack(ctx); err != nil {
				return durable.Lease{}, nil, err
			}
			continue
		}
		return l, d, err
	}
}

// take waits for a run for a new worker, and returns its lease.
func (s *schedulerTest) take(names ...string) durable.Lease {
	s.Helper()
	return s.takeAs(s.worker(names...))
}

func (s *schedulerTest) takeAs(w durable.WorkerInfo) durable.Lease {
	s.Helper()
	ctx := s.patient()
	l, d, err := s.next(ctx, w)
	require.NoError(s, err, "wait for a run")
	for range 2 { // it may be repeated
		require.NoError(s, d.Ack(ctx))
	}
	require.Equal(s, l.Run, d.ID().Run)
	return l
}

// takeNone checks that a new worker gets no run.
func (s *schedulerTest) takeNone(names ...string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), min(patience, 300*time.Millisecond))
	defer cancel()
	l, _, err := s.next(ctx, s.worker(names...))
	require.ErrorIs(s, err, context.DeadlineExceeded, "run %q", l.Run)
}

func namedJob(id agent.RunID, name string) durable.Job { return durable.Job{ID: id, Name: name} }

func testDelivery(s *schedulerTest) {
	submitJobs(s.T, s.store, namedJob("r", "a"))
	s.offer()
	w := s.worker("a", "b")
	l := s.takeAs(w)
	assert.Equal(s, []any{agent.RunID("r"), w.Owner, int64(1)}, []any{l.Run, l.Owner, l.Epoch})
	r := getRun(s.T, s.store, "r")
	assert.Equal(s, []any{durable.StatusRunning, w.Owner}, []any{r.Status, r.Owner})
	assert.WithinDuration(s, r.Created.Add(w.TTL), r.Expires, time.Minute, "the lease is as long as the worker asks")
	writeUpdate(s.T, s.store, l, endUpdate())
}

func testWaitingWorker(s *schedulerTest) {
	for i := range 3 {
		id := agent.RunID(strconv.Itoa(i))
		var group sync.WaitGroup
		var l durable.Lease
		group.Go(func() {
			var err error
			l, _, err = s.next(s.patient(), s.worker("a", "b"))
			assert.NoError(s, err)
		})
		time.Sleep(10 * time.Millisecond) // the worker waits already, most of the time
		submitJobs(s.T, s.store, namedJob(id, []string{"a", "b"}[i%2]))
		s.offer()
		group.Wait()
		require.Equal(s, id, l.Run)
	}
}

func testOtherWorker(s *schedulerTest) {
	submitJobs(s.T, s.store, namedJob("r", "a"), durable.Job{ID: "command", Name: "b", Kind: durable.KindCommand})
	other := s.worker()
	other.Serves = func(n durable.Needs) bool {
		return n.Name == "c" || n.Kind == durable.KindAgent && n.Name == "b"
	}
	ctx, cancel := context.WithCancel(s.Context())
	var group sync.WaitGroup
	group.Go(func() {
		_, err := s.scheduler.Next(ctx, other)
		assert.ErrorIs(s, err, context.Canceled, "a worker gets only runs that it serves")
	})
	time.Sleep(20 * time.Millisecond) // the other worker waits already, most of the time
	s.offer()
	time.Sleep(50 * time.Millisecond)
	assert.Equal(s, agent.RunID("r"), s.take("a").Run)
	assert.Equal(s, agent.RunID("command"), s.take("b").Run)
	cancel()
	group.Wait()
}

func testOfferTwice(s *schedulerTest) {
	submitJobs(s.T, s.store, namedJob("r", "a"))
	offers := s.offer()
	require.Len(s, offers, 1)
	require.NoError(s, s.scheduler.Offer(s.Context(), offers[0], offers[0]))
	l := s.take("a")
	assert.Equal(s, int64(1), l.Epoch)
	require.NoError(s, s.scheduler.Offer(s.Context(), offers...))
	s.takeNone("a")
	assert.Equal(s, int64(1), getRun(s.T, s.store, "r").Epoch)
}

func testNewerOffer(s *schedulerTest) {
	submitJobs(s.T, s.store, namedJob("r", "a"))
	first := s.offer()
	pauseRun(s.T, s.store, "r")
	resumeRun(s.T, s.store, "r")
	second := s.offer()
	require.Equal(s, []int64{1, 2}, []int64{first[0].Seq, second[0].Seq})
	require.NoError(s, s.scheduler.Offer(s.Context(), first...), "late")

	ctx := s.patient()
	d := must(s.scheduler.Next(ctx, s.worker("a")))(s)
	if d.Lease() == nil {
		assert.Equal(s, second[0].OfferID, d.ID())
		acquireRun(s.T, s.store, "r", "one", durable.TakeFree)
	}
	require.NoError(s, d.Ack(ctx))
	s.takeNone("a")
}

func testReadyAgain(s *schedulerTest) {
	submitJobs(s.T, s.store, namedJob("r", "a"))
	for n := range 5 {
		s.offer()
		l := s.take("a")
		assert.Equal(s, int64(n+1), l.Epoch)
		releaseRun(s.T, s.store, l)
	}
}

func testNextContext(s *schedulerTest) {
	submitJobs(s.T, s.store, namedJob("r", "b"))
	s.offer()
	ctx, cancel := context.WithCancel(s.Context())
	var group sync.WaitGroup
	group.Go(func() {
		time.Sleep(20 * time.Millisecond)
		cancel()
	})
	_, err := s.scheduler.Next(ctx, s.worker("a"))
	require.ErrorIs(s, err, context.Canceled)
	_, err = s.scheduler.Next(ctx, s.worker("a"))
	require.ErrorIs(s, err, context.Canceled, "a context that has ended before")
	group.Wait()
	s.take("b")
}

func testLostDelivery(s *schedulerTest) {
	submitJobs(s.T, s.store, namedJob("r", "a"))
	s.offer()
	for i := range 20 {
		ctx, cancel := context.WithTimeout(s.Context(), time.Duration(i)*100*time.Microsecond)
		w := s.worker("a")
		w.TTL = 2 * time.Second // a lease that is lost in the call ends by itself
		d, err := s.scheduler.Next(ctx, w)
		if err == nil {
			require.NoError(s, d.Return(s.Context()))
		}
		cancel()
	}
	defer s.keepOffering()()
	assert.Equal(s, agent.RunID("r"), s.take("a").Run)
}

func testReturn(s *schedulerTest) {
	submitJobs(s.T, s.store, namedJob("r", "a"))
	defer s.keepOffering()()
	ctx := s.patient()
	for range 3 {
		d := must(s.scheduler.Next(ctx, s.worker("a")))(s)
		assert.Equal(s, agent.RunID("r"), d.ID().Run)
		require.NoError(s, d.Return(ctx))
	}
	s.take("a")
}

func testReturnToOther(s *schedulerTest) {
	submitJobs(s.T, s.store, namedJob("r", "a"), namedJob("other", "b"))
	defer s.keepOffering()()
	ctx := s.patient()
	d := must(s.scheduler.Next(ctx, s.worker("a")))(s)
	var group sync.WaitGroup
	group.Go(func() {
		l, _, err := s.next(ctx, s.worker("a"))
		assert.NoError(s, err)
		assert.Equal(s, agent.RunID("r"), l.Run)
	})
	require.NoError(s, d.Return(ctx))
	group.Wait()
	assert.Equal(s, agent.RunID("other"), s.take("b").Run)
}

func testEndedRun(s *schedulerTest) {
	submitJobs(s.T, s.store, namedJob("ended", "a"), namedJob("deleted", "a"), namedJob("held", "a"), namedJob("r", "a"))
	s.offer()
	endRun(s.T, s.store, acquireRun(s.T, s.store, "ended", "one", durable.TakeFree))
	acquireRun(s.T, s.store, "held", "one", durable.TakeFree)
	require.NoError(s, s.store.Delete(s.Context(), "deleted"))
	assert.Equal(s, agent.RunID("r"), s.take("a").Run)
	s.takeNone("a")
}

func testOneLease(s *schedulerTest) {
	submitJobs(s.T, s.store, namedJob("r", "a"))
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	var won atomic.Int64
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			l, d, err := s.next(ctx, s.worker("a"))
			if err != nil {
				assert.ErrorIs(s, err, context.Canceled)
				return
			}
			won.Add(1)
			assert.Equal(s, int64(1), l.Epoch)
			assert.NoError(s, d.Ack(s.Context()))
		})
	}
	stop := s.keepOffering()
	assert.Eventually(s, func() bool { return won.Load() > 0 }, patience, time.Millisecond, "no worker got the run")
	time.Sleep(100 * time.Millisecond)
	stop()
	cancel()
	group.Wait()
	assert.Equal(s, int64(1), won.Load(), "leases of one run")
}

func testAllLeased(s *schedulerTest) {
	const n = 60
	var jobs []durable.Job
	for i := range n {
		jobs = append(jobs, namedJob(agent.RunID(strconv.Itoa(i)), []string{"a", "b", "c"}[i%3]))
	}
	submitJobs(s.T, s.store, jobs...)
	defer s.keepOffering()()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	var mu sync.Mutex
	leased := map[agent.RunID]int{}
	var group sync.WaitGroup
	for range 6 {
		group.Go(func() {
			for {
				mu.Lock()
				done := len(leased) == n
				mu.Unlock()
				if done {
					cancel()
					return
				}
				l, d, err := s.next(ctx, s.worker("a", "b", "c"))
				if err != nil {
					return
				}
				mu.Lock()
				leased[l.Run]++
				mu.Unlock()
				assert.NoError(s, d.Ack(s.Context()))
				endRun(s.T, s.store, l)
			}
		})
	}
	group.Wait()
	assert.Len(s, leased, n)
	for id, count := range leased {
		assert.Equal(s, 1, count, "leases of run %q", id)
	}
}
