package agent

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"sync"

	"github.com/samber/mo"
)

// errGivenUp cancels a run whose caller has left the iteration.
var errGivenUp = errors.New("the caller ended the run early")

// Steps runs the agent as Run does. It yields the state after each step, and finally the run's final state with the
// error, if any. Leaving the iteration early cancels the run. The agent runs on the caller's goroutine, between two
// yields.
func (a *Agent) Steps(ctx context.Context, s State, input ...Message) iter.Seq2[State, error] {
	return a.StepsWith(ctx, RunSettings{}, s, input...)
}

// StepsWith runs the agent as Steps does, with settings.
func (a *Agent) StepsWith(ctx context.Context, settings RunSettings, s State, input ...Message) iter.Seq2[State, error] {
	return func(yield func(State, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		listening := true
		settings.onStep = func(s State) bool {
			if listening {
				if listening = yield(s, nil); !listening {
					cancel(errGivenUp)
				}
			}
			return listening
		}
		final, err := a.RunWith(ctx, settings, s, input...).Get()
		if !listening {
			return
		}
		if kept, ok := StateOf(err); ok {
			final = kept
		}
		yield(final, err)
	}
}

// Progress is one item that Stream yields: a piece of a reply, an event, a finished step, or, as the last item, the
// run's end.
type Progress struct {
	// Delta is a piece of a reply. It is nil for other items.
	Delta *Delta
	// Event is an event, or nil if Delta is set. After a step it is a StepCompleted. At the run's end it is a
	// RunCompleted, or a RunParked if the run waits for a person.
	Event Event
	// State is the state after a step, or the run's final state. It is empty if Delta is set, and for any other Event.
	State State
}

// Ended reports whether the run has ended, so that this is the last item.
func (p Progress) Ended() bool {
	switch p.Event.(type) {
	case RunCompleted, RunParked:
		return true
	}
	return false
}

// Stream runs the agent as Run does. It yields the model's replies as they arrive, events, the state after each step,
// and finally the run's end, with its state and the error, if any. Leaving the iteration early cancels the run and
// waits until it has ended.
//
// Stream yields the same events as an Observer receives, except model call events, because it yields the replies
// themselves. Events are:
//
//   - a tool call begins (ToolCallStarted) or is answered (ToolCallCompleted)
//   - a person is asked (ApprovalRequested) or has answered (ApprovalCompleted)
//   - a hook denied or rewrote a call or asked about it (hooks.Event)
//   - a reply is dropped and asked for again (processor.Retrying)
//
// A stream does not include sub-agents' events, but it has events for their begin and end.
//
// Stream yields a reply before hooks have decided on its calls. If a control hook at PostInference may replace the
// reply, Stream holds it back until the hook has decided, and yields it in one piece.
//
// The run has its own goroutine, which ends with the iteration. The run waits while the loop body runs, which must not
// call back into the run.
func (a *Agent) Stream(ctx context.Context, s State, input ...Message) iter.Seq2[Progress, error] {
	return a.StreamWith(ctx, RunSettings{}, s, input...)
}

// StreamWith runs the agent as Stream does, with settings.
func (a *Agent) StreamWith(ctx context.Context, settings RunSettings, s State, input ...Message) iter.Seq2[Progress, error] {
	return func(yield func(Progress, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		f := &stream{progress: make(chan Progress), taken: make(chan struct{}), left: make(chan struct{}), ended: make(chan struct{})}
		leave := sync.OnceFunc(func() { // also when the loop body panics
			cancel(errGivenUp)
			close(f.left)
			<-f.ended
		})
		defer leave()
		settings.onDelta = func(d Delta) { f.send(Progress{Delta: &d}) }
		settings.onStep = func(s State) bool {
			last := s.LastStep()
			return f.send(Progress{State: s, Event: StepCompleted{s.Run(), last}})
		}
		settings.onEvent = func(e Event) {
			switch e.(type) {
			case InferenceStarted, InferenceCompleted, StepCompleted, RunCompleted, RunParked:
			default:
				f.send(Progress{Event: e})
			}
		}
		go f.runAgent(func() mo.Result[State] { return a.RunWith(ctx, settings, s, input...) })
		for {
			select {
			case p := <-f.progress:
				if !yield(p, nil) {
					return
				}
				f.taken <- struct{}{}
			case <-f.ended:
				leave()
				f.end(yield)
				return
			}
		}
	}
}

// stream passes a run's progress to the loop that iterates over it.
type stream struct {
	progress chan Progress
	taken    chan struct{} // receives a value when the loop is done with an item
	left     chan struct{} // closed when the loop accepts no more items
	ended    chan struct{} // closed when the run has ended, and the fields below are set

	result   mo.Result[State]
	returned bool // the run returned and did not panic or end its goroutine
	panicked any
}

// send passes p to the loop and waits until the loop is done with it. It reports whether the loop wants more. Any
// number of goroutines may call send.
func (f *stream) send(p Progress) bool {
	select {
	case f.progress <- p:
	case <-f.left:
		return false
	case <-f.ended: // sent by a detached hook
		return false
	}
	select {
	case <-f.taken:
		return true
	case <-f.left:
		return false
	}
}

// runAgent runs the agent on the run's goroutine.
func (f *stream) runAgent(run func() mo.Result[State]) {
	defer close(f.ended)
	defer func() {
		if !f.returned {
			f.panicked = recover()
		}
	}()
	f.result = run()
	f.returned = true
}

// end yields the run's end, or panics in the caller if the run panicked.
func (f *stream) end(yield func(Progress, error) bool) {
	switch {
	case f.panicked != nil:
		panic(f.panicked)
	case !f.returned:
		runtime.Goexit()
	}
	final, err := f.result.Get()
	if kept, ok := StateOf(err); ok {
		final = kept
	}
	end := Progress{State: final, Event: RunCompleted{final, err}}
	if err == nil && final.Parked() {
		end.Event = RunParked{final}
	}
	yield(end, err)
}
