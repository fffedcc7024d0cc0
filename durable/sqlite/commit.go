package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// A commit waits for the disk, so writes that wait at the same time share one. There is no goroutine for that: a caller whose turn it
// is begins a transaction, runs the writes that wait, each in a savepoint of its own, and those that join them meanwhile, and commits
// them all.

// maxGroup is the highest number of writes in one transaction.
const maxGroup = 128

// queuedWrite is a write of one caller.
type queuedWrite struct {
	do    func(t *tx) error
	since time.Time
	over  chan struct{} // closed when err is the outcome; until then, err is why the write is refused
	err   error
}

// finish reports an outcome: the error of the transaction, or that of the write where there is none.
func (w *queuedWrite) finish(err error) {
	if err != nil {
		w.err = err
	}
	close(w.over)
}

// isOver reports whether the write has its outcome.
func (w *queuedWrite) isOver() bool {
	select {
	case <-w.over:
		return true
	default:
		return false
	}
}

// writeQueue holds the writes that have not begun.
type writeQueue struct {
	mu          sync.Mutex
	waiting     []*queuedWrite
	manyWriters bool // the last transaction held several writes; only the caller whose turn it is uses it
}

func (q *writeQueue) add(w *queuedWrite) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, w)
}

// leave removes a write that has not begun, and reports whether it did.
func (q *writeQueue) leave(w *queuedWrite) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, w)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	return i >= 0
}

// next removes the first write; nil when none waits. While several callers write, those that the last commit has woken run first, so that
// they join this one. A caller that writes alone loses no time to that.
func (q *writeQueue) next() *queuedWrite {
	w := q.removeFirst()
	if w == nil && q.manyWriters {
		runtime.Gosched()
		w = q.removeFirst()
	}
	return w
}

func (q *writeQueue) removeFirst() *queuedWrite {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return nil
	}
	w := q.waiting[0]
	q.waiting = slices.Delete(q.waiting, 0, 1)
	return w
}

// expire fails the writes that began to wait before a time.
func (q *writeQueue) expire(before time.Time, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = slices.DeleteFunc(q.waiting, func(w *queuedWrite) bool {
		late := w.since.Before(before)
		if late {
			w.finish(err)
		}
		return late
	})
}

// Write implements store.DB.
func (d *db) Write(ctx context.Context, doing string, f func(store.Tx) error) error {
	return d.enqueue(ctx, doing, func(t *tx) error { return f(t) })
}

// enqueue calls do in a transaction, which may hold writes of other callers, too. When do fails, only
// what it did is undone; when the commit fails, every write of the transaction fails. A context that
// ends while the write waits ends it; a write that has begun runs to its end.
func (d *db) enqueue(ctx context.Context, doing string, do func(t *tx) error) error {
	return d.whileOpen(ctx, doing, func() error {
		w := &queuedWrite{do: do, since: time.Now(), over: make(chan struct{})}
		d.queue.add(w)
		select {
		case d.turn <- struct{}{}:
			defer func() { <-d.turn }()
			return d.runGroups(ctx, w)
		case <-w.over:
		case <-ctx.Done():
			if d.queue.leave(w) {
				return ctx.Err()
			}
			<-w.over
		}
		return w.err
	})
}

// runGroups runs groups until a write of the caller has its outcome, and returns that. While another process has the file locked, it
// tries again.
func (d *db) runGroups(ctx context.Context, own *queuedWrite) error {
	for !own.isOver() {
		err := ctx.Err()
		if err == nil {
			err = d.runGroup(context.WithoutCancel(ctx)) // it may run writes of other callers
		}
		switch {
		case err == nil:
		case isBusy(err):
			d.queue.expire(time.Now().Add(-d.wait), err)
		default:
			d.queue.leave(own)
			return err
		}
	}
	return own.err
}

// runGroup runs writes that wait in a transaction, commits it, and gives each write its outcome: the
// refused ones, too, only then, since another write of the transaction may be why they are refused.
// The first write needs no savepoint: when it fails, there is nothing else in the transaction. It returns an error if it cannot
// begin a transaction.
func (d *db) runGroup(ctx context.Context) error {
	if err := d.execute(ctx, `BEGIN IMMEDIATE`); err != nil {
		return err
	}
	var group []*queuedWrite
	notifies := false
	outcome := errors.New("a write of the same transaction panicked")
	defer func() {
		if outcome != nil {
			_ = d.execute(ctx, `ROLLBACK`) // fails if SQLite has undone it
		}
		for _, w := range group {
			w.finish(outcome)
		}
	}()
	for len(group) < maxGroup {
		w := d.queue.next()
		if w == nil {
			break
		}
		group = append(group, w)
		t := &tx{view: d.view(ctx, d.writes)}
		if len(group) == 1 {
			if err := t.outcome(w.do(t)); err != nil {
				outcome = err
				return nil
			}
		} else if w.err, outcome = d.within(t, w.do); outcome != nil {
			return nil
		}
		outcome = errors.New("a write of the same transaction panicked")
		notifies = notifies || t.notifies && w.err == nil
	}
	d.queue.manyWriters = len(group) > 1
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
