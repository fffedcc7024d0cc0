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
	insertRun = `INSERT INTO runs (id, session, agent, parent, root, status, created, updated, owner, epoch, leased, expires)
		VALUES (?1, ?2, ?3, ?4, ?5, 'running', ?6, ?6, ?7, 1, ?6, ?8) ON CONFLICT (id) DO NOTHING`
	selectLease = `SELECT n, status, entries, owner, epoch, leased, expires FROM runs WHERE id = ?`
	updateLease = `UPDATE runs SET owner = ?2, epoch = ?3, leased = ?4, expires = ?5 WHERE n = ?1`
)

// held is the record of a run that a process wants to change.
type held struct {
	n, entries, epoch int64
	status            agent.Status
	owner             string
	leased, expires   micros
}

// readRun reads a run in a transaction.
func readRun(ctx context.Context, t tx, id agent.RunID) (h held, err error) {
	err = t.one(ctx, selectLease, id).Scan(&h.n, &h.status, &h.entries, &h.owner, &h.epoch, &h.leased, &h.expires)
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

// Create implements durable.Store.
func (s *Store) Create(ctx context.Context, r durable.Run, owner string, ttl time.Duration) (durable.Lease, error) {
	now := s.clock()
	l := durable.Lease{Run: r.ID, Owner: owner, Epoch: 1, Expires: fromMicros(now + ttl.Microseconds())}
	err := s.write(ctx, "creating a run", func(ctx context.Context, t tx) error {
		made, err := t.exec(ctx, insertRun, r.ID, r.Session, r.Agent, r.Parent, r.Root, now, owner, micros{l.Expires})
		if err == nil && made == 0 {
			return fmt.Errorf("run %q: %w", r.ID, durable.ErrExists)
		}
		return err
	})
	return ignoreNoRows(l, err)
}

// Claim implements durable.Store.
func (s *Store) Claim(ctx context.Context, id agent.RunID, owner string, ttl time.Duration, take durable.Take) (l durable.Lease, err error) {
	err = s.write(ctx, "claiming a run", func(ctx context.Context, t tx) error {
		h, err := readRun(ctx, t, id)
		if err != nil {
			return err
		}
		now := s.clock()
		switch {
		case h.status.Terminal():
			return fmt.Errorf("run %q: %w", id, durable.ErrEnded)
		case h.good(now) && h.owner != owner && take != durable.TakeOver:
			return &durable.HeldError{Run: id, Owner: h.owner, Expires: h.expires.Time}
		}
		l = durable.Lease{Run: id, Owner: owner, Epoch: h.epoch + 1, Expires: fromMicros(now + ttl.Microseconds())}
		return writeLease(ctx, t, h.n, l, now)
	})
	return ignoreNoRows(l, err)
}

// Renew implements durable.Store.
func (s *Store) Renew(ctx context.Context, l durable.Lease, ttl time.Duration) (durable.Lease, error) {
	err := s.write(ctx, "renewing a lease", func(ctx context.Context, t tx) error {
		h, err := readHeld(ctx, t, l)
		if err != nil {
			return err
		}
		now := s.clock()
		l.Expires = fromMicros(now + ttl.Microseconds())
		return writeLease(ctx, t, h.n, l, now)
	})
	return ignoreNoRows(l, err)
}

// Release implements durable.Store.
func (s *Store) Release(ctx context.Context, l durable.Lease) error {
	return s.write(ctx, "releasing a run", func(ctx context.Context, t tx) error {
		h, err := readHeld(ctx, t, l)
		if err != nil {
			return err
		}
		if _, err := t.exec(ctx, updateLease, h.n, "", h.epoch, nil, nil); err != nil {
			return err
		}
		return updateDue(ctx, t, h.n, s.clock())
	})
}

func writeLease(ctx context.Context, t tx, n int64, l durable.Lease, now int64) error {
	if _, err := t.exec(ctx, updateLease, n, l.Owner, l.Epoch, now, micros{l.Expires}); err != nil {
		return err
	}
	return updateDue(ctx, t, n, now)
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
