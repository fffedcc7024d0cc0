package durable

import (
	"context"
	"fmt"
	"time"
)

// maintain reconciles the store regularly until ctx is done.
func (w *Worker) maintain(ctx context.Context) {
	every := time.NewTicker(w.options.Poll)
	defer every.Stop()
	var pruned time.Time
	for ctx.Err() == nil {
		w.maintainOnce(ctx)
		if w.options.Retain > 0 && time.Since(pruned) > time.Minute {
			pruned = time.Now()
			if _, err := w.store.Prune(ctx, pruned.Add(-w.options.Retain)); err != nil && ctx.Err() == nil {
				w.noteContact(ctx, fmt.Errorf("deleting old runs: %w", err))
			}
		}
		select {
		case <-every.C:
		case <-ctx.Done():
		}
	}
}

// queueInterval is how often a worker measures its queues.
const queueInterval = 10 * time.Second

// measureQueues records how the queues of the worker are served.
func (w *Worker) measureQueues(ctx context.Context, queues []Needs) error {
	w.measured = time.Now()
	for _, needs := range queues {
		if !w.Serves(needs) {
			continue
		}
		services, err := w.store.QueueServices(ctx, needs.Key())
		if err != nil {
			return err
		}
		w.metrics.recordQueue(ctx, needs, services[needs.Key()])
	}
	return nil
}

// offerRetry is how long an offer that was made and did not lead to a lease is trusted.
const offerRetry = time.Minute

// maintainOnce reconciles the store, makes the offers that it owes, and records that the worker looks for runs.
func (w *Worker) maintainOnce(ctx context.Context) {
	done, err := w.store.Reconcile(ctx)
	if err == nil && done.Changed() {
		w.report(ctx, WorkerEvent{Kind: WorkerReconciled, Reconciled: done})
	}
	var queues []Needs
	if err == nil {
		queues, err = w.store.Queues(ctx)
	}
	keys := w.keysOf(queues)
	if err == nil && len(keys) > 0 {
		err = w.store.RecordPoll(ctx, keys...)
	}
	if err == nil && len(keys) > 0 && time.Since(w.measured) > queueInterval {
		err = w.measureQueues(ctx, queues)
	}
	if _, own := w.options.Scheduler.(*embedded); err == nil && !own {
		err = makeOffers(ctx, w.store, w.options.Scheduler)
	}
	if ctx.Err() == nil {
		w.noteContact(ctx, err)
	}
}

// makeOffers makes the offers that a store owes.
func makeOffers(ctx context.Context, store Store, s Scheduler) error {
	for {
		owed, err := store.Owed(ctx, offerRetry, 100)
		if err != nil || len(owed) == 0 {
			return err
		}
		if err := s.Offer(ctx, owed...); err != nil {
			return err
		}
		ids := make([]OfferID, len(owed))
		for i, o := range owed {
			ids[i] = o.OfferID
		}
		if err := store.RecordOffers(ctx, ids...); err != nil {
			return err
		}
	}
}
