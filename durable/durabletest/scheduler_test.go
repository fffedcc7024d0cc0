package durabletest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
	"github.com/grapnel-go/grapnel/durable/memory"
)

func openMemory(*testing.T) durable.Store { return memory.New() }

func TestEmbedded(t *testing.T) {
	durabletest.TestScheduler(t, func(_ *testing.T, s durable.Store) durable.Scheduler { return durable.NewEmbedded(s, 0) }, openMemory)
}

func TestQueueScheduler(t *testing.T) {
	durabletest.TestScheduler(t, func(_ *testing.T, s durable.Store) durable.Scheduler { return newQueue(s, "") }, openMemory)
}

// schedulerFaults are ways to break the contract of a scheduler, with the part of TestScheduler that detects each.
var schedulerFaults = map[string]string{
	"loses offers":   "a_worker_gets_a_run",
	"never wakes":    "a_waiting_worker",
	"any worker":     "no_other_worker",
	"old offer":      "a_higher_number_replaces",
	"both offers":    "a_higher_number_replaces",
	"once":           "each_time_that_a_run",
	"no context":     "Next_ends_with",
	"loses delivery": "a_lost_delivery",
	"loses return":   "a_returned_delivery_comes_back",
	"leases twice":   "one_run_and_many_workers",
}

func TestSchedulerFaults(t *testing.T) {
	if os.Getenv("DURABLETEST_FAULT") != "" {
		t.Skip("this is the process of one fault")
	}
	for fault, part := range schedulerFaults {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBrokenScheduler$/"+part, "-test.timeout=60s")
			cmd.Env = append(os.Environ(), "DURABLETEST_FAULT="+fault)
			out, err := cmd.CombinedOutput()
			require.Error(t, err, "a scheduler that is broken at %q passes %q", fault, part)
			assert.Contains(t, string(out), "--- FAIL: TestBrokenScheduler/"+part)
			assert.NotContains(t, string(out), "panic: test timed out")
		})
	}
}

// TestBrokenScheduler runs in the processes of TestSchedulerFaults.
func TestBrokenScheduler(t *testing.T) {
	fault := os.Getenv("DURABLETEST_FAULT")
	if fault == "" {
		t.Skip("run by TestSchedulerFaults")
	}
	durabletest.SetPatience(2 * time.Second)
	durabletest.TestScheduler(t, func(_ *testing.T, s durable.Store) durable.Scheduler { return newQueue(s, fault) }, openMemory)
}

// queue is a scheduler with a queue in memory. It keeps the contract except for the rule that broken names.
type queue struct {
	store  durable.Store
	broken string

	mu    sync.Mutex
	known map[agent.RunID]durable.Offer
	wait  []durable.Offer
	wake  chan struct{} // closed by the next offer
}

func newQueue(s durable.Store, broken string) *queue {
	return &queue{store: s, broken: broken, known: map[agent.RunID]durable.Offer{}, wake: make(chan struct{})}
}

// Offer implements durable.Scheduler.
func (q *queue) Offer(_ context.Context, offers ...durable.Offer) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, o := range offers {
		old, known := q.known[o.Run]
		switch {
		case known && (old.Seq >= o.Seq && q.broken != "old offer" || q.broken == "once"), q.broken == "loses offers":
			continue
		}
		q.known[o.Run] = o
		if q.broken != "both offers" {
			q.wait = slices.DeleteFunc(q.wait, func(w durable.Offer) bool { return w.Run == o.Run })
		}
		q.add(o)
	}
	return nil
}

func (q *queue) add(o durable.Offer) {
	q.wait = append(q.wait, o)
	if q.broken != "never wakes" {
		close(q.wake)
		q.wake = make(chan struct{})
	}
}

// Next implements durable.Scheduler.
func (q *queue) Next(ctx context.Context, w durable.WorkerInfo) (durable.Delivery, error) {
	for {
		if err := ctx.Err(); err != nil && q.broken != "no context" {
			if q.broken == "loses delivery" {
				q.mu.Lock()
				q.wait = nil
				q.mu.Unlock()
			}
			return nil, err
		}
		needs, err := q.store.Queues(context.WithoutCancel(ctx))
		if err != nil {
			return nil, err
		}
		q.mu.Lock()
		i := slices.IndexFunc(q.wait, func(o durable.Offer) bool {
			return q.broken == "any worker" || slices.ContainsFunc(needs, func(n durable.Needs) bool { return n.Key() == o.Key && w.Serves(n) })
		})
		if i >= 0 {
			o := q.wait[i]
			q.wait = slices.Delete(q.wait, i, i+1)
			if q.broken == "leases twice" {
				q.add(o)
			}
			q.mu.Unlock()
			d := &delivery{queue: q, offer: o}
			if q.broken == "leases twice" {
				l, err := q.store.Acquire(ctx, o.Run, w.Owner, w.TTL, durable.TakeOver)
				d.lease = &l
				return d, err
			}
			return d, nil
		}
		wake := q.wake
		q.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			if q.broken == "no context" {
				return nil, errors.New("the worker is gone")
			}
		}
	}
}

type delivery struct {
	queue *queue
	offer durable.Offer
	lease *durable.Lease
}

func (d *delivery) ID() durable.OfferID       { return d.offer.OfferID }
func (d *delivery) Lease() *durable.Lease     { return d.lease }
func (d *delivery) Ack(context.Context) error { return nil }

func (d *delivery) Return(context.Context) error {
	d.queue.mu.Lock()
	defer d.queue.mu.Unlock()
	if d.queue.broken != "loses return" {
		d.queue.add(d.offer)
	}
	return nil
}
