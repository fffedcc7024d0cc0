package durable

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// CancelledError is the cause of a context whose run was cancelled: see Run.CancelCause.
type CancelledError struct {
	Reason string
	Cause  CancelCause
}

func (e *CancelledError) Error() string { return "cancelled: " + e.Reason }

// runSignals are the signals for a run that this process executes.
type runSignals struct {
	cancel func(error) // cancels the run

	mu           sync.Mutex
	paused       bool     // the run pauses after its current step
	context      []Signal // added context that the conversation does not have yet
	lastReceived int64    // number of the last signal with added context
}

func (s *runSignals) setPaused(paused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused = paused
}

func (s *runSignals) isPaused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.paused
}

// addContext keeps added context for the next step. The store returns the same signal until the run has handled it.
func (s *runSignals) addContext(added Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if added.Seq > s.lastReceived {
		s.lastReceived = added.Seq
		s.context = append(s.context, added)
	}
}

// takeContext returns the context that was added since the last call.
func (s *runSignals) takeContext() (added []Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	added, s.context = s.context, nil
	return added
}

// signalInterval is how often a receiver reads signals when the store reports no change.
const signalInterval = 500 * time.Millisecond

// signalReceiver delivers signals to the runs of this process. One goroutine reads them while there are runs.
type signalReceiver struct {
	store Holder
	owner string

	mu   sync.Mutex
	runs map[agent.RunID]*runSignals
	stop func() // ends the goroutine; nil without one
}

// follow delivers a run's signals until the returned func is called.
func (r *signalReceiver) follow(id agent.RunID, s *runSignals) (leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs[id] = s
	if r.stop == nil {
		ctx, cancel := context.WithCancel(context.Background())
		var receiving sync.WaitGroup
		receiving.Go(func() { r.receive(ctx) })
		r.stop = func() {
			cancel()
			receiving.Wait()
		}
	}
	return func() { r.leave(id, s) }
}

// leave ends the delivery to a run.
func (r *signalReceiver) leave(id agent.RunID, s *runSignals) {
	r.mu.Lock()
	if r.runs[id] == s { // the run's next execution in this process may have begun
		delete(r.runs, id)
	}
	var stop func()
	if len(r.runs) == 0 {
		stop, r.stop = r.stop, nil
	}
	r.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// receive reads and delivers signals until ctx is done.
func (r *signalReceiver) receive(ctx context.Context) {
	changes := r.store.Changes(ctx)
	every := time.NewTicker(signalInterval)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-changes:
			if !open {
				changes = nil
			}
		case <-every.C:
		}
		r.read(ctx)
	}
}

// read reads and delivers the signals of all runs. It ignores errors: the next read may succeed, and a run's commits report a
// failing store.
func (r *signalReceiver) read(ctx context.Context) {
	if signals, err := r.store.Signals(ctx, r.owner); err == nil {
		r.deliver(signals)
	}
}

func (r *signalReceiver) deliver(signals []Signal) {
	r.mu.Lock()
	runs := maps.Clone(r.runs)
	r.mu.Unlock()
	paused := map[agent.RunID]bool{}
	for _, s := range signals {
		run := runs[s.Run]
		switch {
		case run == nil:
		case s.Kind == SignalCancel:
			run.cancel(&CancelledError{s.Text, s.Cause})
		case s.Kind == SignalPause:
			paused[s.Run] = true
		default:
			run.addContext(s)
		}
	}
	for id, run := range runs {
		run.setPaused(paused[id])
	}
}
