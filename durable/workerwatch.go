package durable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
)

// clockTolerance is by how much a clock may be set without notice: clocks are often corrected by small amounts.
const clockTolerance = 5 * time.Second

// clockWatch notices that the clock of the machine was set: the clock and the monotonic clock then differ.
type clockWatch struct {
	now  func() time.Time
	last time.Time // with the reading of the monotonic clock
	seen time.Time // what the clock said then
}

// look returns by how much the clock was set since the last call.
func (c *clockWatch) look() (jump time.Duration) {
	last, seen := c.last, c.seen
	c.last, c.seen = time.Now(), c.now().Round(0)
	if last.IsZero() {
		return 0
	}
	return c.seen.Sub(seen) - c.last.Sub(last)
}

// errStalled is the error of a worker's health while the store does not answer.
var errStalled = errors.New("the store has not answered for a second")

// watchStore makes a call of the store, and reports when it takes longer than stallTime.
func (w *Worker) watchStore(ctx context.Context, call func() error) error {
	began, told := time.Now(), make(chan struct{})
	timer := time.AfterFunc(stallTime, func() {
		defer close(told)
		w.mu.Lock()
		w.lastErr = errStalled
		w.mu.Unlock()
		w.report(ctx, WorkerEvent{Kind: WorkerStalled})
	})
	err := call()
	if timer.Stop() {
		return err
	}
	<-told
	if err == nil {
		w.report(ctx, WorkerEvent{Kind: WorkerRecovered, Took: time.Since(began)})
	}
	return err
}

// reportDoubt reports a waiting run if it waits for the answer whether a call in doubt runs again.
func (w *Worker) reportDoubt(ctx context.Context, r Run) {
	waits, err := w.store.Waits(ctx, r.ID)
	if err != nil && !errors.Is(err, ErrNotFound) { // it was not deleted
		w.noteContact(ctx, fmt.Errorf("reading the waits of run %s: %w", r.ID, err))
	}
	if slices.ContainsFunc(waits, func(one Wait) bool { return one.Kind == WaitDoubt && one.Answer == nil }) {
		w.report(ctx, WorkerEvent{Kind: WorkerInDoubt, Run: r})
	}
}

const (
	// queueInterval is how often a worker measures the queues.
	queueInterval = 10 * time.Second
	// unservedAfter is how long a ready run waits before it counts as served by no worker. Workers record every 20 to 30
	// seconds that they look for runs.
	unservedAfter = 70 * time.Second
)

// measureQueues records how the queues are served and how long people have left waits unanswered, and reports the queues that no
// worker serves. Those that it has measured the last time and that no longer exist are empty.
func (w *Worker) measureQueues(ctx context.Context, queues []Needs) error {
	now, before := time.Now(), w.queues
	keys := make([]Key, 0, len(queues))
	current := make(map[Key]measuredQueue, len(queues))
	for _, needs := range queues {
		keys = append(keys, needs.Key())
		current[needs.Key()] = measuredQueue{needs: needs}
	}
	services, err := w.local.QueueServices(ctx, keys...)
	if err != nil {
		return err
	}
	w.measured, w.queues = now, current
	unserved := map[attribute.Set]int{}
	for _, q := range before {
		unserved[needsAttributes(q.needs)] += 0
		if _, exists := current[q.needs.Key()]; !exists && w.Serves(q.needs) {
			w.metrics.recordQueue(ctx, q.needs, Service{})
		}
	}
	for key, q := range current {
		s := services[key]
		if w.Serves(q.needs) {
			w.metrics.recordQueue(ctx, q.needs, s)
		}
		q.unserved = s.Backlog > 0 && now.Sub(s.LastPoll) > unservedAfter && now.Sub(s.Oldest) > unservedAfter
		current[key] = q
		backlog := 0
		if q.unserved {
			backlog = s.Backlog
		}
		unserved[needsAttributes(q.needs)] += backlog
		if q.unserved && !before[key].unserved {
			w.report(ctx, WorkerEvent{Kind: WorkerUnserved, Needs: q.needs, Service: s})
		}
	}
	w.metrics.recordUnserved(ctx, unserved)
	return w.approvals.measure(ctx)
}

// measuredQueue is a queue that a worker has measured.
type measuredQueue struct {
	needs    Needs
	unserved bool
}
