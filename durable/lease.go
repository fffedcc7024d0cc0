package durable

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// heldLease is the lease of a run that this process executes, and the only way by which the run is written.
type heldLease struct {
	Lease

	keeper *Keeper

	mu      sync.Mutex
	cancel  context.CancelCauseFunc // cancels the run; does nothing before hold
	failure error                   // why the run can no longer be recorded; nil while it can
}

// newHeldLease returns a lease that is not renewed before hold.
func newHeldLease(k *Keeper, l Lease) *heldLease {
	return &heldLease{Lease: l, keeper: k, cancel: func(error) {}}
}

// hold renews the lease until the caller calls stop. The returned context is done then, and when the run can no longer be recorded.
func (l *heldLease) hold(ctx context.Context) (inside context.Context, stop func()) {
	inside, cancel := context.WithCancelCause(ctx)
	l.mu.Lock()
	l.cancel = cancel
	l.mu.Unlock()
	over := make(chan struct{})
	var renewing sync.WaitGroup
	renewing.Go(func() { l.renew(inside, over) })
	return inside, sync.OnceFunc(func() {
		close(over)
		renewing.Wait()
		cancel(nil)
	})
}

// renew renews the lease until the run is over.
func (l *heldLease) renew(ctx context.Context, over <-chan struct{}) {
	every := time.NewTicker(l.keeper.options.Lease / 3)
	defer every.Stop()
	for {
		select {
		case <-over:
			return
		case <-ctx.Done():
			<-over
			return
		case <-every.C:
		}
		if _, err := l.keeper.store.Renew(ctx, l.Lease, l.keeper.options.Lease); errors.Is(err, ErrStale) || errors.Is(err, ErrNotFound) {
			_ = l.fail(err)
		}
	}
}

// fail cancels the run, because it can no longer be recorded. It returns the first such error.
func (l *heldLease) fail(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure == nil {
		l.failure = err
		l.cancel(errors.Join(agent.ErrSuspended, err))
	}
	return l.failure
}

// cancelRun cancels the run.
func (l *heldLease) cancelRun(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel(cause)
}

// err returns why the run can no longer be recorded; nil while it can.
func (l *heldLease) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failure
}

// write commits to the run. It retries a failing store for Options.Patience, independent of the cancellation of ctx, because what it
// records has already happened. Attempted, unless nil, gets the outcome of each attempt.
func (l *heldLease) write(ctx context.Context, c Commit, attempted func(error)) error {
	return l.keeper.patiently(context.WithoutCancel(ctx), func(ctx context.Context) error {
		err := l.keeper.store.Commit(ctx, l.Lease, c)
		if attempted != nil {
			attempted(err)
		}
		return err
	})
}

// release gives the lease up. If the store does not respond, the lease expires.
func (l *heldLease) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = l.keeper.store.Release(ctx, l.Lease, 0)
}

// isFinal reports whether a retry is useless.
func isFinal(err error) bool {
	var seq *SeqError
	var heldBy *HeldError
	return errors.Is(err, ErrStale) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrExists) || errors.Is(err, ErrEnded) ||
		errors.Is(err, ErrAnswered) || errors.Is(err, ErrConflict) || errors.As(err, &seq) || errors.As(err, &heldBy)
}

// patiently retries until the store succeeds, returns a final error, or Options.Patience has
// passed.
func (k *Keeper) patiently(ctx context.Context, try func(context.Context) error) error {
	err := try(ctx)
	if err == nil || isFinal(err) || k.options.Patience < 0 {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, k.options.Patience)
	defer cancel()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		timer := time.NewTimer(wait)
		select {
		case <-limited.Done():
			timer.Stop()
			return fmt.Errorf("gave up after %s: %w", k.options.Patience, err)
		case <-timer.C:
		}
		if err = try(limited); err == nil || isFinal(err) {
			return err
		}
	}
}
