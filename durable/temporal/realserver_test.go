package temporal_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
	"github.com/grapnel-go/grapnel/durable/temporal"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// startReal starts a Temporal dev server. The tests with one begin with TestRealServer, and run in "make nightly".
func startReal(t *testing.T) *parts.TemporalServer {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts a Temporal server")
	}
	return parts.Temporal(t)
}

// inRealModes runs a test with workflows and with activities of a real server.
func inRealModes(t *testing.T, server *parts.TemporalServer, test func(t *testing.T, open func(t *testing.T, s durable.Store) *temporal.Scheduler)) {
	t.Helper()
	for _, workflows := range []bool{false, true} {
		name := map[bool]string{false: "activities", true: "workflows"}[workflows]
		prefixes := map[durable.Store]string{}
		t.Run(name, func(t *testing.T) {
			test(t, func(t *testing.T, s durable.Store) *temporal.Scheduler {
				t.Helper()
				if prefixes[s] == "" {
					prefixes[s] = fmt.Sprintf("%s-%d", name, len(prefixes))
				}
				opened := openScheduler(t, server.Address(), temporal.Options{Queues: s.Queues, Prefix: prefixes[s], Workflows: workflows})
				assert.Equal(t, !workflows, temporal.UsesActivities(opened))
				return opened
			})
		})
	}
}

func TestRealServerContract(t *testing.T) {
	server := startReal(t)
	inRealModes(t, server, func(t *testing.T, open func(t *testing.T, s durable.Store) *temporal.Scheduler) {
		t.Helper()
		durabletest.TestScheduler(t, func(t *testing.T, s durable.Store) durable.Scheduler {
			t.Helper()
			return open(t, s)
		}, openStore)
	})
}

// staff is a worker on a scheduler, and what it has executed.
type staff struct {
	store durable.Store
	owner string

	mu       sync.Mutex
	executed map[agent.RunID]int
	leased   chan agent.RunID
	failures int
}

// employ starts a worker until the test ends.
func employ(t *testing.T, store durable.Store, s durable.Scheduler, capacity int) *staff {
	t.Helper()
	return employInto(t, store, s, capacity, make(chan agent.RunID, 10000))
}

