package durable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// held is a run that this process holds. It is the value of a Scratch: the zero value means a run
// that is not recorded.
type held struct {
	keeper *Keeper
	lease  Lease
	lose   context.CancelCauseFunc // ends the run: another process has it, or it cannot be recorded

	// For a run that is recorded with another one: that run and its call. Locks are taken from the
	// lower run first.
	up   *held
	call string

	mu      sync.Mutex
	last    agent.State // as the journal has it
	entries int64       // in the journal
	waiting []Entry     // written with the next entry
	lost    error       // the reason why nothing more is written
	over    bool        // Once records nothing more: the run has ended or waits
	done    map[string][]byte
	begun   map[string]bool
	doing   map[string]*sync.Mutex // held while a func of Once runs
}

// alone locks the name for a func of Once, after waiting for other callers.
func (h *held) alone(name string) (over func()) {
	h.mu.Lock()
	if h.doing == nil {
		h.doing = map[string]*sync.Mutex{}
	}
	one := h.doing[name]
	if one == nil {
		one = new(sync.Mutex)
		h.doing[name] = one
	}
	h.mu.Unlock()
	one.Lock()
	return one.Unlock
}

// take starts holding the run under a claim.
func (h *held) take(k *Keeper, c *claim) {
	h.keeper, h.lease, h.entries, h.last = k, c.lease, c.entries, c.state
	h.done, h.begun = c.done, c.begun
	if h.done == nil {
		h.done, h.begun = map[string][]byte{}, map[string]bool{}
	}
}

// around runs the run while renewing the lease, and records its end.
func (h *held) around(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
	inside, lose := context.WithCancelCause(ctx)
	h.lose = lose
	var renewing sync.WaitGroup
	over := make(chan struct{})
	renewing.Go(func() { h.renewLease(inside, over) })
	stop := sync.OnceFunc(func() {
		close(over)
		renewing.Wait()
		lose(nil)
	})
	defer stop()                                         // also when a processor panics
	result := agent.Conclude(inside, s, next(inside, s)) // this context has the cause of a cancellation
	stop()
	final := lastState(result)
	if lost := h.whyLost(); lost != nil {
		h.release(ctx)
		return failedToKeep(final, lost)
	}
	// Every end is recorded, including that of the context.
	if err := h.recordEnd(context.WithoutCancel(ctx), final, cut(ctx)); err != nil {
		return mo.Err[agent.State](&agent.RunError{State: final, Err: err})
	}
	return result
}

// lastState returns the last state of a run, with or without an error.
func lastState(result mo.Result[agent.State]) agent.State {
	final, err := result.Get()
	if kept, ok := agent.StateOf(err); ok {
		return kept
	}
	return final
}

// failedToKeep returns the error of a run that can no longer be recorded, with its last state.
func failedToKeep(s agent.State, why error) mo.Result[agent.State] {
	return mo.Err[agent.State](&agent.RunError{State: s, Err: fmt.Errorf("keeping run %s: %w", s.Run().ID, why)})
}

// recordEnd records how the run ended or what it waits for.
func (h *held) recordEnd(ctx context.Context, final agent.State, cut bool) error {
	h.mu.Lock()
	h.over = true
	h.mu.Unlock()
	if !final.Parked() {
		reason := final.StopSignal().OrEmpty().Reason
		return h.note(ctx, EntryEnd, final, Update{Status: final.Status(), Reason: reason, Steps: final.RunStepCount()})
	}
	if !final.Waiting() || cut { // suspended: any process may resume it at once from the journal
		h.release(ctx)
		return nil
	}
	notice := noticeOf(final, len(h.keeper.options.Notify) > 0)
	questions, err := notice.storedQuestions()
	if err != nil {
		return err
	}
	if err := h.note(ctx, EntryPark, final, Update{Status: agent.StatusParked, Steps: final.RunStepCount(), Questions: questions}); err != nil {
		return err
	}
	h.release(ctx)
	for _, n := range h.keeper.options.Notify {
		if err := n.Notify(ctx, notice); err != nil {
			final.Emit(ctx, NotifyFailed{final.Run(), err})
		}
	}
	return nil
}

func (h *held) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = h.keeper.store.Release(ctx, h.lease) // otherwise the lease expires
}

