package agent

import (
	"context"
	"errors"
	"iter"
)

// errGivenUp cancels a run whose caller stopped listening.
var errGivenUp = errors.New("the caller gave the run up")

// Steps runs the agent as Run does and yields the state after each step, and at
// last the state that the run ended in; with the error, if there is one. Leaving
// the iteration early cancels the run. Everything happens on the caller's
// goroutine, between two yields.
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
		if failed, ok := errors.AsType[*RunError](err); ok {
			final = failed.State
		}
		yield(final, err)
	}
}

// Progress is one thing that Stream yields: a piece of a reply, a finished step,
// or, last of all, the end of the run.
type Progress struct {
	// Delta is a piece of a reply; nil on the others.
	Delta *Delta
	// State is the state after a step, or the one that the run ended in. It is
	// empty while a reply arrives.
	State State
}

// Stream runs the agent as Run does and yields the model's replies as they
// arrive, the state after each step, and at last the state that the run ended
// in; with the error, if there is one. Leaving the iteration early cancels the
// run. Everything happens on the caller's goroutine.
//
// A reply is yielded before the step that it belongs to is decided upon. Where a
// control hook at PostInference may replace it, it is held back until the hook
// has spoken, and comes in one piece.
func (a *Agent) Stream(ctx context.Context, s State, input ...Message) iter.Seq2[Progress, error] {
	return a.StreamWith(ctx, RunSettings{}, s, input...)
}

// StreamWith runs the agent as Stream does, with settings.
func (a *Agent) StreamWith(ctx context.Context, settings RunSettings, s State, input ...Message) iter.Seq2[Progress, error] {
	return func(yield func(Progress, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		listening := true
		tell := func(p Progress) bool {
			if listening {
				if listening = yield(p, nil); !listening {
					cancel(errGivenUp)
				}
			}
			return listening
		}
		settings.onDelta = func(d Delta) { tell(Progress{Delta: &d}) }
		settings.onStep = func(s State) bool { return tell(Progress{State: s}) }
		final, err := a.RunWith(ctx, settings, s, input...).Get()
		if !listening {
			return
		}
		if failed, ok := errors.AsType[*RunError](err); ok {
			final = failed.State
		}
		yield(Progress{State: final}, err)
	}
}
