// Package store is the state machine of durable runs, over rows that a database keeps. It has the rules of durable.Store once:
// which status a run has, what a lease allows, what answers and signals change. A DB only reads, locks and writes rows.
package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/internal/coalesce"
)

// Store is a durable.Store over rows.
type Store struct {
	db     DB
	keys   *keyring
	idle   *coalesce.Group[struct{}]        // of calls that idle workers make, and that found nothing to do
	queues *coalesce.Group[[]durable.Needs] // of calls of Queues
}

var _ durable.Store = (*Store)(nil)

// idleAtOnce is how many equal claims run at once, so that they can share a commit.
const idleAtOnce = 4

// New returns the store over a database. A nil Encryption means that nothing is encrypted.
func New(db DB, e *durable.Encryption) (*Store, error) {
	keys, err := newKeyring(e)
	return &Store{db, keys, coalesce.NewGroup[struct{}](idleAtOnce), coalesce.NewGroup[[]durable.Needs](1)}, err
}

// Changes implements durable.Store.
func (s *Store) Changes(ctx context.Context) <-chan struct{} { return s.db.Changes(ctx) }

// Close implements durable.Store.
func (s *Store) Close() error { return s.db.Close() }

// tx is a transaction, with the rules.
type tx struct {
	Tx

	keys *keyring
	// runs are the locked runs, and waits the waits that were read, as they are stored.
	runs  map[agent.RunID]Run
	waits map[agent.RunID][]Wait
	// rules are the calls of hooks to count.
	rules durable.RuleCounts
}

// write calls f in a transaction, perhaps again. The transaction also stores the companion of the context.
func (s *Store) write(ctx context.Context, doing string, f func(t tx) error) error {
	companion, over := durable.TakeCompanion(ctx)
	err := s.db.Write(ctx, doing, func(rows Tx) error {
		t := tx{rows, s.keys, map[agent.RunID]Run{}, map[agent.RunID][]Wait{}, durable.RuleCounts{}}
		err := f(t)
		if err == nil && companion != nil {
			err = t.addCompanion(companion())
		}
		if err == nil && len(t.rules) > 0 { // last, so that transactions that wait for each other's counts hold nothing that these wait for
			err = t.AddRuleCounts(dayOf(t.Now()), t.rules.List()...)
		}
		return err
	})
	over(err == nil)
	return err
}

// writeData works like write, for a transaction that writes data.
func (s *Store) writeData(ctx context.Context, doing string, f func(t tx) error) error {
	if err := s.CheckKey(ctx); err != nil {
		return err
	}
	return s.write(ctx, doing, f)
}

// keySetting is the name of the setting with the ID of the key.
const keySetting = "key_id"

// CheckKey returns a *durable.DecryptError if the store has encrypted data and no key. Otherwise, it records the ID of its key, so
// that no process without that key writes plain data beside encrypted data. Methods that write data call it first.
func (s *Store) CheckKey(ctx context.Context) error {
	if s.keys.recorded.Load() {
		return nil
	}
	value, err := readRows(ctx, s, "reading the ID of the key", func(rows Rows) ([]byte, error) { return rows.Setting(keySetting) })
	id := string(value)
	switch {
	case err != nil:
	case s.keys.isEmpty() && id != "":
		err = &durable.DecryptError{Of: "the store", Key: id, Why: "its data is encrypted, and plain data must not be written to it: configure key " + id}
	case !s.keys.isEmpty() && id != s.keys.first.String():
		err = s.write(ctx, "recording the ID of the key", func(t tx) error { return t.PutSetting(keySetting, []byte(s.keys.first.String())) })
	}
	s.keys.recorded.Store(err == nil)
	return err
}

// unlessFailed returns what a call returns: a value only without an error.
func unlessFailed[T any](v T, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return v, nil
}

// change locks a run, lets f change it, and stores it.
func (s *Store) change(ctx context.Context, doing string, id agent.RunID, f func(t tx, r *Run) error) error {
	return s.write(ctx, doing, func(t tx) error {
		r, err := t.lock(id)
		if err != nil {
			return err
		}
		if err := f(t, &r); err != nil {
			return err
		}
		return t.put(r)
	})
}

// lock locks a run, which must exist.
func (t tx) lock(id agent.RunID) (Run, error) {
	runs, err := t.lockAll(id)
	return only(runs, id, err)
}

