// Package store is the state machine of durable runs, over rows that a database keeps. It has the rules of durable.Store once:
// which status a run has, what a lease allows, what answers and signals change. A DB only reads, locks and writes rows.
package store

import (
	"context"
	"fmt"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// Store is a durable.Store over rows.
type Store struct{ db DB }

var _ durable.Store = (*Store)(nil)

// New returns the store over a database.
func New(db DB) *Store { return &Store{db} }

// Changes implements durable.Store.
func (s *Store) Changes(ctx context.Context) <-chan struct{} { return s.db.Changes(ctx) }

// Close implements durable.Store.
func (s *Store) Close() error { return s.db.Close() }

// tx is a transaction, with the rules.
type tx struct {
	Tx

	now time.Time
}

// write calls f in a transaction.
func (s *Store) write(ctx context.Context, f func(t tx) error) error {
	return s.db.Write(ctx, func(rows Tx) error { return f(tx{rows, rows.Now()}) })
}

// change locks a run, lets f change it, and stores it.
func (s *Store) change(ctx context.Context, id agent.RunID, f func(t tx, r *Run) error) error {
	return s.write(ctx, func(t tx) error {
		r, err := t.lock(id)
		if err != nil {
			return err
		}
		if err := f(t, &r); err != nil {
			return err
		}
		return t.PutRun(r)
	})
}

// lock locks a run, which must exist.
func (t tx) lock(id agent.RunID) (Run, error) {
	runs, err := t.Lock(id)
	return only(runs, id, err)
}

// only returns the run that was read.
func only(runs map[agent.RunID]Run, id agent.RunID, err error) (Run, error) {
	r, found := runs[id]
	if err == nil && !found {
		err = fmt.Errorf("run %q: %w", id, durable.ErrNotFound)
	}
	return r, err
}

// readRows returns what f reads.
func readRows[T any](ctx context.Context, s *Store, f func(Rows) (T, error)) (v T, err error) {
	err = s.db.Read(ctx, func(rows Rows) (err error) {
		v, err = f(rows)
		return err
	})
	return v, err
}

// readRowsOf returns what f reads of a run, which must exist.
func readRowsOf[T any](ctx context.Context, s *Store, id agent.RunID, f func(Rows) (T, error)) (T, error) {
	return readRows(ctx, s, func(rows Rows) (v T, err error) {
		runs, err := rows.Runs(id)
		if _, err := only(runs, id, err); err != nil {
			return v, err
		}
		return f(rows)
	})
}

// Run implements durable.Store.
func (s *Store) Run(ctx context.Context, id agent.RunID) (durable.Run, error) {
	return readRows(ctx, s, func(rows Rows) (durable.Run, error) {
		runs, err := rows.Runs(id)
		r, err := only(runs, id, err)
		return r.Run, err
	})
}

// List implements durable.Store.
func (s *Store) List(ctx context.Context, f durable.Filter) ([]durable.Run, error) {
	return readRows(ctx, s, func(rows Rows) ([]durable.Run, error) { return rows.List(f) })
}

// Entries implements durable.Store.
func (s *Store) Entries(ctx context.Context, id agent.RunID, after int64) ([]durable.Entry, error) {
	return readRowsOf(ctx, s, id, func(rows Rows) ([]durable.Entry, error) { return rows.Entries(id, after) })
}

// Events implements durable.Store.
func (s *Store) Events(ctx context.Context, id agent.RunID, after int64, limit int) ([]durable.Event, error) {
	return readRowsOf(ctx, s, id, func(rows Rows) ([]durable.Event, error) { return rows.Events(id, after, max(limit, 0)) })
}

func (s *Store) payload(ctx context.Context, id agent.RunID) (Payload, error) {
	return readRowsOf(ctx, s, id, func(rows Rows) (Payload, error) { return rows.Payload(id) })
}

// Input implements durable.Store.
func (s *Store) Input(ctx context.Context, id agent.RunID) ([]byte, error) {
	p, err := s.payload(ctx, id)
	return p.Input, err
}

// SubmittedInput implements durable.Store.
func (s *Store) SubmittedInput(ctx context.Context, id agent.RunID) ([]byte, error) {
	p, err := s.payload(ctx, id)
	if p.Replaced {
		return p.Submitted, err
	}
	return p.Input, err
}

// Result implements durable.Store.
func (s *Store) Result(ctx context.Context, id agent.RunID) ([]byte, error) {
	p, err := s.payload(ctx, id)
	return p.Result, err
}

// Delete implements durable.Store.
func (s *Store) Delete(ctx context.Context, id agent.RunID) error {
	return s.write(ctx, func(t tx) error {
		r, err := t.lock(id)
		switch {
		case err != nil:
			return err
		case r.IsHeld(t.now):
			return &durable.HeldError{Run: id, Owner: r.Owner, Expires: r.Expires}
		}
		return t.DeleteRuns(id)
	})
}

// pruneAtOnce is how many runs a transaction deletes at most, so that other writers do not wait for the whole deletion.
const pruneAtOnce = 1000

// Prune implements durable.Store.
func (s *Store) Prune(ctx context.Context, before time.Time) (n int, err error) {
	for more := true; more; {
		err := s.write(ctx, func(t tx) error {
			ids, err := t.LockEnded(before, pruneAtOnce)
			if err != nil {
				return err
			}
			if err := t.DeleteRuns(ids...); err != nil {
				return err
			}
			n, more = n+len(ids), len(ids) == pruneAtOnce
			return nil
		})
		if err != nil {
			return n, err
		}
	}
	return n, s.write(ctx, func(t tx) error { return t.PruneQueues() })
}