func employInto(t *testing.T, store durable.Store, s durable.Scheduler, capacity int, leased chan agent.RunID) *staff {
	t.Helper()
	c := &staff{store: store, owner: "worker-" + rand.Text(), executed: map[agent.RunID]int{}, leased: leased}
	worker, err := durable.NewWorker(store, durable.WorkerOptions{
		Runners: map[durable.Kind]durable.Runner{durable.KindAgent: c}, Scheduler: s, Capacity: capacity,
		Observe: func(e durable.WorkerEvent) {
			if e.Kind == durable.WorkerFailed {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.failures++
			}
		},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var over sync.WaitGroup
	over.Go(func() { assert.NoError(t, worker.Run(ctx)) })
	t.Cleanup(func() { cancel(); over.Wait() })
	return c
}

func (c *staff) Owner() string   { return c.owner }
func (c *staff) Has(string) bool { return true }
func (c *staff) Suspend()        {}

// Execute completes the run.
func (c *staff) Execute(ctx context.Context, r durable.Run) error {
	c.mu.Lock()
	c.executed[r.ID]++
	c.mu.Unlock()
	c.leased <- r.ID
	return c.store.Commit(ctx, r.Lease(), durable.Commit{Update: durable.Update{Status: durable.StatusCompleted, Reason: agent.StopCompleted, Steps: 1}})
}

// expect waits until the worker has executed the runs, each once.
func (c *staff) expect(t *testing.T, within time.Duration, runs []durable.Run) {
	t.Helper()
	count := func() (done int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, r := range runs {
			assert.LessOrEqual(t, c.executed[r.ID], 1, "executions of run %s", r.ID)
			done += min(c.executed[r.ID], 1)
		}
		return done
	}
	if !assert.Eventually(t, func() bool { return count() == len(runs) }, within, 20*time.Millisecond) {
		require.FailNow(t, "runs were not executed", "%d of %d were", count(), len(runs))
	}
}

func submit(t *testing.T, store durable.Store, n int) []durable.Run {
	t.Helper()
	jobs := make([]durable.Job, n)
	for i := range jobs {
		jobs[i] = durable.Job{Name: "clerk" + strconv.Itoa(i%2)}
	}
	runs, err := store.Submit(t.Context(), jobs...)
	require.NoError(t, err)
	return runs
}

// makeOffers makes the offers that a store owes.
func makeOffers(t *testing.T, store durable.Store, s durable.Scheduler) []durable.Offer {
	t.Helper()
	offers := recordOffers(t, store)
	require.NoError(t, s.Offer(t.Context(), offers...))
	return offers
}

// recordOffers records the offers that a store owes as made, and does not make them.
func recordOffers(t *testing.T, store durable.Store) []durable.Offer {
	t.Helper()
	offers, err := store.Owed(t.Context(), time.Minute, 1000)
	require.NoError(t, err)
	require.NotEmpty(t, offers)
	var ids []durable.OfferID
	for _, o := range offers {
		ids = append(ids, o.OfferID)
	}
	require.NoError(t, store.RecordOffers(t.Context(), ids...))
	return offers
}

// The server is killed and restarted, and its database is deleted; offers get lost and are made twice. Each run is executed
// once.
func TestRealServerLosesNothing(t *testing.T) {
	server := startReal(t)
	inRealModes(t, server, func(t *testing.T, open func(t *testing.T, s durable.Store) *temporal.Scheduler) {
		t.Helper()
		store := openStore(t)
		t.Cleanup(func() { assert.NoError(t, store.Close()) })
		s := open(t, store)

		offered := submit(t, store, 20)
		offers := makeOffers(t, store, s)
		require.NoError(t, s.Offer(t.Context(), slices.Concat(offers, offers)...), "doubled")
		server.Kill()
		server.Start(t)
		c := employ(t, store, s, 4)
		c.expect(t, time.Minute, offered) // from the database of the server
		t.Log("offers survive a killed server")
		require.NoError(t, s.Offer(t.Context(), offers...), "doubled after the runs have ended")

		server.Kill()
		running := submit(t, store, 20)
		require.Eventually(t, func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.failures > 0 }, time.Minute, 20*time.Millisecond)
		server.Start(t)
		c.expect(t, time.Minute, running)
		t.Log("the worker goes on when the server is there again")

		foreign := openStore(t) // no worker takes its runs at first
		t.Cleanup(func() { assert.NoError(t, foreign.Close()) })
		other := open(t, foreign)
		lost := submit(t, foreign, 20)
		makeOffers(t, foreign, other)
		server.Kill()
		server.DeleteDatabase(t)
		server.Start(t)
		dropped := submit(t, foreign, 20)
		recordOffers(t, foreign)
		began := time.Now()
		employ(t, foreign, other, 4).expect(t, 3*time.Minute, slices.Concat(lost, dropped))
		t.Logf("offers that the server has lost and that were not made came back after %s", time.Since(began).Round(time.Second))
		c.expect(t, time.Minute, submit(t, store, 20))
	})
}

// A delivery whose worker does not decide the lease comes back within five seconds, and a returned one after a second.
func TestRealServerRedelivers(t *testing.T) {
	server := startReal(t)
	inRealModes(t, server, func(t *testing.T, open func(t *testing.T, s durable.Store) *temporal.Scheduler) {
		t.Helper()
		store := openStore(t)
		t.Cleanup(func() { assert.NoError(t, store.Close()) })
		s := open(t, store)
		submit(t, store, 1)
		makeOffers(t, store, s)
		for i := range 3 {
			id, began := next(t, s).ID(), time.Now()
			d := next(t, s)
			assert.Equal(t, id, d.ID())
			t.Logf("lost: again after %s", time.Since(began).Round(time.Millisecond))
			assert.Less(t, time.Since(began), 8*time.Second) // a loaded machine needs longer than the 5 s of the contract
			began = time.Now()
			require.NoError(t, d.Return(t.Context()))
			d = next(t, s)
			t.Logf("returned: again after %s", time.Since(began).Round(time.Millisecond))
			assert.Less(t, time.Since(began), 4*time.Second)
			if i == 2 {
				testReplaced(t, store, s, d)
				return
			}
			require.NoError(t, d.Return(t.Context()))
		}
	})
}

// testReplaced checks that a delivery can be acknowledged and returned although a newer offer has replaced its own.
func testReplaced(t *testing.T, store durable.Store, s *temporal.Scheduler, d durable.Delivery) {
	t.Helper()
	queues, err := store.Queues(t.Context())
	require.NoError(t, err)
	newer := durable.Offer{OfferID: durable.OfferID{Run: d.ID().Run, Seq: d.ID().Seq + 1}, Key: queues[0].Key()}
	require.NoError(t, s.Offer(t.Context(), newer))
	require.NoError(t, d.Ack(t.Context()))
	require.NoError(t, d.Return(t.Context()))
	d = next(t, s)
	assert.Equal(t, newer.OfferID, d.ID())
	require.NoError(t, d.Ack(t.Context()))
	require.NoError(t, d.Ack(t.Context()), "twice")
	nextNone(t, s)
}

// What a server delivers in a second, for the table in docs/adr/0010.
func TestRealServerFigures(t *testing.T) {
	server := startReal(t)
	inRealModes(t, server, func(t *testing.T, open func(t *testing.T, s durable.Store) *temporal.Scheduler) {
		t.Helper()
		store := openStore(t)
		t.Cleanup(func() { assert.NoError(t, store.Close()) })
		c := employ(t, store, open(t, store), 8)
		const single, many = 100, 300
		submit(t, store, 2)
		<-c.leased
		<-c.leased
		var took []time.Duration
		for range single {
			began := time.Now()
			submit(t, store, 1)
			<-c.leased
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		t.Logf("submit to leased: p50 %s, p99 %s", took[single/2].Round(time.Millisecond), took[single-2].Round(time.Millisecond))

		for _, workers := range []int{1, 8} {
			for i := 1; i < workers; i++ {
				employInto(t, store, open(t, store), 8, c.leased)
			}
			began := time.Now()
			submit(t, store, many)
			for range many {
				<-c.leased
			}
			t.Logf("%d workers: %.0f runs a second", workers, many/time.Since(began).Seconds())
		}
	})
}