// lockAll locks runs. IDs without a run are left out.
func (t tx) lockAll(ids ...agent.RunID) (map[agent.RunID]Run, error) {
	all := map[agent.RunID]Run{}
	var missing []agent.RunID
	for _, id := range ids {
		if r, locked := t.runs[id]; locked {
			all[id] = r
		} else {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return all, nil
	}
	runs, err := t.Lock(missing...)
	maps.Copy(t.runs, runs)
	maps.Copy(all, runs)
	return all, err
}

// put stores a locked run.
func (t tx) put(r Run) error {
	old := t.runs[r.ID]
	r.setIdle()
	t.runs[r.ID] = r
	return t.PutRun(old, r)
}

// waitsOf returns the waits of a locked run.
func (t tx) waitsOf(id agent.RunID) ([]Wait, error) {
	waits, read := t.waits[id]
	if !read {
		var err error
		if waits, err = t.Waits(id); err != nil {
			return nil, err
		}
		t.waits[id] = waits
	}
	return CloneWaits(waits), nil
}

// replaceWaits replaces the waits of a locked run.
func (t tx) replaceWaits(id agent.RunID, waits []Wait) error {
	old, err := t.waitsOf(id)
	if err != nil || len(old)+len(waits) == 0 {
		return err
	}
	t.waits[id] = CloneWaits(waits)
	return t.PutWaits(id, old, waits)
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
func readRows[T any](ctx context.Context, s *Store, doing string, f func(Rows) (T, error)) (v T, err error) {
	err = s.db.Read(ctx, doing, func(rows Rows) (err error) {
		v, err = f(rows)
		return err
	})
	return v, err
}

// readRowsOf returns what f reads of a run, which must exist: an empty value may be that of an unknown run.
func readRowsOf[T any](
	ctx context.Context, s *Store, doing string, id agent.RunID, f func(Rows) (v T, empty bool, err error),
) (T, error) {
	return readRows(ctx, s, doing, func(rows Rows) (T, error) {
		v, empty, err := f(rows)
		if err == nil && empty {
			runs, found := rows.Runs(id)
			_, err = only(runs, id, found)
		}
		return v, err
	})
}

// Run implements durable.Store.
func (s *Store) Run(ctx context.Context, id agent.RunID) (durable.Run, error) {
	return readRows(ctx, s, "reading a run", func(rows Rows) (durable.Run, error) {
		runs, err := rows.Runs(id)
		r, err := only(runs, id, err)
		return s.keys.openRuns(r.Run)[0], err
	})
}

// limitOf returns the limit of a list.
func limitOf(limit int) int { return cmp.Or(max(limit, 0), durable.DefaultLimit) }

// List implements durable.Store.
func (s *Store) List(ctx context.Context, f durable.Filter) ([]durable.Run, error) {
	f.Status, f.Limit = lo.Uniq(f.Status), limitOf(f.Limit)
	all, err := readRows(ctx, s, "listing runs", func(rows Rows) ([]Run, error) { return rows.List(f) })
	return s.keys.openRuns(lo.Map(all, func(r Run, _ int) durable.Run { return r.Run })...), err
}

// Count implements durable.Store.
func (s *Store) Count(ctx context.Context, f durable.Filter) (int, error) {
	f.Status, f.Limit = lo.Uniq(f.Status), limitOf(f.Limit)
	return readRows(ctx, s, "counting runs", func(rows Rows) (int, error) { return rows.Count(f) })
}

// Entries implements durable.Store.
func (s *Store) Entries(ctx context.Context, id agent.RunID, after int64) ([]durable.Entry, error) {
	all, err := readRowsOf(ctx, s, "reading a journal", id, func(rows Rows) ([]durable.Entry, bool, error) {
		all, err := rows.Entries(id, after)
		return all, len(all) == 0, err
	})
	return openAll(s.keys, all, err, entryOf(id))
}

// Events implements durable.Store.
func (s *Store) Events(ctx context.Context, id agent.RunID, after int64, limit int) ([]durable.Event, error) {
	all, err := readRowsOf(ctx, s, "reading events", id, func(rows Rows) ([]durable.Event, bool, error) {
		all, err := rows.Events(id, after, max(limit, 0))
		return all, len(all) == 0, err
	})
	return openAll(s.keys, all, err, eventOf(id))
}

// readPayload returns a large value of a run, which may be missing.
func (s *Store) readPayload(ctx context.Context, doing string, id agent.RunID, p place, of func(Payload) []byte) ([]byte, error) {
	data, err := readRowsOf(ctx, s, doing, id, func(rows Rows) ([]byte, bool, error) {
		p, err := rows.Payload(id)
		return of(p), p.Input == nil && p.Submitted == nil && p.Result == nil, err
	})
	if err != nil || len(data) == 0 {
		return data, err
	}
	return s.keys.open(data, p)
}

// Input implements durable.Store.
func (s *Store) Input(ctx context.Context, id agent.RunID) ([]byte, error) {
	return s.readPayload(ctx, "reading the input of a run", id, inputPlace(id), func(p Payload) []byte { return p.Input })
}

// SubmittedInput implements durable.Store.
func (s *Store) SubmittedInput(ctx context.Context, id agent.RunID) ([]byte, error) {
	return s.readPayload(ctx, "reading the submitted input of a run", id, inputPlace(id), func(p Payload) []byte { return p.Submitted })
}

// Result implements durable.Store.
func (s *Store) Result(ctx context.Context, id agent.RunID) ([]byte, error) {
	return s.readPayload(ctx, "reading the result of a run", id, resultPlace(id), func(p Payload) []byte { return p.Result })
}

// Delete implements durable.Store.
func (s *Store) Delete(ctx context.Context, id agent.RunID) error {
	return s.write(ctx, "deleting a run", func(t tx) error {
		r, err := t.lock(id)
		switch {
		case err != nil:
			return err
		case r.IsHeld(t.Now()):
			return &durable.HeldError{Run: id, Owner: r.Owner, Expires: r.Expires}
		}
		return t.DeleteRun(id)
	})
}

// pruneAtOnce is how many runs a transaction deletes at most, so that other writers do not wait for the whole deletion.
const pruneAtOnce = 200

// Prune implements durable.Store.
func (s *Store) Prune(ctx context.Context, before time.Time) (n int, err error) {
	for deleted := pruneAtOnce; err == nil && deleted == pruneAtOnce; n += deleted {
		deleted = 0
		err = s.write(ctx, "deleting old runs", func(t tx) (err error) {
			deleted, err = t.Prune(before, pruneAtOnce)
			return err
		})
		if err != nil {
			deleted = 0 // the transaction may have failed afterwards
		}
	}
	if err == nil && n > 0 {
		err = s.write(ctx, "deleting empty queues", func(t tx) error { return t.PruneQueues() })
	}
	return n, err
}
