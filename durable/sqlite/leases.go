package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// skew is how far in the future, in microseconds, the start of a lease may be and still be accepted: clocks are often
// corrected by small amounts.
const skew = int64(5 * time.Second / time.Microsecond)

const (
	selectHeld     = `SELECT n, status, entries, owner, epoch, leased, expires FROM runs WHERE id = ?`
	updateAcquired = `UPDATE runs SET owner = ?2, epoch = ?3, leased = ?4, updated = ?4, expires = ?5, ready = NULL,
		status = iif(status = 'waiting', status, 'running'), attempts = attempts + (status <> 'waiting') WHERE n = ?1`
	updateRenewed = `UPDATE runs SET leased = ?4, expires = ?5 WHERE id = ?1 AND owner = ?2 AND owner <> '' AND epoch = ?3`
	// delayRun releases a running run that is to continue later.
	delayRun = `UPDATE runs SET ` + noLease + `, status = 'pending', not_before = ?2, updated = ?1
		WHERE n = ?3 AND status = 'running' AND paused = 0 AND cancel_reason = ''`
	releaseRun = `UPDATE runs SET ` + givesUp + ` FROM (` + continues + ` WHERE n = ?2) WHERE n = given_up RETURNING status`
)

// held is the record of a run that a process wants to change.
type held struct {
	n, entries, epoch int64
	status            durable.Status
	owner             string
	leased, expires   micros
}

// readRun reads a run in a transaction.
func readRun(ctx context.Context, t tx, id agent.RunID) (h held, err error) {
	err = t.one(ctx, selectHeld, string(id)).Scan(&h.n, &h.status, &h.entries, &h.owner, &h.epoch, &h.leased, &h.expires)
	if errors.Is(err, sql.ErrNoRows) {
		return held{}, notFound(id)
	}
	return h, err
}

// readHeld reads the run of a lease and checks the lease.
func readHeld(ctx context.Context, t tx, l durable.Lease) (held, error) {
	h, err := readRun(ctx, t, l.Run)
	if err == nil && (h.owner == "" || h.owner != l.Owner || h.epoch != l.Epoch) {
		return held{}, fmt.Errorf("run %q, epoch %d: %w", l.Run, l.Epoch, durable.ErrStale)
	}
	return h, err
}

// good reports whether a process holds the run.
func (h held) good(now int64) bool {
	return h.owner != "" && now < h.expires.UnixMicro() && h.leased.UnixMicro() <= now+skew
}

// Acquire implements durable.Store.
func (s *Store) Acquire(ctx context.Context, id agent.RunID, owner string, ttl time.Duration, take durable.Take) (l durable.Lease, err error) {
	err = s.write(ctx, "acquiring a run", func(ctx context.Context, t tx) error {
		h, err := readRun(ctx, t, id)
		if err != nil {
			return err
		}
		now := s.clock()
		switch {
		case h.status.Ended():
			return fmt.Errorf("run %q: %w", id, durable.ErrEnded)
		case h.good(now) && h.owner != owner && take != durable.TakeOver:
			return &durable.HeldError{Run: id, Owner: h.owner, Expires: h.expires.Time}
		}
		l = durable.Lease{Run: id, Owner: owner, Epoch: h.epoch + 1, Expires: fromMicros(now + ttl.Microseconds())}
		_, err = t.exec(ctx, updateAcquired, h.n, owner, l.Epoch, now, micros{l.Expires})
		return err
	})
	return ignoreNoRows(l, err)
}

// Renew implements durable.Store.
func (s *Store) Renew(ctx context.Context, l durable.Lease, ttl time.Duration) (durable.Lease, error) {
	err := s.write(ctx, "renewing a lease", func(ctx context.Context, t tx) error {
		now := s.clock()
		l.Expires = fromMicros(now + ttl.Microseconds())
		renewed, err := t.exec(ctx, updateRenewed, string(l.Run), l.Owner, l.Epoch, now, micros{l.Expires})
		if err == nil && renewed == 0 {
			_, err = readHeld(ctx, t, l)
		}
		return err
	})
	return ignoreNoRows(l, err)
}

// Release implements durable.Store.
func (s *Store) Release(ctx context.Context, l durable.Lease, delay time.Duration) error {
	return s.write(ctx, "releasing a run", func(ctx context.Context, t tx) error {
		h, err := readHeld(ctx, t, l)
		if err != nil {
			return err
		}
		now := s.clock()
		if later := delay.Microseconds(); later > 0 {
			if delayed, err := t.exec(ctx, delayRun, now, now+later, h.n); err != nil || delayed > 0 {
				return err
			}
		}
		var status durable.Status
		err = t.one(ctx, releaseRun, now, h.n).Scan(&status)
		if status == durable.StatusReady {
			t.notify()
		}
		return err
	})
}

// ignoreNoRows returns v and err, but no error for sql.ErrNoRows.
func ignoreNoRows[T any](v T, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return v, nil
}

func notFound(id agent.RunID) error { return fmt.Errorf("run %q: %w", id, durable.ErrNotFound) }
