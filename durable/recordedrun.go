package durable

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// recordedRun is a run that this process holds. It is the value of a Scratch: the zero value means a run
// that is not recorded.
type recordedRun struct {
	keeper *Keeper
	lease  Lease
	lose   context.CancelCauseFunc // ends the run: another process has it, or it cannot be recorded

	// For a run that is recorded with another one: that run and its call. Locks are taken from the
	// lower run first.
	up   *recordedRun
	call string

	writing sync.Mutex // held during a commit; it is taken before mu

	mu      sync.Mutex
	last    agent.State      // after the last staged entry
	events  []Event          // not committed yet
	counts  map[string]int64 // of events that are only counted, not committed yet
	paused  bool             // a signal pauses the run after its current step
	added   []Signal         // added context that the conversation does not have yet
	heard   int64            // the number of the last signal with added context that was received
	adding  int64            // the number of the last signal whose context the state of the run has
	handled int64            // the number of the last signal whose context a staged entry has
	entries int64            // in the journal
	staged  int64            // the number of the last staged entry
	waiting []Entry          // staged entries that no commit has taken yet
	update  Update           // committed with them
	given   []AuditRecord    // answers that no staged entry has
	records []AuditRecord    // answers that a staged entry has, committed with it
	settle  *time.Timer      // commits them soon; nil when no commit is planned
	begins  *beginning       // nil while no calls begin together
	lost    error            // the reason why nothing more is written
	over    bool             // Once records nothing more: the run has ended or waits
	done    map[string][]byte
	begun   map[string]bool
	doing   map[string]*sync.Mutex // held while a func of Once runs
	allowed time.Time              // when the switch that denies every tool was off; zero when a tool has run since
}

