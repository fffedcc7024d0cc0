package durable

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/grapnel-go/grapnel/internal/version"
)

// maintain reconciles the store regularly until ctx is done. Workers that started together do it at different times.
func (w *Worker) maintain(ctx context.Context) {
	w.maintainOnce(ctx)
	w.pauseFor(ctx, rand.N(w.options.Poll))
	every := time.NewTicker(w.options.Poll)
	defer every.Stop()
	var pruned time.Time
	for ctx.Err() == nil {
		w.maintainOnce(ctx)
		if w.local != nil && w.options.Retain > 0 && time.Since(pruned) > time.Minute {
			pruned = time.Now()
			if _, err := w.local.Prune(ctx, pruned.Add(-w.options.Retain)); err != nil && ctx.Err() == nil {
				w.noteContact(ctx, fmt.Errorf("deleting old runs: %w", err))
			}
		}
		select {
		case <-every.C:
		case <-ctx.Done():
		}
	}
}

// offerRetry is how long an offer that was made and did not lead to a lease is trusted.
const offerRetry = time.Minute

// maintainOnce reconciles the store, makes the offers that it owes, and records that the worker looks for runs.
func (w *Worker) maintainOnce(ctx context.Context) {
	var done Reconciled
	var queues []Needs
	jump := w.clock.look()
	if jump.Abs() > clockTolerance {
		w.report(ctx, WorkerEvent{Kind: WorkerClockJumped, Jump: jump})
	}
	if w.local == nil {
		return
	}
	err := w.watchStore(ctx, func() (err error) {
		if jump <= clockTolerance {
			done, err = w.local.Reconcile(ctx)
		}
		return err
	})
	if err == nil && done.Changed() {
		w.report(ctx, WorkerEvent{Kind: WorkerReconciled, Reconciled: done})
	}
	if err == nil {
		err = w.watchStore(ctx, func() (err error) {
			queues, err = w.local.Queues(ctx)
			return err
		})
	}
	if keys := w.keysOf(queues); err == nil && len(keys) > 0 {
		err = w.watchStore(ctx, func() error { return w.local.RecordPoll(ctx, keys...) })
	}
	if err == nil {
		err = w.watchStore(ctx, func() error { return w.recordPresence(ctx) })
	}
	if err == nil && time.Since(w.measured) > queueInterval {
		err = w.watchStore(ctx, func() error { return w.measureQueues(ctx, queues) })
	}
	if err == nil && !w.isEmbedded() {
		err = w.makeOffers(ctx)
	}
	if ctx.Err() == nil {
		w.noteContact(ctx, err)
	}
}

// presenceInterval is how often a worker records that it is connected.
const presenceInterval = 10 * time.Second

// recordPresence records the worker, now and then. Only one goroutine may call it.
func (w *Worker) recordPresence(ctx context.Context) error {
	if w.local == nil || time.Since(w.recorded) < presenceInterval {
		return nil
	}
	w.recorded = time.Now()
	kinds := slices.Sorted(maps.Keys(w.options.Runners))
	return w.local.RecordWorker(ctx, WorkerRecord{
		Owner: w.owner, Kinds: kinds, Labels: w.options.Labels, Capacity: w.options.Capacity,
		Draining: w.Health().State == WorkerDraining, Version: version.Read(),
	})
}

// recordDraining records that the worker drains, until its runs are over.
func (w *Worker) recordDraining(ctx context.Context, over <-chan struct{}) {
	if remote, ok := w.store.(interface{ RecordDraining() }); ok {
		remote.RecordDraining()
	}
	for w.local != nil {
		w.recorded = time.Time{}
		_ = w.recordPresence(ctx) // the runs go on in any case
		select {
		case <-over:
			return
		case <-time.After(presenceInterval):
		}
	}
}

// offerPause is the longest pause between a change of the store and the offers that it owes. It is random, so that of
// several workers most find that another one has made the offers.
const offerPause = 20 * time.Millisecond

// offerChanges makes the offers that the store owes after each change, until ctx is done. Maintain makes those that fail.
func (w *Worker) offerChanges(ctx context.Context) {
	for range w.store.Changes(ctx) {
		w.pauseFor(ctx, rand.N(offerPause))
		if err := w.makeOffers(ctx); err != nil && ctx.Err() == nil {
			w.noteContact(ctx, err)
			w.pauseFor(ctx, w.options.Poll)
		}
	}
}

func (w *Worker) isEmbedded() bool {
	_, own := w.options.Scheduler.(*embedded)
	return own
}

// offerBatch is how many offers a worker makes at once. Other workers make the next ones at the same time.
const offerBatch = 50

// makeOffers makes the offers that the store owes. It records them first, so that of several workers one makes them. If the
// scheduler fails, the worker makes them the next time; if the worker dies, the store owes them again after offerRetry.
func (w *Worker) makeOffers(ctx context.Context) error {
	w.offering.Lock()
	defer w.offering.Unlock()
	for ctx.Err() == nil {
		if len(w.unmade) == 0 {
			owed, err := w.local.Owed(ctx, offerRetry, offerBatch)
			if err != nil || len(owed) == 0 {
				return err
			}
			ids := make([]OfferID, len(owed))
			for i, o := range owed {
				ids[i] = o.OfferID
			}
			if err := w.local.RecordOffers(ctx, ids...); err != nil {
				return err
			}
			w.unmade = owed
		}
		if err := w.options.Scheduler.Offer(context.WithoutCancel(ctx), w.unmade...); err != nil { // a worker that stops makes them, too
			return err
		}
		w.unmade = nil
	}
	return nil
}
