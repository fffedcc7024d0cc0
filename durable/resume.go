package durable

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// Load returns the state of a run from its journal, with the recorded answers. It returns ErrNotBegun if the run was
// cut off before its input was accepted: there is no state to resume.
func Load(ctx context.Context, store Reader, id agent.RunID) (agent.State, error) {
	entries, err := store.Entries(ctx, id, 0)
	if err != nil {
		return agent.State{}, fmt.Errorf("loading run %s: %w", id, err)
	}
	c, err := restoreClaim(entries)
	if err != nil {
		return agent.State{}, fmt.Errorf("loading run %s: %w", id, err)
	}
	return withAnswers(ctx, store, id, c.state)
}

// errNoAgent is returned for a run that only an agent can continue.
var errNoAgent = errors.New("no agent: pass the agent that the run began with")

// ErrPaused is returned when a run is paused.
var ErrPaused = errors.New("the run is paused: resume it with a signal first")

// errStartsLater is returned when a run has not started because it waits: see Job.After.
var errStartsLater = errors.New("it has not started and waits for another run: resume it when that run has ended")

// ErrNotBegun is returned when the journal of a run has no beginning.
var ErrNotBegun = errors.New("the run was interrupted before its input was accepted: start it again")

// restoreClaim rebuilds a claim from journal entries.
func restoreClaim(entries []Entry) (*claim, error) {
	c := &claim{onceResults: map[string][]byte{}, onceBegun: map[string]bool{}}
	var changes [][]byte
	for _, e := range entries {
		c.entries, c.lastWritten = e.Seq, e.At
		switch {
		case e.Kind.changesState():
			changes = append(changes, e.Data)
		case e.Kind == EntryOnce:
			c.onceBegun[e.Key] = true
		case e.Kind == EntryDone:
			delete(c.onceBegun, e.Key)
			c.onceResults[e.Key] = e.Data
		}
	}
	if len(changes) == 0 {
		return c, ErrNotBegun
	}
	var err error
	c.state, err = agent.Restore(changes...)
	return c, err
}

// withAnswers adds the answers to the run's waits to its state.
func withAnswers(ctx context.Context, store Reader, id agent.RunID, s agent.State) (agent.State, error) {
	if !s.Parked() {
		return s, nil
	}
	waits, err := store.Waits(ctx, id)
	if err != nil {
		return s, fmt.Errorf("loading the waits of run %s: %w", id, err)
	}
	for _, w := range waits {
		i, broken := InterventionOf(w) // a question that cannot be read was not shown, so its answer does not count
		approvals, err := approvalsOf(w)
		if err = errors.Join(broken, err); err != nil {
			return s, err
		}
		for n, answer := range w.Answers() {
			s = s.WithApprovalAt(i.ID, approvals[n], answer.At)
		}
	}
	return s, nil
}

// Resume resumes a run from the store with an agent that uses this keeper. It takes the run's
// lease, restores its state, answers expired questions, and runs it to its end, or until it waits
// again. It returns the state of a run that still waits or has ended without running it.
//
// It returns a *HeldError when another process has the run, unless take is TakeOver. A run whose
// cancellation was requested ends as cancelled. A paused run is ErrPaused.
func (k *Keeper) Resume(ctx context.Context, a *agent.Agent, id agent.RunID, take Take) mo.Result[agent.State] {
	about, err := k.store.Run(ctx, id)
	if err == nil && about.Status.Ended() {
		return mo.TupleToResult(Load(ctx, k.store, id))
	}
	var lease Lease
	if err == nil {
		lease, err = k.acquire(ctx, id, take)
	}
	if errors.Is(err, ErrEnded) {
		return mo.TupleToResult(Load(ctx, k.store, id))
	}
	if err == nil {
		if about, err = k.store.Run(ctx, id); err != nil {
			err = k.giveBack(ctx, lease, err)
		}
	}
	if err != nil {
		return mo.Err[agent.State](fmt.Errorf("resuming run %s: %w", id, err))
	}
	about.Owner, about.Epoch, about.Expires = lease.Owner, lease.Epoch, lease.Expires
	result := k.Execute(ctx, a, about)
	if err := result.Error(); err != nil && !hasRun(err) {
		return mo.Err[agent.State](k.giveBack(ctx, lease, err))
	}
	return result
}

// hasRun reports whether an error is the run's own, so that the run has given up its lease.
func hasRun(err error) bool {
	_, ran := errors.AsType[*agent.RunError](err)
	return ran
}

