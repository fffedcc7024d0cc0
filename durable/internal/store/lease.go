package store

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
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
		r.Ready, r.Offered = t.Now(), time.Time{}
		r.Offer++
		t.Notify()
	}
}

// free makes a run ready or pending that no process executes.
func (t tx) free(r *Run, s durable.Status) {
	r.Owner, r.Leased, r.Expires, r.Updated = "", time.Time{}, time.Time{}, t.Now()
	if s.Ended() {
		r.Ended = r.Updated
	}
	t.setStatus(r, s)
}

// isSatisfied reports whether a waiting run has nothing to wait for.
func (t tx) isSatisfied(r Run) (bool, error) {
	waits, err := t.waitsOf(r.ID)
	if err != nil {
		return false, err
	}
	known := map[agent.RunID]Run{}
	var others []agent.RunID
	for _, w := range waits {
		switch child, locked := t.runs[w.Child]; {
		case w.Child == "" || w.Answer != nil:
		case locked:
			known[w.Child] = child
		default:
			others = append(others, w.Child)
		}
	}
	if len(others) == 0 || r.isSatisfied(waits, known) { // an end wakes many runs: it reads nothing for each
		return r.isSatisfied(waits, known), nil
	}
	runs, err := t.Runs(others...)
	maps.Copy(known, runs)
	return r.isSatisfied(waits, known), err
}

// place returns the status of a live run that no process holds. Delayed is set when its last process has delayed it.
func (t tx) place(r Run, delayed bool) (durable.Status, error) {
	switch {
	case r.CancelCause != "":
		return durable.StatusReady, nil
	case r.Paused:
		return durable.StatusWaiting, nil
	case r.Status == durable.StatusWaiting && !r.IsOverdue(t.Now()):
		if satisfied, err := t.isSatisfied(r); err != nil || !satisfied {
			return durable.StatusWaiting, err
		}
	}
	if delayed || r.Attempts == 0 && r.NotBefore.After(t.Now()) {
		return durable.StatusPending, nil
	}
	return durable.StatusReady, nil
}

// giveUp ends the lease of a run that has not ended.
func (t tx) giveUp(r *Run, delay time.Duration) error {
	delayed := r.Status == durable.StatusRunning && delay > 0
	next, err := t.place(*r, delayed)
	if err != nil {
		return err
	}
	if delayed && next == durable.StatusPending {
		r.NotBefore = t.Now().Add(delay)
	}
	t.free(r, next)
	return nil
}

// wake places a waiting run that no process holds, if it has nothing to wait for.
func (t tx) wake(r *Run) error {
	if r.Status != durable.StatusWaiting || r.IsHeld(t.Now()) || r.Paused && r.CancelCause == "" {
		return nil
	}
	satisfied, err := t.isSatisfied(*r)
	if err != nil || !satisfied {
		return err
	}
	next, err := t.place(*r, false)
	if err == nil {
		t.free(r, next)
	}
	return err
}

