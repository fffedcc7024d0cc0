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

// A commit waits for the disk, so writes that wait at the same time share one. There is no
// goroutine for that: the caller that finds the queue empty leads. It begins a transaction, runs
// its own write and then the writes that have joined the queue since, each in a savepoint of its
// own, and commits them all. Then it passes the lead to the first caller that still waits.

// maxGroup is the highest number of writes in one transaction.
const maxGroup = 128

// queuedWrite is a write of one caller.
type queuedWrite struct {
	do    func(t *tx) error
	since time.Time
	// wake receives when the write has its outcome, or before that when its caller becomes the leader.
	wake chan struct{}
	// done says that err is the outcome. Until then, err is why the write is refused.
	done bool
	err  error
}

// finish reports an outcome: the error of the transaction, or that of the write where there is none.
func (w *queuedWrite) finish(err error) {
	w.done = true
	if err != nil {
		w.err = err
	}
	w.wake <- struct{}{}
}

// writeQueue holds the writes that have not begun. The write of the leader is the first of them.
type writeQueue struct {
	mu          sync.Mutex
	waiting     []*queuedWrite
	leader      *queuedWrite // nil when no write waits or runs
	manyWriters bool         // the last transaction held several writes; only the leader uses it
}

// join adds a write, and reports whether its caller is the leader.
func (q *writeQueue) join(w *queuedWrite) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, w)
	if q.leader == nil {
		q.leader = w
	}
	return q.leader == w
}

// leave removes a write that has not begun, and reports whether it did.
func (q *writeQueue) leave(w *queuedWrite) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, w)
	if i < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	q.passLead(w)
	return true
}

// next removes the first write for the leader to run; nil when none waits. While several callers
// write, those that the last commit has woken run first, so that they join this one. A caller that
// writes alone loses no time to that.
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

// resign ends the lead of a caller whose write no longer waits.
func (q *writeQueue) resign(w *queuedWrite) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.passLead(w)
}

// passLead makes the first caller that waits the leader, if w was.
func (q *writeQueue) passLead(w *queuedWrite) {
	if q.leader != w {
		return
	}
	q.leader = nil
	if len(q.waiting) > 0 {
		q.leader = q.waiting[0]
		q.leader.wake <- struct{}{}
	}
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
		w := &queuedWrite{do: do, since: time.Now(), wake: make(chan struct{}, 1)}
		if d.queue.join(w) {
			return d.leadGroup(ctx, w)
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
			if d.queue.leave(w) {
				return ctx.Err()
			}
			<-w.wake
		}
		if w.done {
			return w.err
		}
		return d.leadGroup(ctx, w)
	})
}

// leadGroup runs the write of a leader and those behind it, and returns the outcome of the first.
// While another process has the file locked, it tries again.
func (d *db) leadGroup(ctx context.Context, own *queuedWrite) error {
	defer d.queue.resign(own)
	for !own.done {
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
	d.writing.Lock()
	defer d.writing.Unlock()
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
