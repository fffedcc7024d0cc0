package durable

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// WorkerStore is the part of a Store that delivers runs to workers and lets them execute these.
type WorkerStore interface {
	Holder
	Queue
}

// NewEmbedded returns the scheduler that finds ready runs in the store itself: for one machine, or for
// several processes that share a database. It needs no offers. Poll is how often Next looks at the
// store when the store reports no change; zero means one second.
func NewEmbedded(store WorkerStore, poll time.Duration) Scheduler {
	if poll <= 0 {
		poll = time.Second
	}
	return &embedded{store: store, poll: poll}
}

type embedded struct {
	store WorkerStore
	poll  time.Duration

	mu     sync.Mutex
	queues []Needs
	read   time.Time // when the queues were read
}

// Offer returns nil: workers find the run in the store.
func (e *embedded) Offer(context.Context, ...Offer) error { return nil }

// Next claims the next ready run.
func (e *embedded) Next(ctx context.Context, w WorkerInfo) (Delivery, error) {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	var changes <-chan struct{}
	for {
		run, err := e.claim(ctx, w)
		if err != nil || run != nil {
			return run, err
		}
		if changes == nil { // only a worker that finds nothing listens
			changes = e.store.Changes(waiting)
			continue // a run may have become ready before
		}
		late := time.NewTimer(e.poll)
		select {
		case <-changes:
		case <-late.C:
		case <-ctx.Done():
		}
		late.Stop()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// claim claims a run that the worker serves; it returns nil when none is ready.
func (e *embedded) claim(ctx context.Context, w WorkerInfo) (Delivery, error) {
	keys, fresh, err := e.keysFor(ctx, w, queuesAge)
	for err == nil {
		var runs []Run
		if len(keys) > 0 {
			runs, err = e.store.Claim(ctx, w.Owner, w.TTL, 1, keys...)
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("claiming a run: %w", err)
		case len(runs) > 0:
			return &claimed{store: e.store, run: runs[0]}, nil
		case fresh:
			return nil, nil
		}
		keys, fresh, err = e.keysFor(ctx, w, 0) // there may be a new queue
	}
	return nil, err
}

// queuesAge is how old the list of queues may be that a worker uses first, so that a busy worker does not read it for
// each run.
const queuesAge = time.Second

// keysFor returns the keys of the queues that the worker serves, from a list that is not older than age. Fresh reports
// whether the list was read now.
func (e *embedded) keysFor(ctx context.Context, w WorkerInfo, age time.Duration) (keys []Key, fresh bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.read.IsZero() || time.Since(e.read) >= age {
		if e.queues, err = e.store.Queues(ctx); err != nil {
			return nil, false, fmt.Errorf("looking for queues: %w", err)
		}
		e.read, fresh = time.Now(), true
	}
	for _, needs := range e.queues {
		if w.Serves(needs) {
			keys = append(keys, needs.Key())
		}
	}
	return keys, fresh, nil
}

// claimed is a delivery of the embedded scheduler.
type claimed struct {
	store Holder
	run   Run
}

func (c *claimed) ID() OfferID { return OfferID{Run: c.run.ID} }

func (c *claimed) Lease() *Lease { return new(c.run.Lease()) }

func (c *claimed) Ack(context.Context) error { return nil }

func (c *claimed) Return(ctx context.Context) error { return c.store.Release(ctx, c.run.Lease(), 0) }