// alone locks the name for a func of Once, after waiting for other callers.
func (h *recordedRun) alone(name string) (over func()) {
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

// adopt takes the run under a claim.
func (h *recordedRun) adopt(k *Keeper, c *claim) {
	h.keeper, h.lease, h.entries, h.staged, h.last = k, c.lease, c.entries, c.entries, c.state
	h.done, h.begun = c.done, c.begun
	if h.done == nil {
		h.done, h.begun = map[string][]byte{}, map[string]bool{}
	}
}

// around runs the run while renewing the lease, and records its end.
func (h *recordedRun) around(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
	inside, lose := context.WithCancelCause(context.WithValue(ctx, recordedRunKey{}, h))
	h.lose = lose
	defer h.keeper.follow(h)()
	if _, ok := ctx.Value(leased{}).(*claim); ok { // signals may have come while no process held the run
		h.keeper.lookForSignals(ctx)
	}
	// The agent reports the beginning and the end outside of this processor, where the run is not known.
	if agent.Checkpoint(s).Resumed() {
		h.keeper.Observe(inside, agent.RunResumed{State: s})
	} else {
		h.keeper.Observe(inside, agent.RunStarted{Run: s.Run()})
	}
	var renewing sync.WaitGroup
	over := make(chan struct{})
	renewing.Go(func() { h.renewLease(inside, over) })
	stop := sync.OnceFunc(func() {
		close(over)
		renewing.Wait()
		lose(nil)
	})
	defer func() { _ = h.commitAll(ctx) }() // also when a processor panics, as below
	defer stop()
	result := agent.Conclude(inside, s, next(inside, s)) // this context has the cause of a cancellation
	stop()
	final := lastState(result)
	if lost := h.whyLost(); lost != nil {
		h.release(ctx)
		return failedToKeep(final, lost)
	}
	// Every end is recorded, including that of the context.
	if err := h.recordEnd(context.WithoutCancel(ctx), final, result.Error(), cut(ctx)); err != nil {
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
func (h *recordedRun) recordEnd(ctx context.Context, final agent.State, err error, cut bool) error {
	h.mu.Lock()
	h.over = true
	h.mu.Unlock()
	if !final.Parked() {
		status, blocked := statusOf(final.Status())
		h.keeper.Observe(context.WithValue(ctx, recordedRunKey{}, h), agent.RunCompleted{State: final, Err: err})
		return h.note(ctx, EntryEnd, final, Update{
			Status: status, Blocked: blocked, Reason: final.StopSignal().OrEmpty().Reason, Steps: final.RunStepCount(), Result: agentResult(final, err),
		})
	}
	h.keeper.Observe(context.WithValue(ctx, recordedRunKey{}, h), agent.RunParked{State: final})
	if !final.Waiting() || cut { // suspended: any process may resume it at once from the journal
		err := errors.Join(h.commitAll(ctx), h.commitEvents(ctx))
		h.release(ctx)
		return err
	}
	notice := noticeOf(final, len(h.keeper.options.Notify) > 0)
	waits, err := notice.Waits()
	if err != nil {
		return err
	}
	if err := h.note(ctx, EntryPark, final, Update{Status: StatusWaiting, Steps: final.RunStepCount(), Waits: waits}); err != nil {
		return err
	}
	h.release(ctx)
	if notice = notice.forPeople(); len(notice.Calls) == 0 {
		return nil
	}
	for _, n := range h.keeper.options.Notify {
		if err := n.Notify(ctx, notice); err != nil {
			final.Emit(ctx, NotifyFailed{final.Run(), err})
		}
	}
	return nil
}

func (h *recordedRun) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = h.keeper.store.Release(ctx, h.lease, 0) // otherwise the lease expires
}

// settleTime is how long an entry that may wait is kept in memory for the entry that follows it, so that both share a
// commit. An agent that decides without a process, a request or a person takes less; everything slower finds the entry
// in the journal.
const settleTime = 2 * time.Millisecond

// mayWait reports whether an entry may share the commit of the entry that follows it: nothing has begun that is not in
// the journal, so a crash costs at most what the process did in settleTime.
func (k EntryKind) mayWait() bool {
	switch EntryKind(strings.TrimPrefix(string(k), childPrefix)) {
	case EntryReply, EntryResult:
		return true
	}
	return false
}

// note records the current state.
func (h *recordedRun) note(ctx context.Context, kind EntryKind, s agent.State, u Update) error {
	return h.record(ctx, Entry{Kind: kind}, u, func(agent.State) agent.State { return s })
}

// noteCall records the progress of a call of the open step.
func (h *recordedRun) noteCall(ctx context.Context, kind EntryKind, key string, change func(agent.State) agent.State) error {
	return h.record(ctx, Entry{Kind: kind, Key: key}, Update{}, change)
}

// noteBegun records that a call runs. Of calls that begin together, the last one commits the entries of all.
func (h *recordedRun) noteBegun(ctx context.Context, together int, p *agent.Prepared) error {
	e := Entry{Kind: EntryCall, Key: p.Original.ID}
	top, err := h.stageChange(&e, Update{}, func(s agent.State) agent.State { return agent.Checkpoint(s).WithCallBegun(p) })
	if err != nil {
		return err
	}
	if together > 1 {
		h.awaitOthers(together)
	}
	return top.commitThrough(ctx, e.Seq)
}

// beginning is calls that begin together.
type beginning struct {
	calls int
	all   chan struct{} // closed when as many have begun as were expected
}

// awaitOthers waits until all calls have begun that begin together, but no longer than settleTime.
func (h *recordedRun) awaitOthers(together int) {
	h.mu.Lock()
	b := h.begins
	if b == nil {
		b = &beginning{all: make(chan struct{})}
		h.begins = b
	}
	if b.calls++; b.calls == together {
		h.begins = nil
		close(b.all)
	}
	h.mu.Unlock()
	late := time.NewTimer(h.keeper.settle)
	defer late.Stop()
	select {
	case <-b.all:
	case <-late.C:
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.begins == b {
			h.begins = nil
		}
	}
}

// record adds an entry with a change of the state to the journal.
func (h *recordedRun) record(ctx context.Context, e Entry, u Update, change func(agent.State) agent.State) error {
	top, err := h.stageChange(&e, u, change)
	if err != nil {
		return err
	}
	return top.commitStaged(ctx, e)
}

// stageChange stages an entry whose data is what changed since the last one. It returns the run that has the journal, and
// sets the number, kind and key that the entry has there.
func (h *recordedRun) stageChange(e *Entry, u Update, change func(agent.State) agent.State) (top *recordedRun, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := change(h.last)
	if h.up != nil {
		e.Kind, e.Key = ofChild(e.Kind, h.call, e.Key)
		there := false
		top, err = h.up.stageChange(e, Update{}, func(above agent.State) agent.State {
			above = agent.Checkpoint(above).WithCallChild(h.call, s)
			_, _, there = agent.Checkpoint(above).Child(h.call)
			return above
		})
		if err == nil && !there {
			h.up.mu.Lock()
			defer h.up.mu.Unlock()
			err = h.up.give(fmt.Errorf("recording a %s: the journal has no call %s in progress", e.Kind, h.call))
		}
		if err == nil {
			h.last = s
		}
		return top, err
	}
	if e.Data, err = agent.Checkpoint(s).Changes(h.last); err != nil {
		return h, h.give(fmt.Errorf("recording a %s: %w", e.Kind, err))
	}
	if err := h.stage(e, u); err != nil {
		return h, err
	}
	h.last, h.handled = s, h.adding
	return h, nil
}

// stage numbers an entry and adds it to those that the next commit takes. The caller holds h.mu.
func (h *recordedRun) stage(e *Entry, u Update) error {
	if h.lost != nil {
		return h.lost
	}
	h.staged++
	e.Seq, e.At = h.staged, time.Now()
	h.waiting = append(h.waiting, *e)
	h.stageRecords(e)
	if u.Status != "" || u.Waits != nil {
		h.update = u
	}
	return nil
}

// commitStaged commits a staged entry, or plans its commit when it may wait.
func (h *recordedRun) commitStaged(ctx context.Context, e Entry) error {
	if !e.Kind.mayWait() {
		return h.commitThrough(ctx, e.Seq)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.settle == nil && len(h.waiting) > 0 {
		ctx = context.WithoutCancel(ctx)
		h.settle = time.AfterFunc(h.keeper.settle, func() { _ = h.commitThrough(ctx, e.Seq) }) // its error ends the run: see give
	}
	return h.lost
}

// commitThrough writes all waiting entries in one commit, unless another caller has written the one with this number. It retries
// a failing store for a while, independent of the context of the run, since the events have already happened.
func (h *recordedRun) commitThrough(ctx context.Context, seq int64) error {
	h.writing.Lock()
	defer h.writing.Unlock()
	h.mu.Lock()
	if h.lost != nil || h.entries >= seq {
		defer h.mu.Unlock()
		return h.lost
	}
	c, state := Commit{Entries: h.waiting, Events: h.takeEvents(), Update: h.update, Records: h.records, HandledSignals: h.handled}, h.last
	h.waiting, h.update, h.records = nil, Update{}, nil
	if h.settle != nil {
		h.settle.Stop()
		h.settle = nil
	}
	h.mu.Unlock()

	ctx = context.WithoutCancel(ctx)
	watch := watchCommit(ctx, state)
	err := h.keeper.patiently(ctx, func(ctx context.Context) error {
		return watch.note(h.keeper.store.Commit(ctx, h.lease, c))
	})
	watch.stop(ctx, err)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		return h.give(fmt.Errorf("writing to the journal of run %s: %w", h.lease.Run, err))
	}
	h.entries = c.Entries[len(c.Entries)-1].Seq
	return nil
}

// commitAll commits every staged entry, and waits for a commit that is under way.
func (h *recordedRun) commitAll(ctx context.Context) error {
	h.mu.Lock()
	last := h.staged
	h.mu.Unlock()
	return h.commitThrough(ctx, last)
}

// give gives the run up: nothing more is written, and the run is cancelled.
func (h *recordedRun) give(err error) error {
	if h.up != nil {
		h.up.mu.Lock()
		defer h.up.mu.Unlock()
		return h.up.give(err)
	}
	if h.lost == nil {
		h.lost = err
		if h.settle != nil {
			h.settle.Stop()
		}
		if h.lose != nil {
			h.lose(errors.Join(agent.ErrSuspended, err))
		}
	}
	return h.lost
}

func (h *recordedRun) whyLost() error {
	if h.up != nil {
		return h.up.whyLost()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost
}

// renewLease renews the lease until the run is over.
func (h *recordedRun) renewLease(ctx context.Context, over <-chan struct{}) {
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
		if _, err := h.keeper.store.Renew(ctx, h.lease, h.keeper.options.Lease); errors.Is(err, ErrStale) || errors.Is(err, ErrNotFound) {
			h.mu.Lock()
			_ = h.give(err)
			h.mu.Unlock()
		}
	}
}

// CancelledError is the cause of a cancellation by request: see SignalCancel.
type CancelledError struct{ Reason string }

func (e *CancelledError) Error() string { return "cancelled: " + e.Reason }

// final reports whether a retry is useless.
func final(err error) bool {
	var seq *SeqError
	var heldBy *HeldError
	return errors.Is(err, ErrStale) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrExists) || errors.Is(err, ErrEnded) ||
		errors.Is(err, ErrAnswered) || errors.Is(err, ErrConflict) || errors.As(err, &seq) || errors.As(err, &heldBy)
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