// Execute works like Resume for a run that this keeper's owner has leased, such as a run that a worker has claimed. It
// starts a job that has not begun. After an error other than *agent.RunError, the run was not executed and the caller
// still has the lease.
func (k *Keeper) Execute(ctx context.Context, a *agent.Agent, about Run) mo.Result[agent.State] {
	id, lease := about.ID, about.Lease()
	fail := func(err error) mo.Result[agent.State] {
		return mo.Err[agent.State](fmt.Errorf("resuming run %s: %w", id, err))
	}
	if about.Paused && about.CancelCause == "" {
		return fail(ErrPaused)
	}
	if about.Phase != "" {
		return fail(fmt.Errorf("it is in phase %q: a worker with a runner of that kind must pass it on first", about.Phase))
	}
	entries, err := k.store.Entries(ctx, id, 0)
	if err != nil {
		return fail(err)
	}
	c, err := restoreClaim(entries)
	c.lease = lease
	if again := k.options.Again; again != nil {
		maps.DeleteFunc(c.onceResults, func(name string, _ []byte) bool { return again(name) })
	}
	if errors.Is(err, ErrNotBegun) {
		if about.Status == StatusWaiting && about.CancelCause == "" {
			return fail(errStartsLater)
		}
		return k.start(ctx, a, about, c)
	}
	s := c.state
	if err == nil {
		s, err = withAnswers(ctx, k.store, id, s)
	}
	if err != nil {
		return fail(err)
	}
	now := time.Now()
	if about.Updated.After(now) { // by the clock of the store, which has decided that the run is ready
		now = about.Updated
	}
	s = agent.Checkpoint(s).WithExpired(now)
	if about.CancelCause != "" {
		cancelled, cancel := context.WithCancelCause(ctx)
		cancel(&CancelledError{about.CancelReason, about.CancelCause})
		ctx = cancelled
	} else if s.Waiting() {
		return mo.TupleToResult(s, k.keepWaiting(context.WithoutCancel(ctx), lease, s))
	}
	if s.Status().Terminal() { // contradiction: its end was written, but not its status
		return fail(fmt.Errorf("the journal says that the run ended as %s", s.Status()))
	}
	if a == nil {
		return fail(errNoAgent)
	}
	_, limits, err := InputOf(context.WithoutCancel(ctx), k.store, id) // a cancelled run ends as cancelled
	if err != nil {
		return fail(err)
	}
	return a.RunWith(context.WithValue(ctx, leased{}, c), agent.RunSettings{Resume: true, Limits: limits, Idle: max(time.Since(c.lastWritten), 1)}, s)
}

// start starts a job that has not begun: its journal has no state.
func (k *Keeper) start(ctx context.Context, a *agent.Agent, about Run, c *claim) mo.Result[agent.State] {
	input, limits, err := InputOf(ctx, k.store, about.ID)
	if err != nil {
		return mo.Err[agent.State](fmt.Errorf("starting run %s: %w", about.ID, err))
	}
	end := func(status Status, reason agent.StopReason, err error) mo.Result[agent.State] {
		u := Update{Status: status, Reason: reason, Result: agentResult(agent.State{}, err)}
		if e := k.store.Commit(context.WithoutCancel(ctx), c.lease, Commit{Update: u}); e != nil {
			return mo.Err[agent.State](fmt.Errorf("starting run %s: %w", about.ID, errors.Join(err, e)))
		}
		return mo.Err[agent.State](&agent.RunError{Err: fmt.Errorf("starting run %s: %w", about.ID, err)})
	}
	switch {
	case about.CancelCause != "":
		return end(StatusCancelled, agent.StopUser, &CancelledError{about.CancelReason, about.CancelCause})
	case len(input) == 0:
		return end(StatusFailed, agent.StopError, ErrNotBegun)
	}
	submitted, err := agent.Restore(input)
	if err != nil {
		return end(StatusFailed, agent.StopError, fmt.Errorf("reading its input: %w", err))
	}
	if a == nil {
		return mo.Err[agent.State](fmt.Errorf("starting run %s: %w", about.ID, errNoAgent))
	}
	settings := agent.RunSettings{ID: about.ID, Session: about.Session, Limits: limits, Stage: about.Labels[LabelStage]}
	settings.Iteration, _ = strconv.Atoi(about.Labels[LabelIteration])
	if about.Parent != "" {
		settings.Parent = agent.Run{ID: about.Parent, Root: about.Root}
	}
	return a.RunWith(context.WithValue(ctx, leased{}, c), settings, submitted)
}

// keepWaiting releases the lease of a run that still waits.
func (k *Keeper) keepWaiting(ctx context.Context, l Lease, s agent.State) error {
	if err := k.store.Commit(ctx, l, Commit{Update: Update{Status: StatusWaiting, Steps: s.RunStepCount()}}); err != nil {
		return err
	}
	return k.store.Release(ctx, l, 0)
}

// giveBack releases a lease after an error, and returns that error.
func (k *Keeper) giveBack(ctx context.Context, l Lease, why error) error {
	if err := k.store.Release(context.WithoutCancel(ctx), l, 0); err != nil && !errors.Is(err, ErrStale) {
		return errors.Join(why, err)
	}
	return why
}

// acquire takes the lease of a run. It takes over at once a lease of a process on this machine
// that has exited.
func (k *Keeper) acquire(ctx context.Context, id agent.RunID, take Take) (Lease, error) {
	lease, err := k.store.Acquire(ctx, id, k.options.Owner, k.options.Lease, take)
	var other *HeldError
	if errors.As(err, &other) && hasExited(other.Owner, k.options.Owner) {
		lease, err = k.store.Acquire(ctx, id, k.options.Owner, k.options.Lease, TakeOver)
	}
	return lease, err
}

// ErrExpired is returned when the time for an answer has passed.
var ErrExpired = errors.New("the deadline for an answer has passed")
