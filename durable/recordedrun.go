package durable

import (
	"context"
	"fmt"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// recordedRun is an agent's run that this process executes and records. Each part has its own lock. A goroutine takes
// locks in this order:
//
//   - onceResults.lock, while a func of Keeper.Once runs
//   - journalBuffer.committing, during a commit
//   - journalBuffer.mu, of a nested run before the run above it
//   - heldLease.mu
//
// All other locks are taken last. Only the first two are held while the store is called.
//
// The recordedRun is the value of a Scratch. The zero value is a run that is not recorded.
type recordedRun struct {
	keeper  *Keeper
	journal journalBuffer

	// A nested run shares these with the run above it.
	lease   *heldLease
	signals *runSignals
	once    *onceResults

	switchReading switchReading
	batch         callBatch
}

// recordedRunKey is the context key of the run that this process executes.
type recordedRunKey struct{}

// isNested reports whether the run is recorded in the journal of the run above it.
func (r *recordedRun) isNested() bool { return r.journal.above != nil }

// adopt takes the run under a claim.
func (r *recordedRun) adopt(k *Keeper, c *claim) {
	r.keeper = k
	r.lease = newHeldLease(k, c.lease)
	r.journal.lease, r.journal.delay = r.lease, k.commitDelay
	r.journal.lastStaged, r.journal.lastCommitted, r.journal.state = c.entries, c.entries, c.state
	r.signals = &runSignals{cancel: r.lease.cancelRun}
	r.once = &onceResults{journal: &r.journal, begun: c.onceBegun, results: c.onceResults}
}

// executeTop runs a run with its own journal while it renews the lease, and records its end.
func (r *recordedRun) executeTop(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
	inside, stop := r.lease.hold(context.WithValue(ctx, recordedRunKey{}, r))
	defer r.keeper.signals.follow(r.lease.Run, r.signals)()
	defer func() { _ = r.journal.leave(ctx) }() // also when a processor panics
	defer stop()
	if _, ok := ctx.Value(leased{}).(*claim); ok { // signals may have come while no process held the run
		r.keeper.signals.read(ctx)
	}
	// The agent reports the beginning and the end outside of this processor, where the run is not known.
	if agent.Checkpoint(s).Resumed() {
		r.keeper.Observe(inside, agent.RunResumed{State: s})
	} else {
		r.keeper.Observe(inside, agent.RunStarted{Run: s.Run()})
	}
	result := agent.Conclude(inside, s, next(inside, s)) // this context has the cause of a cancellation
	stop()
	final := lastState(result)
	if err := r.lease.err(); err != nil {
		r.lease.release(ctx)
		return failedToKeep(final, err)
	}
	// Every end is recorded, including cancellation of the context.
	if err := r.recordEnd(context.WithoutCancel(ctx), final, result.Error(), wasCutOff(ctx)); err != nil {
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
func (r *recordedRun) recordEnd(ctx context.Context, final agent.State, err error, cutOff bool) error {
	r.journal.setClosed()
	observed := context.WithValue(ctx, recordedRunKey{}, r)
	if !final.Parked() {
		status, blocked := statusOf(final.Status())
		r.keeper.Observe(observed, agent.RunCompleted{State: final, Err: err})
		return r.recordState(ctx, EntryEnd, final, Update{
			Status: status, Blocked: blocked, Reason: final.StopSignal().Reason, Steps: final.RunStepCount(),
			Usage: UsageOf(final.RunUsage()), Result: agentResult(final, err),
		})
	}
	r.keeper.Observe(observed, agent.RunParked{State: final})
	if !final.Waiting() || cutOff { // suspended: any process may resume it at once from the journal
		err := r.journal.leave(ctx)
		r.lease.release(ctx)
		return err
	}
	return r.recordWaits(ctx, final)
}

// recordWaits records what the run waits for, gives up the lease, and notifies people.
func (r *recordedRun) recordWaits(ctx context.Context, s agent.State) error {
	notice := noticeOf(s, len(r.keeper.options.Notify) > 0)
	waits, err := notice.Waits()
	if err != nil {
		return err
	}
	u := Update{Status: StatusWaiting, Steps: s.RunStepCount(), Usage: UsageOf(s.RunUsage()), Waits: waits}
	if err := r.recordState(ctx, EntryPark, s, u); err != nil {
		return err
	}
	r.lease.release(ctx)
	if notice = notice.forPeople(); len(notice.Calls) == 0 {
		return nil
	}
	for _, n := range r.keeper.options.Notify {
		if err := notifySafely(ctx, n, notice); err != nil {
			s.Emit(ctx, NotifyFailed{s.Run(), err})
		}
	}
	return nil
}

// recordState records the run's current state.
func (r *recordedRun) recordState(ctx context.Context, kind EntryKind, s agent.State, u Update) error {
	return r.journal.record(ctx, Entry{Kind: kind}, u, func(agent.State) agent.State { return s })
}

// withContext returns the state with the context that was added since the previous step. Each signal is a message with
// the sender as its source. A nested run gets none.
func (r *recordedRun) withContext(s agent.State) agent.State {
	if r.isNested() {
		return s
	}
	for _, added := range r.signals.takeContext() {
		source := added.By
		if source == "" {
			source = "signal"
		}
		s = s.With(agent.UserText(added.Text).WithSource(source))
		r.journal.setContextUsed(added.Seq)
	}
	return s
}
