package durable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// Execution is a run that this process executes by other means than an agent, such as a command or a pipeline. While it
// is open, the lease is renewed and signals are received. Its methods may be called concurrently.
type Execution struct {
	h     *recordedRun
	stop  func()
	close sync.Once
}

// Open opens the execution of a run whose lease this keeper's owner has. The returned context is done when
// ctx is, when the lease is lost, and when the cancellation of the run is requested: the cause is then a
// *CancelledError. The caller closes the execution.
func (k *Keeper) Open(ctx context.Context, r Run) (context.Context, *Execution) {
	h := &recordedRun{}
	h.adopt(k, &claim{lease: r.Lease(), entries: r.Entries})
	inside, lose := context.WithCancelCause(ctx)
	h.lose = lose
	release := k.follow(h)
	over := make(chan struct{})
	var renewing sync.WaitGroup
	renewing.Go(func() { h.renewLease(inside, over) })
	if r.CancelReason != "" {
		lose(&CancelledError{Reason: r.CancelReason})
	}
	return inside, &Execution{h: h, stop: func() {
		close(over)
		renewing.Wait()
		release()
		lose(nil)
	}}
}

// Input returns the input of the job and its limits.
func (x *Execution) Input(ctx context.Context) (input []byte, limits agent.Limits, err error) {
	return InputOf(ctx, x.h.keeper.store, x.h.lease.Run)
}

// Entries returns the journal of the run after the entry with the given number, in order; after zero, all
// of it.
func (x *Execution) Entries(ctx context.Context, after int64) ([]Entry, error) {
	return x.h.keeper.store.Entries(ctx, x.h.lease.Run, after)
}

// Waits returns what the run waits for, including what has happened.
func (x *Execution) Waits(ctx context.Context) ([]Wait, error) {
	return x.h.keeper.store.Waits(ctx, x.h.lease.Run)
}

// Paused reports whether the run must be released after its current step, because it is paused.
func (x *Execution) Paused() bool { return x.h.isPaused() }

// AddedContext returns the signals with added context that the run has not handled, in order. A Commit with HandledSignals
// says that they are.
func (x *Execution) AddedContext(ctx context.Context) ([]Signal, error) {
	all, err := x.h.keeper.store.Signals(ctx, x.h.keeper.options.Owner)
	return slices.DeleteFunc(all, func(s Signal) bool { return s.Run != x.h.lease.Run || s.Seq == 0 }), err
}

// Commit writes to the run. It numbers the entries and sets their times, sets the times of events and the
// IDs of jobs that have none, so that a repeated call adds nothing twice, and retries a failing store for
// Options.Patience, independent of ctx, since what it records has happened. After an error other
// than ErrConflict nothing more can be written.
func (x *Execution) Commit(ctx context.Context, c Commit) error {
	h := x.h
	h.writing.Lock()
	defer h.writing.Unlock()
	if lost := h.whyLost(); lost != nil {
		return lost
	}
	h.mu.Lock()
	seq := h.entries
	h.mu.Unlock()
	for i := range c.Entries {
		seq++
		c.Entries[i].Seq, c.Entries[i].At = seq, time.Now()
	}
	for i, e := range c.Events {
		if e.At.IsZero() {
			c.Events[i].At = time.Now()
		}
	}
	for i, j := range c.Jobs {
		if j.ID == "" {
			c.Jobs[i].ID = agent.NewRunID()
		}
	}
	ctx = context.WithoutCancel(ctx)
	err := h.keeper.patiently(ctx, func(ctx context.Context) error { return h.keeper.store.Commit(ctx, h.lease, c) })
	h.mu.Lock()
	defer h.mu.Unlock()
	if errors.Is(err, ErrConflict) {
		return err // nothing was written, and the caller may read the document again
	}
	if err != nil {
		return h.give(fmt.Errorf("writing to run %s: %w", h.lease.Run, err))
	}
	h.entries = seq
	return nil
}

// End ends the run with a result.
func (x *Execution) End(ctx context.Context, status Status, reason agent.StopReason, result Result, entries ...Entry) error {
	return x.Commit(ctx, Commit{Entries: entries, Update: Update{Status: status, Reason: reason, Steps: 1, Result: result.encode()}})
}

// Close stops renewing the lease and receiving signals. It does not release the lease: the worker does,
// unless the run has ended. Further calls do nothing.
func (x *Execution) Close() { x.close.Do(x.stop) }
