package store

import (
	"context"
	"fmt"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// setStatus changes the status of a run. A run that becomes ready is owed an offer.
func (t tx) setStatus(r *Run, s durable.Status) {
	if s == durable.StatusReady && r.Status == durable.StatusReady {
		return
	}
	r.Status, r.Ready = s, time.Time{}
	if s == durable.StatusReady {
		r.Ready, r.Offered = t.now, time.Time{}
		r.Offer++
		t.Notify()
	}
}

// free makes a run ready or pending that no process executes.
func (t tx) free(r *Run, s durable.Status) {
	r.Owner, r.Expires, r.Updated = "", time.Time{}, t.now
	t.setStatus(r, s)
}

// isSatisfied reports whether a waiting run has nothing to wait for.
func (t tx) isSatisfied(r Run) (bool, error) {
	waits, err := t.Waits(r.ID)
	if err != nil {
		return false, err
	}
	return t.isSatisfiedBy(r, waits)
}

func (t tx) isSatisfiedBy(r Run, waits []Wait) (bool, error) {
	var children []agent.RunID
	for _, w := range waits {
		if w.Child != "" && w.Answer == nil {
			children = append(children, w.Child)
		}
	}
	runs, err := t.Runs(children...)
	return r.isSatisfied(waits, runs), err
}

// giveUp ends the lease of a run that has not ended.
func (t tx) giveUp(r *Run, delay time.Duration) error {
	switch {
	case r.CancelReason != "":
		t.free(r, durable.StatusReady)
	case r.Paused:
		t.free(r, durable.StatusWaiting)
	case r.Status == durable.StatusRunning && delay > 0:
		r.NotBefore = t.now.Add(delay)
		t.free(r, durable.StatusPending)
	case r.Status == durable.StatusRunning, r.IsOverdue(t.now):
		t.free(r, durable.StatusReady)
	default:
		satisfied, err := t.isSatisfied(*r)
		if err != nil {
			return err
		}
		next := r.Status
		if satisfied {
			next = durable.StatusReady
		}
		t.free(r, next)
	}
	return nil
}

// wake makes a waiting run ready that no process holds, if it has nothing to wait for.
func (t tx) wake(r *Run) error {
	if r.Status != durable.StatusWaiting || r.IsHeld(t.now) || r.Paused {
		return nil
	}
	satisfied, err := t.isSatisfied(*r)
	if err == nil && satisfied {
		t.free(r, durable.StatusReady)
	}
	return err
}

// end ends a run, stores it, and wakes the runs that wait for it.
func (t tx) end(r *Run, s durable.Status) error {
	r.Paused, r.AnswerBy = false, time.Time{}
	t.free(r, s)
	if err := t.PutWaits(r.ID, nil); err != nil {
		return err
	}
	if err := t.PutRun(*r); err != nil {
		return err
	}
	waiters, err := t.LockWaiters(r.ID)
	for _, waiter := range waiters {
		if err != nil {
			return err
		}
		if waiter.ID != r.ID {
			err = t.endChild(waiter, r.ID)
		}
	}
	return err
}

// endChild wakes a run after the end of a run that it waits for. The wait of Job.After is answered: the other run may be deleted
// before this one starts.
func (t tx) endChild(r Run, child agent.RunID) error {
	if err := t.wake(&r); err != nil {
		return err
	}
	if err := t.PutRun(r); err != nil {
		return err
	}
	waits, err := t.Waits(r.ID)
	if err != nil {
		return err
	}
	for i, w := range waits {
		if w.IsAfter() && w.Child == child && w.Answer == nil {
			waits[i].Answer = &durable.Answer{Wait: w.ID, Subject: w.Subject, Ends: true, At: t.now}
		}
	}
	return t.PutWaits(r.ID, waits)
}

// Acquire implements durable.Store.
func (s *Store) Acquire(ctx context.Context, id agent.RunID, owner string, ttl time.Duration, take durable.Take) (l durable.Lease, err error) {
	err = s.change(ctx, id, func(t tx, r *Run) error {
		switch {
		case r.Status.Ended():
			return fmt.Errorf("run %q: %w", id, durable.ErrEnded)
		case r.IsHeld(t.now) && r.Owner != owner && take != durable.TakeOver:
			return &durable.HeldError{Run: id, Owner: r.Owner, Expires: r.Expires}
		}
		r.Start(owner, ttl, t.now)
		l = r.Lease()
		return nil
	})
	return l, err
}

// Claim implements durable.Store.
func (s *Store) Claim(ctx context.Context, owner string, ttl time.Duration, limit int, keys ...durable.Key) (runs []durable.Run, err error) {
	if limit <= 0 || len(keys) == 0 {
		return nil, ctx.Err()
	}
	err = s.write(ctx, func(t tx) (err error) {
		runs, err = t.Claim(owner, ttl, limit, keys)
		return err
	})
	return runs, err
}

// changeHeld locks the run of a lease, which must be the newest one, lets f change it, and stores it.
func (s *Store) changeHeld(ctx context.Context, l durable.Lease, f func(t tx, r *Run) error) error {
	return s.change(ctx, l.Run, func(t tx, r *Run) error {
		if r.Epoch != l.Epoch || r.Owner == "" || r.Owner != l.Owner {
			return fmt.Errorf("run %q, epoch %d: %w", l.Run, l.Epoch, durable.ErrStale)
		}
		return f(t, r)
	})
}

// Renew implements durable.Store.
func (s *Store) Renew(ctx context.Context, l durable.Lease, ttl time.Duration) (renewed durable.Lease, err error) {
	err = s.changeHeld(ctx, l, func(t tx, r *Run) error {
		r.Expires = t.now.Add(ttl)
		renewed = r.Lease()
		return nil
	})
	return renewed, err
}

// Release implements durable.Store.
func (s *Store) Release(ctx context.Context, l durable.Lease, delay time.Duration) error {
	return s.changeHeld(ctx, l, func(t tx, r *Run) error { return t.giveUp(r, delay) })
}

// Queues implements durable.Store.
func (s *Store) Queues(ctx context.Context) ([]durable.Needs, error) {
	return readRows(ctx, s, func(rows Rows) ([]durable.Needs, error) { return rows.Queues() })
}

// QueueServices implements durable.Store.
func (s *Store) QueueServices(ctx context.Context, keys ...durable.Key) (map[durable.Key]durable.Service, error) {
	return readRows(ctx, s, func(rows Rows) (map[durable.Key]durable.Service, error) { return rows.Services(keys...) })
}

// RecordPoll implements durable.Store.
func (s *Store) RecordPoll(ctx context.Context, keys ...durable.Key) error {
	return s.write(ctx, func(t tx) error { return t.PutPoll(keys...) })
}

// Owed implements durable.Store.
func (s *Store) Owed(ctx context.Context, retry time.Duration, limit int) ([]durable.Offer, error) {
	return readRows(ctx, s, func(rows Rows) ([]durable.Offer, error) { return rows.Owed(retry, limit) })
}

// RecordOffers implements durable.Store.
func (s *Store) RecordOffers(ctx context.Context, offers ...durable.OfferID) error {
	return s.write(ctx, func(t tx) error { return t.PutOffers(offers...) })
}

// reconcileAtOnce is how many runs of each cause Reconcile changes at most.
const reconcileAtOnce = 1000

// Reconcile implements durable.Store.
func (s *Store) Reconcile(ctx context.Context) (done durable.Reconciled, err error) {
	counts := map[Cause]*int{Expired: &done.Expired, Overdue: &done.Overdue, Due: &done.Due, Unstarted: &done.Late, Late: &done.Late}
	err = s.write(ctx, func(t tx) error {
		done = durable.Reconciled{Done: true}
		for c := Expired; c <= Late; c++ {
			runs, err := t.LockDue(c, reconcileAtOnce)
			if err != nil {
				return err
			}
			for _, r := range runs {
				if err := t.pass(r.ID, c); err != nil {
					return err
				}
			}
			*counts[c] += len(runs)
			done.Done = done.Done && len(runs) < reconcileAtOnce
		}
		return nil
	})
	return done, err
}

// pass changes a run because of the time. It reads the run again: an earlier run of the same cause may have changed it.
func (t tx) pass(id agent.RunID, c Cause) error {
	r, err := t.lock(id)
	if err != nil {
		return err
	}
	switch c {
	case Expired:
		err = t.giveUp(&r, 0)
	case Overdue, Due:
		t.free(&r, durable.StatusReady)
	case Unstarted:
		if r.CancelReason == "" {
			r.CancelReason = "it did not start in time"
		}
		r.Reason = agent.StopUser
		return t.end(&r, durable.StatusCancelled)
	case Late:
		err = t.cancel(&r, "the deadline has passed")
	}
	if err != nil {
		return err
	}
	return t.PutRun(r)
}
