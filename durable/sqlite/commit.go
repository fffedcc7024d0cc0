package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"time"

	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// maxGroup is the highest number of writes in one transaction.
const maxGroup = 128

// Write implements store.DB.
func (d *db) Write(ctx context.Context, doing string, f func(store.Tx) error) error {
	return d.enqueue(ctx, doing, func(t *tx) error { return f(t) })
}

// enqueue calls do in a transaction, which may hold writes of other callers, too. When do fails, only
// what it did is undone; when the commit fails, every write of the transaction fails. A context that
// ends while the write waits ends it; a write that has begun runs to its end.
func (d *db) enqueue(ctx context.Context, doing string, do func(t *tx) error) error {
	return d.whileOpen(ctx, doing, func() error {
		return d.queue.Do(ctx, do, func() error {
			err := ctx.Err()
			if err == nil {
				err = d.runGroup(context.WithoutCancel(ctx)) // it may run writes of other callers
			}
			if isBusy(err) { // another process has the file locked: try again
				d.queue.Expire(time.Now().Add(-d.wait), err)
				return nil
			}
			return err
		})
	})
}

// next removes the first write; nil when none waits. While several callers write, those that the last commit has woken run first, so that
// they join this one. A caller that writes alone loses no time to that.
func (d *db) next() *store.Queued[func(t *tx) error] {
	w := d.queue.Next()
	if w == nil && d.manyWriters {
		runtime.Gosched()
		w = d.queue.Next()
	}
	return w
}

// runGroup runs writes that wait in a transaction, commits it, and gives each write its outcome: the
// refused ones, too, only then, since another write of the transaction may be why they are refused.
// The first write needs no savepoint: when it fails, there is nothing else in the transaction. It returns an error if it cannot
// begin a transaction.
func (d *db) runGroup(ctx context.Context) error {
	if err := d.execute(ctx, `BEGIN IMMEDIATE`); err != nil {
		return err
	}
	var group []*store.Queued[func(t *tx) error]
	notifies := false
	outcome := errors.New("a write of the same transaction panicked")
	defer func() {
		if outcome != nil {
			_ = d.execute(ctx, `ROLLBACK`) // fails if SQLite has undone it
		}
		for _, w := range group {
			w.Finish(outcome)
		}
	}()
	for len(group) < maxGroup {
		w := d.next()
		if w == nil {
			break
		}
		group = append(group, w)
		t := &tx{view: d.view(ctx, d.writes)}
		if len(group) == 1 {
			if err := t.outcome(w.Call(t)); err != nil {
				outcome = err
				return nil
			}
		} else if w.Err, outcome = d.within(t, w.Call); outcome != nil {
			return nil
		}
		outcome = errors.New("a write of the same transaction panicked")
		notifies = notifies || t.notifies && w.Err == nil
	}
	d.manyWriters = len(group) > 1
	if outcome = d.execute(ctx, `COMMIT`); outcome == nil && notifies {
		d.listeners.Broadcast()
	}
	return nil
}

// execute executes a statement without parameters on the writer.
func (d *db) execute(ctx context.Context, query string) error {
	return d.writes.with(ctx, query, func(stmt *sql.Stmt) error {
		_, err := stmt.ExecContext(ctx)
		return err
	})
}

// within calls do in a savepoint. A refusal is an error of do, which is undone; with any other
// error the whole transaction is lost.
func (d *db) within(t *tx, do func(t *tx) error) (refusal, err error) {
	if err := d.execute(t.ctx, `SAVEPOINT write`); err != nil {
		return nil, err
	}
	refusal = t.outcome(do(t))
	if refusal != nil {
		err = d.execute(t.ctx, `ROLLBACK TO write`)
	}
	if err == nil {
		err = d.execute(t.ctx, `RELEASE write`)
	}
	if err != nil && refusal != nil && t.failed != nil {
		err = refusal // SQLite has ended the transaction because of it
	}
	return refusal, err
}
