package durable

import (
	"context"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// stallTime is how long a commit may take before the observer is notified.
const stallTime = time.Second

// StoreStalled is the event for the agent's observer when the store has not accepted the run's commit for a second: it
// fails or does not respond. The run waits for up to Options.Patience.
type StoreStalled struct {
	Run agent.Run
	// Err is the store's last error, nil if it has not responded.
	Err error
}

// EventName returns "store.stalled".
func (StoreStalled) EventName() string { return "store.stalled" }

// StoreRecovered is the event for the agent's observer when the store has accepted a commit after StoreStalled.
type StoreRecovered struct {
	Run agent.Run
	// After is how long the commit took.
	After time.Duration
}

// EventName returns "store.recovered".
func (StoreRecovered) EventName() string { return "store.recovered" }

// stallWatch notifies an observer of a commit that takes longer than stallTime.
type stallWatch struct {
	state   agent.State
	started time.Time
	timer   *time.Timer
	over    chan struct{} // closed when the observer was notified

	mu  sync.Mutex
	err error
}

// watchCommit starts to watch a commit. The caller must call stop when it is over.
func watchCommit(ctx context.Context, s agent.State) *stallWatch {
	w := &stallWatch{state: s, started: time.Now(), over: make(chan struct{})}
	w.timer = time.AfterFunc(stallTime, func() {
		defer close(w.over)
		w.mu.Lock()
		err := w.err
		w.mu.Unlock()
		s.Emit(ctx, StoreStalled{s.Run(), err})
	})
	return w
}

// note keeps the outcome of the last attempt.
func (w *stallWatch) note(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

// stop ends the watch. After a StoreStalled, it reports that the store has recovered.
func (w *stallWatch) stop(ctx context.Context, err error) {
	if w.timer.Stop() {
		return
	}
	<-w.over
	if err == nil {
		w.state.Emit(ctx, StoreRecovered{w.state.Run(), time.Since(w.started)})
	}
}
