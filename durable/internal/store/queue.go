package store

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A Queue lets calls that wait at the same time share a transaction or a statement, and with it a wait for the disk. There is no
// goroutine for that: a caller whose turn it is runs the calls that wait, its own among them.
type Queue[T any] struct {
	turns   chan struct{} // holds a value for each caller whose turn it is
	mu      sync.Mutex
	waiting []*Queued[T]
}

// Queued is a call, and later its outcome.
type Queued[T any] struct {
	Call T
	// Err is the outcome after Finish; before, it is why the call is refused.
	Err   error
	since time.Time
	over  chan struct{}
}

// NewQueue returns a queue in which it can be the turn of several callers at once.
func NewQueue[T any](turns int) *Queue[T] { return &Queue[T]{turns: make(chan struct{}, turns)} }

// Finish reports the outcome of a call that Next has removed: an error that all of its transaction share, or else its own.
func (w *Queued[T]) Finish(shared error) {
	if shared != nil {
		w.Err = shared
	}
	close(w.over)
}

// Do returns when a call has its outcome. When it is the caller's turn, it calls run until Next has removed the call; an error of run
// fails the call. A context that ends while the call waits ends it.
func (q *Queue[T]) Do(ctx context.Context, call T, run func() error) error {
	w := &Queued[T]{Call: call, since: time.Now(), over: make(chan struct{})}
	q.mu.Lock()
	q.waiting = append(q.waiting, w)
	q.mu.Unlock()
	select {
	case q.turns <- struct{}{}:
		if err := q.runTo(w, run); err != nil {
			return err
		}
	case <-w.over:
	case <-ctx.Done():
		if q.remove(w) {
			return ctx.Err()
		}
	}
	<-w.over
	return w.Err
}

func (q *Queue[T]) runTo(w *Queued[T], run func() error) error {
	defer func() { <-q.turns }()
	for q.holds(w) {
		if err := run(); err != nil && q.remove(w) {
			return err
		}
	}
	return nil
}

// RunAlone calls f while it is the turn of no other caller, in a queue with one turn.
func (q *Queue[T]) RunAlone(f func()) {
	q.turns <- struct{}{}
	defer func() { <-q.turns }()
	f()
}

func (q *Queue[T]) holds(w *Queued[T]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Contains(q.waiting, w)
}

// remove removes a call that waits, and reports whether it did.
func (q *Queue[T]) remove(w *Queued[T]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, w)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	return i >= 0
}

// Len returns the number of calls that wait.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// Next removes the first call that waits; nil when none does.
func (q *Queue[T]) Next() *Queued[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return nil
	}
	w := q.waiting[0]
	q.waiting = slices.Delete(q.waiting, 0, 1)
	return w
}

// Expire fails the calls that began to wait before a time.
func (q *Queue[T]) Expire(before time.Time, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = slices.DeleteFunc(q.waiting, func(w *Queued[T]) bool {
		late := w.since.Before(before)
		if late {
			w.Finish(err)
		}
		return late
	})
}
