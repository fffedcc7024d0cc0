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

// Execution is a run that this process executes without an agent, such as a command or a pipeline. While it is open,
// the lease is renewed and signals are received. Its methods may be called concurrently.
type Execution struct {
	lease   *heldLease
	signals *runSignals
	stop    func()

	committing sync.Mutex
	entries    int64 // in the journal
}

// Open opens the execution of a run that this keeper's owner has leased. The returned context is done when ctx is done,
// when the lease is lost, or when the run's cancellation is requested. In the last case, the cause is a
// *CancelledError. The caller must close the execution.
func (k *Keeper) Open(ctx context.Context, r Run) (context.Context, *Execution) {
	lease := newHeldLease(k, r.Lease())
	inside, stop := lease.hold(ctx)
	x := &Execution{lease: lease, signals: &runSignals{cancel: lease.cancelRun}, entries: r.Entries}
	leave := k.signals.follow(r.ID, x.signals)
	if r.CancelCause != "" {
		lease.cancelRun(&CancelledError{r.CancelReason, r.CancelCause})
	}
	x.stop = sync.OnceFunc(func() {
		stop()
		leave()
	})
	return inside, x
}

// Input returns the job's input and limits.
func (x *Execution) Input(ctx context.Context) (input []byte, limits agent.Limits, err error) {
	return InputOf(ctx, x.lease.keeper.store, x.lease.Run)
}

// Entries returns the journal of the run after the entry with the given number, in order; after zero, all
// of it.
func (x *Execution) Entries(ctx context.Context, after int64) ([]Entry, error) {
	return x.lease.keeper.store.Entries(ctx, x.lease.Run, after)
}

// Waits returns what the run waits for, including what has happened.
func (x *Execution) Waits(ctx context.Context) ([]Wait, error) {
	return x.lease.keeper.store.Waits(ctx, x.lease.Run)
}

// Paused reports whether the run must be released after its current step, because it is paused.
func (x *Execution) Paused() bool { return x.signals.isPaused() }

// AddedContext returns the signals with added context that the run has not handled, in order. Commit.HandledSignals
// marks them as handled.
func (x *Execution) AddedContext(ctx context.Context) ([]Signal, error) {
	all, err := x.lease.keeper.store.Signals(ctx, x.lease.keeper.options.Owner)
	return slices.DeleteFunc(all, func(s Signal) bool { return s.Run != x.lease.Run || s.Seq == 0 }), err
}

// Commit writes to the run. It numbers the entries and sets their times. It sets missing event times and job IDs, so
// that a repetition adds nothing twice. It retries a failing store for Options.Patience, independent of ctx, because
// what it records has already happened. After an error other than ErrConflict nothing more can be written.
func (x *Execution) Commit(ctx context.Context, c Commit) error {
	x.committing.Lock()
	defer x.committing.Unlock()
	if err := x.lease.err(); err != nil {
		return err
	}
	seq := x.entries
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
	err := x.lease.write(ctx, c, nil)
	switch {
	case errors.Is(err, ErrConflict):
		return err // nothing was written, and the caller may read the document again
	case err != nil:
		return x.lease.fail(fmt.Errorf("writing to run %s: %w", x.lease.Run, err))
	}
	x.entries = seq
	return nil
}

// End ends the run with a result.
func (x *Execution) End(ctx context.Context, status Status, reason agent.StopReason, result Result, entries ...Entry) error {
	return x.Commit(ctx, Commit{Entries: entries, Update: Update{Status: status, Reason: reason, Steps: 1, Result: result.encode()}})
}

// Close stops renewing the lease and receiving signals. It does not release the lease: the worker does,
// unless the run has ended. Further calls do nothing.
func (x *Execution) Close() { x.stop() }
