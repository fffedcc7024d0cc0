package memory

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// New returns an empty store. It is safe for concurrent use.
func New() durable.Store {
	s, _ := store.New(newDB(), nil) // fails only for invalid keys
	return s
}

func newDB() *db {
	return &db{
		byID: map[agent.RunID]*run{}, byKey: map[string]*run{}, tokens: map[[32]byte]store.Token{}, documents: map[documentID]*document{},
		settings: map[string][]byte{}, rules: map[ruleKey]durable.RuleCount{},
	}
}

// db keeps the rows.
type db struct {
	mu        sync.Mutex
	runs      []*run // in the order of creation
	byID      map[agent.RunID]*run
	byKey     map[string]*run // by idempotency key
	queues    []*queue
	tokens    map[[32]byte]store.Token
	records   []durable.AuditRecord
	rules     map[ruleKey]durable.RuleCount
	waivers   []durable.Waiver
	documents map[documentID]*document
	settings  map[string][]byte
	listeners store.Listeners
	closed    bool
}

// run is a run with all that belongs to it.
type run struct {
	store.Run

	payload store.Payload
	entries []durable.Entry
	events  []durable.Event
	signals []durable.Signal
	waits   []store.Wait
}

type queue struct {
	needs  durable.Needs
	key    durable.Key
	polled time.Time
}

type documentID struct{ kind, name string }

// ruleKey identifies the count of a hook on a day.
type ruleKey struct {
	day         int64
	agent, hook string
}

// document has the versions of a document, from the first one.
type document struct {
	versions []durable.Document
	deleted  bool
}

func (d *document) newest() int64 {
	if d.deleted {
		return 0
	}
	return int64(len(d.versions))
}

var errClosed = errors.New("the store is closed")

// view is a view of the rows at one time, while the database is locked.
type view struct {
	*db

	now time.Time
}

// Now implements store.Rows.
func (v view) Now() time.Time { return v.now }

// whileLocked calls f while the database is locked.
func (d *db) whileLocked(ctx context.Context, f func(v view) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return errClosed
	}
	return f(view{d, time.Now().UTC().Truncate(time.Microsecond)})
}

// Read implements store.DB.
func (d *db) Read(ctx context.Context, _ string, f func(store.Rows) error) error {
	return d.whileLocked(ctx, func(v view) error { return f(v) })
}

// tx is a transaction.
type tx struct {
	view

	undo     []func()
	notifies bool
}

// Write implements store.DB.
func (d *db) Write(ctx context.Context, _ string, f func(store.Tx) error) error {
	return d.transact(ctx, func(t *tx) error { return f(t) })
}

func (d *db) transact(ctx context.Context, f func(*tx) error) error {
	return d.whileLocked(ctx, func(v view) error {
		t := &tx{view: v}
		done := false
		defer func() {
			if !done {
				t.rollback()
			}
		}()
		if err := f(t); err != nil {
			return err
		}
		done = true
		if t.notifies {
			d.listeners.Broadcast()
		}
		return nil
	})
}

// Step implements store.DB: it refuses every Commit.
func (d *db) Step(context.Context, store.Step) (bool, error) { return false, nil }

// Renew implements store.DB: it refuses every lease.
func (d *db) Renew(context.Context, durable.Lease, time.Duration) (time.Time, bool, error) {
	return time.Time{}, false, nil
}

// Claim implements store.DB.
func (d *db) Claim(
	ctx context.Context, owner string, ttl time.Duration, limit int, keys []durable.Key, also func(store.Tx, []durable.Run) error,
) (all []durable.Run, err error) {
	err = d.transact(ctx, func(t *tx) error {
		ready := t.ready(keys)
		slices.SortStableFunc(ready, func(a, b *run) int { return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Ready.Compare(b.Ready)) })
		for _, r := range ready[:min(limit, len(ready))] {
			started := r.Run
			started.Start(owner, ttl, t.now)
			set(t, &r.Run, started)
			all = append(all, cloneRun(r.Run).Run)
		}
		if also == nil || len(all) == 0 {
			return nil
		}
		return also(t, all)
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// rollback undoes the writes of a transaction, the last one first.
func (t *tx) rollback() {
	for _, undo := range slices.Backward(t.undo) {
		undo()
	}
}

// set sets a variable until the transaction is undone.
func set[T any](t *tx, variable *T, value T) {
	old := *variable
	t.undo = append(t.undo, func() { *variable = old })
	*variable = value
}

// setKey sets the value of a key until the transaction is undone.
func setKey[K comparable, V any](t *tx, values map[K]V, key K, value V) {
	old, found := values[key]
	t.undo = append(t.undo, func() {
		if found {
			values[key] = old
		} else {
			delete(values, key)
		}
	})
	values[key] = value
}

// Notify implements store.Tx.
func (t *tx) Notify() { t.notifies = true }

// Changes implements store.DB.
func (d *db) Changes(ctx context.Context) <-chan struct{} { return d.listeners.Add(ctx) }

// Close implements store.DB.
func (d *db) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.listeners.Close()
	return nil
}
