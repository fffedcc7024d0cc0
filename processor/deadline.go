package processor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// Deadline sets a time limit for everything inside it in the chain. Unlike continuation.Time it also interrupts the
// current step: the context inside is done when the time is over. The run then ends as stopped, for
// agent.StopTimeLimit, with the steps so far. The signal's details are elapsedSeconds and maxSeconds. The elapsed time
// counts from the run's start, without its time as a parked run.
//
// Use it around the run, as the last processor. The other processors then have a context that is not done when the run
// ends. Around a step it limits each step, and the run ends after the first step that takes longer.
func Deadline(limit time.Duration) agent.Processor {
	return deadline{limit, fmt.Sprintf("the time limit of %s has passed", limit)}
}

type deadline struct {
	limit   time.Duration
	message string // the signal's message
}

func (d deadline) Process(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
	over := &agent.SignalError{Signal: d.signal(s)}
	ctx, cancel := context.WithTimeoutCause(ctx, d.limit, over)
	defer cancel()
	out := next(ctx, s)
	if !errors.Is(context.Cause(ctx), over) {
		return out // in time, or ended by another cause
	}
	switch after, err := out.Get(); {
	case err == nil && after.Status().Terminal():
		return out // the loop has stopped the run, or the run ended in time
	case err == nil:
		return mo.Ok(after.WithStop(over.Signal))
	}
	if failed, ok := stepError(s, out.Error()); ok {
		return mo.Err[agent.State](&agent.StepError{State: failed.State.WithStop(over.Signal), Err: failed.Err})
	}
	if _, ok := runError(s, out.Error()); ok {
		return out
	}
	return mo.Err[agent.State](over) // a stop, not a failure
}

// signal returns the signal for when the time that starts now is over.
func (d deadline) signal(s agent.State) agent.Signal {
	elapsed := max(d.limit, 0)
	elapsed += s.Elapsed()
	return agent.Signal{
		Reason:  agent.StopTimeLimit,
		Message: d.message,
		Source:  "processor.Deadline",
		Details: map[string]any{"elapsedSeconds": elapsed.Seconds(), "maxSeconds": d.limit.Seconds()},
	}
}