// end ends a run, stores it, and wakes the runs that wait for it.
func (t tx) end(r *Run, s durable.Status) error {
	r.Paused, r.AnswerBy = false, time.Time{}
	if err := t.countPasses(*r); err != nil {
		return err
	}
	t.free(r, s)
	if err := t.replaceWaits(r.ID, nil); err != nil {
		return err
	}
	if err := t.put(*r); err != nil {
		return err
	}
	waiters, err := t.LockWaiters(r.ID)
	for _, waiter := range waiters {
		if err != nil {
			return err
		}
		t.runs[waiter.ID] = waiter
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
	if err := t.put(r); err != nil {
		return err
	}
	waits, err := t.waitsOf(r.ID)
	if err != nil {
		return err
	}
	for i, w := range waits {
		if w.IsAfter() && w.Child == child && w.Answer == nil {
			waits[i].Answer = &durable.Answer{Wait: w.ID, Subject: w.Subject, Ends: true, At: t.Now()}
		}
	}
	return t.replaceWaits(r.ID, waits)
}

// Acquire implements durable.Store.
func (s *Store) Acquire(ctx context.Context, id agent.RunID, owner string, ttl time.Duration, take durable.Take) (l durable.Lease, err error) {
	err = s.change(ctx, "acquiring a run", id, func(t tx, r *Run) error {
		switch {
		case r.Status.Ended():
			return fmt.Errorf("run %q: %w", id, durable.ErrEnded)
		case r.IsHeld(t.Now()) && r.Owner != owner && take != durable.TakeOver:
			return &durable.HeldError{Run: id, Owner: r.Owner, Expires: r.Expires}
		}
		r.Start(owner, ttl, t.Now())
		l = r.Lease()
		return nil
	})
	return unlessFailed(l, err)
}

// Claim implements durable.Store.
func (s *Store) Claim(ctx context.Context, owner string, ttl time.Duration, limit int, keys ...durable.Key) (runs []durable.Run, err error) {
	if limit <= 0 || len(keys) == 0 {
		return nil, ctx.Err()
	}
	keys = uniqueKeys(keys)
	companion, over := durable.TakeCompanion(ctx)
	var also func(Tx, []durable.Run) error
	if companion != nil {
		also = func(rows Tx, claimed []durable.Run) error {
			return tx{Tx: rows, keys: s.keys}.addCompanion(companion(claimed...))
		}
	}
	defer func() { over(err == nil && len(runs) > 0) }()
	_, err = s.idle.Do(ctx, "claim "+setOf(keys), func() (_ struct{}, empty bool, err error) {
		runs, err = s.db.Claim(ctx, owner, ttl, limit, keys, also)
		runs = s.keys.openRuns(runs...)
		return struct{}{}, len(runs) == 0, err
	})
	return runs, err
}

// uniqueKeys returns different keys, in an order.
func uniqueKeys(keys []durable.Key) []durable.Key {
	keys = slices.Clone(keys)
	slices.SortFunc(keys, func(a, b durable.Key) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(keys)
}

// setOf returns a text for keys.
func setOf(keys []durable.Key) string {
	var text []byte
	for _, k := range keys {
		text = append(text, k[:]...)
	}
	return string(text)
}

// isLeased reports whether a lease is the newest one.
func (r *Run) isLeased(l durable.Lease) bool {
	return r.Epoch == l.Epoch && r.Owner != "" && r.Owner == l.Owner
}

// changeHeld locks the run of a lease, which must be the newest one, lets f change it, and stores it.
func (s *Store) changeHeld(ctx context.Context, doing string, l durable.Lease, f func(t tx, r *Run) error) error {
	return s.change(ctx, doing, l.Run, func(t tx, r *Run) error {
		if !r.isLeased(l) {
			return fmt.Errorf("run %q, epoch %d: %w", l.Run, l.Epoch, durable.ErrStale)
		}
		return f(t, r)
	})
}

// Renew implements durable.Store.
func (s *Store) Renew(ctx context.Context, l durable.Lease, ttl time.Duration) (durable.Lease, error) {
	expires, done, err := s.db.Renew(ctx, l, ttl)
	if err == nil && !done {
		err = s.changeHeld(ctx, "renewing a lease", l, func(t tx, r *Run) error {
			r.Leased, r.Expires = t.Now(), t.Now().Add(ttl)
			expires = r.Expires
			return nil
		})
	}
	l.Expires = expires
	return unlessFailed(l, err)
}

// Release implements durable.Store.
func (s *Store) Release(ctx context.Context, l durable.Lease, delay time.Duration) error {
	return s.changeHeld(ctx, "releasing a run", l, func(t tx, r *Run) error { return t.giveUp(r, delay) })
}

// Queues implements durable.Store.
func (s *Store) Queues(ctx context.Context) ([]durable.Needs, error) {
	all, err := s.queues.Do(ctx, "", func() (_ []durable.Needs, share bool, err error) {
		all, err := readRows(ctx, s, "reading the queues", Rows.Queues)
		return all, true, err
	})
	return slices.Clone(all), err
}

// QueueServices implements durable.Store.
func (s *Store) QueueServices(ctx context.Context, keys ...durable.Key) (map[durable.Key]durable.Service, error) {
	return readRows(ctx, s, "reading how queues are served", func(rows Rows) (map[durable.Key]durable.Service, error) {
		return rows.Services(uniqueKeys(keys)...)
	})
}

// pollPrecision is how old the time of the last poll may be when a worker polls again.
const pollPrecision = 20 * time.Second

// RecordPoll implements durable.Store.
func (s *Store) RecordPoll(ctx context.Context, keys ...durable.Key) error {
	const doing = "recording a poll"
	keys = uniqueKeys(keys)
	_, err := s.idle.Do(ctx, "poll "+setOf(keys), func() (_ struct{}, share bool, err error) {
		old, err := readRows(ctx, s, doing, func(rows Rows) (old []durable.Key, err error) {
			polled, err := rows.LastPolls(keys...)
			for key, at := range polled {
				if at.Before(rows.Now().Add(-pollPrecision)) || at.After(rows.Now().Add(Skew)) {
					old = append(old, key)
				}
			}
			return old, err
		})
		if err != nil || len(old) == 0 {
			return struct{}{}, true, err
		}
		return struct{}{}, true, s.write(durable.WithCompanion(ctx, nil), doing, func(t tx) error { return t.PutPoll(t.Now(), uniqueKeys(old)...) })
	})
	return err
}

// Owed implements durable.Store.
func (s *Store) Owed(ctx context.Context, retry time.Duration, limit int) ([]durable.Offer, error) {
	return readRows(ctx, s, "looking for owed offers", func(rows Rows) ([]durable.Offer, error) { return rows.Owed(retry, max(limit, 0)) })
}

// RecordOffers implements durable.Store.
func (s *Store) RecordOffers(ctx context.Context, offers ...durable.OfferID) error {
	if len(offers) == 0 {
		return nil
	}
	return s.write(ctx, "recording offers", func(t tx) error { return t.PutOffers(offers...) })
}

// reconcileAtOnce is how many runs of each cause Reconcile changes at most.
const reconcileAtOnce = 1000

// Reconcile implements durable.Store. It writes only when it has seen something to do, and each cause in a transaction of its own,
// so that other writers need not wait for all of them.
func (s *Store) Reconcile(ctx context.Context) (done durable.Reconciled, err error) {
	done.Done = true
	_, err = s.idle.Do(ctx, "reconcile", func() (_ struct{}, idle bool, err error) {
		done, err = s.reconcileAll(ctx)
		return struct{}{}, !done.Changed(), err
	})
	return done, err
}

func (s *Store) reconcileAll(ctx context.Context) (done durable.Reconciled, err error) {
	counts := map[Cause]*int{Expired: &done.Expired, Overdue: &done.Overdue, Due: &done.Due, Unstarted: &done.Late, Late: &done.Late}
	due, err := readRows(ctx, s, "looking for runs to reconcile", func(rows Rows) (map[Cause][]agent.RunID, error) {
		return rows.Due(rows.Now(), reconcileAtOnce)
	})
	done.Done = err == nil
	for c := Expired; c <= Late && err == nil; c++ {
		if len(due[c]) == 0 {
			continue
		}
		changed := 0
		err = s.write(ctx, "reconciling runs", func(t tx) (err error) {
			changed, err = t.pass(c, due[c])
			return err
		})
		if err == nil {
			*counts[c] += changed
		}
		done.Done = done.Done && err == nil && len(due[c]) < reconcileAtOnce
	}
	return done, err
}

// pass changes runs to which a cause still applies, and counts them. It keeps many runs locked, so it does not wait for others.
func (t tx) pass(c Cause, ids []agent.RunID) (changed int, err error) {
	runs, err := t.LockFree(ids...)
	if err != nil {
		return 0, err
	}
	maps.Copy(t.runs, runs)
	for _, id := range ids {
		r, found := t.runs[id] // an earlier run of the same cause may have changed it
		if !found || !c.Is(r, t.Now()) {
			continue
		}
		changed++
		switch c {
		case Expired:
			err = t.giveUp(&r, 0)
		case Overdue, Due:
			t.free(&r, durable.StatusReady)
		case Unstarted:
			if r.CancelCause == "" {
				r.CancelCause, r.CancelReason = durable.CancelStartBy, "it did not start in time"
			}
			r.Reason = agent.StopUser
			err = t.end(&r, durable.StatusCancelled)
		case Late:
			err = t.cancel(&r, durable.CancelDeadline, "the deadline has passed")
		}
		if err == nil {
			err = t.put(r)
		}
		if err != nil {
			return 0, err
		}
	}
	return changed, nil
}