// note records the current state.
func (h *held) note(ctx context.Context, kind EntryKind, s agent.State, u Update) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.write(ctx, kind, "", s, u)
}

// noteCall records the progress of a call of the open step.
func (h *held) noteCall(ctx context.Context, kind EntryKind, key string, change func(agent.State) agent.State) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.write(ctx, kind, key, change(h.last), Update{})
}

func (h *held) write(ctx context.Context, kind EntryKind, key string, s agent.State, u Update) error {
	if h.up != nil {
		h.up.mu.Lock()
		defer h.up.mu.Unlock()
		kind, key = ofChild(kind, h.call, key)
		above := agent.Checkpoint(h.up.last).WithCallChild(h.call, s)
		if _, _, there := agent.Checkpoint(above).Child(h.call); !there {
			return h.up.give(fmt.Errorf("recording a %s: the journal has no call %s in progress", kind, h.call))
		}
		if err := h.up.write(ctx, kind, key, above, Update{}); err != nil {
			return err
		}
		h.last = s
		return nil
	}
	data, err := agent.Checkpoint(s).Changes(h.last)
	if err != nil {
		return h.give(fmt.Errorf("recording a %s: %w", kind, err))
	}
	if err := h.appendEntries(ctx, u, Entry{Kind: kind, Key: key, At: time.Now(), Data: data}); err != nil {
		return err
	}
	h.last = s
	return nil
}

// appendEntries writes the waiting entries and then the given ones. It retries a failing store for
// a while, independent of the context of the run, since the events have already happened.
func (h *held) appendEntries(ctx context.Context, u Update, entries ...Entry) error {
	if h.lost != nil {
		return h.lost
	}
	all := slices.Concat(h.waiting, entries)
	for i := range all {
		all[i].Seq = h.entries + int64(i) + 1
	}
	ctx = context.WithoutCancel(ctx)
	err := h.keeper.patiently(ctx, func(ctx context.Context) error { return h.keeper.store.Append(ctx, h.lease, u, all...) })
	if err != nil {
		return h.give(fmt.Errorf("writing to the journal of run %s: %w", h.lease.Run, err))
	}
	h.entries += int64(len(all))
	h.waiting = nil
	return nil
}

// give gives the run up: nothing more is written, and the run is cancelled.
func (h *held) give(err error) error {
	if h.up != nil {
		h.up.mu.Lock()
		defer h.up.mu.Unlock()
		return h.up.give(err)
	}
	if h.lost == nil {
		h.lost = err
		if h.lose != nil {
			h.lose(errors.Join(agent.ErrSuspended, err))
		}
	}
	return h.lost
}

func (h *held) whyLost() error {
	if h.up != nil {
		return h.up.whyLost()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost
}

// renewLease renews the lease until the run is over. It cancels the run when the store asks for
// it.
func (h *held) renewLease(ctx context.Context, over <-chan struct{}) {
	every := time.NewTicker(h.keeper.options.Lease / 3)
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
		switch _, err := h.keeper.store.Renew(ctx, h.lease, h.keeper.options.Lease); {
		case errors.Is(err, ErrStale), errors.Is(err, ErrNotFound):
			h.mu.Lock()
			_ = h.give(err)
			h.mu.Unlock()
		case err == nil:
			if about, err := h.keeper.store.Run(ctx, h.lease.Run); err == nil && about.CancelReason != "" {
				h.lose(&CancelledError{Reason: about.CancelReason})
			}
		}
	}
}

// CancelledError is the cause of a cancellation by request: see Store.Cancel.
type CancelledError struct{ Reason string }

func (e *CancelledError) Error() string { return "cancelled: " + e.Reason }

// final reports whether a retry is useless.
func final(err error) bool {
	var seq *SeqError
	var heldBy *HeldError
	return errors.Is(err, ErrStale) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrExists) || errors.Is(err, ErrEnded) ||
		errors.Is(err, ErrAnswered) || errors.As(err, &seq) || errors.As(err, &heldBy)
}

// patiently retries until the store succeeds, returns a final error, or Options.Patience has
// passed.
func (k *Keeper) patiently(ctx context.Context, try func(context.Context) error) error {
	err := try(ctx)
	if err == nil || final(err) || k.options.Patience < 0 {
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
		if err = try(limited); err == nil || final(err) {
			return err
		}
	}
}
