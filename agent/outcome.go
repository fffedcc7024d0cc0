package agent

import (
	"cmp"
	"context"
	"errors"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/internal/errguard"
)

// How a run ends. Its status and its signal describe the end. A failed or cancelled run also returns an error:
//
//	what ended it                            status       error
//	a criterion: a final reply, of any kind  done
//	a person who rejected a call             interrupted
//	a failed step                            failed       the step's
//	a signal with StopError                  failed       its message
//	a criterion's error                      failed       the error
//	a call waiting for a person              parked
//	input that a hook does not accept        denied
//	leaving the loop of Steps                cancelled    the signal's
//	any other signal                         stopped
//	its context, with a signal as the cause  stopped
//	its context, with ErrSuspended           parked
//	its context otherwise                    cancelled    the cause
//	an error that is a SignalError           as its signal says
//	an error that is ErrSuspended            parked
//	any other error                          failed       the error
//
// A denied call does not end the run. It has its answer (DisposeAnswer), the others run, and the step is recorded. A
// call that waits parks its step: performCalls returns parkStep, and checkStep ends the loop with it. Resume continues
// after the reply.
//
// When the context has ended and there is also an error, the context decides. Inside the loop, endBySignal and
// endByError apply this rule. Conclude applies it to the result that the run middleware returns.

// finishRun returns the final state and reports it to the observer. S is the state with which the run began. Result is
// what the run middleware returned.
func (a *Agent) finishRun(ctx context.Context, settings *RunSettings, s State, result mo.Result[State]) mo.Result[State] {
	final, err := Conclude(ctx, s, result).Get()
	if failed, ok := runErrorOf(s, err); ok {
		failed.State = failed.State.release() // the error is new: no other goroutine has it
		final = failed.State
	}
	final = final.release()
	if final.Parked() {
		s.read().live.tell(ctx, RunParked{final})
	} else {
		s.read().live.tell(ctx, RunCompleted{State: final, Err: err})
	}
	if settings.onEnd != nil {
		settings.onEnd(final)
	}
	return mo.TupleToResult(final, err)
}

// endBySignal returns the run's end for the signal that stops it.
func endBySignal(s State, signal Signal) *mo.Result[State] {
	switch signal.Reason {
	case StopCompleted, StopFinishReason, StopEmptyReply, StopContinuations:
		return new(mo.Ok(s.endAs(StatusDone, signal)))
	case StopRejected:
		return new(mo.Ok(s.endAs(StatusInterrupted, signal)))
	case StopError:
		err := errors.New(signal.Message)
		if failure := s.LastStep().Failure(); failure != nil {
			err = failure
		}
		return new(mo.Err[State](&RunError{State: s.endAs(StatusFailed, signal), Err: err}))
	}
	return new(mo.Ok(s.endAs(StatusStopped, signal)))
}

// endByError returns the run's end for an error that is not its step's error. Err is nil when only the context has
// ended. A processor that fails after the step was taken keeps the step in a RunError.
func endByError(ctx context.Context, s State, err error) *mo.Result[State] {
	if saved, ok := runErrorOf(s, err); ok && saved.Err != nil {
		taken := saved.State.RunStepCount() > s.RunStepCount()
		if s, err = saved.State, saved.Err; taken {
			s.read().live.tellStep(ctx, s)
		}
	}
	switch stop, isSignal := errors.AsType[*SignalError](err); {
	case ctx.Err() != nil:
		return new(mo.Ok(endByContext(ctx, s)))
	case errors.Is(err, ErrSuspended):
		return new(mo.Ok(s.suspend()))
	case isSignal:
		return endBySignal(s, stop.Signal)
	}
	return failRun(s, err)
}

// endByContext returns the final state when the run's context has ended.
func endByContext(ctx context.Context, s State) State {
	cause := context.Cause(ctx)
	if errors.Is(cause, ErrSuspended) {
		return s.suspend()
	}
	if limit, ok := errors.AsType[*SignalError](cause); ok {
		return s.endAs(StatusStopped, limit.Signal)
	}
	return s.endAs(StatusCancelled, Signal{Reason: StopUser, Message: cause.Error(), Source: "context"})
}

// failRun returns the end of a failed run with its error.
func failRun(s State, err error) *mo.Result[State] {
	signal := Signal{Reason: StopError, Message: err.Error(), Source: baseSource}
	return new(mo.Err[State](&RunError{State: s.endAs(StatusFailed, signal), Err: err}))
}

// Conclude converts the run middleware's result into Run's result. That is a state that has ended, or a *RunError with
// the last state of a failed or cancelled run. S is the state with which the run began. Processors around a run call
// Conclude to learn how the run ends. They pass the context that they were called with.
func Conclude(ctx context.Context, s State, result mo.Result[State]) mo.Result[State] {
	final, err := result.Get()
	err = errguard.Check(err)
	if err == nil && !final.Status().Terminal() && !final.Parked() {
		err = errors.New("a processor around the run returned a state that has not ended")
	}
	if _, ok := runErrorOf(s, err); err != nil && !ok {
		final, err = endByError(ctx, s, err).Get()
	}
	if failed, ok := runErrorOf(s, err); ok {
		final = failed.State
		if err == error(failed) { //nolint:errorlint // err is failed itself and does not wrap it
			err = cmp.Or(failed.Err, err)
		}
	}
	if err != nil && ctx.Err() != nil && !final.Status().Terminal() { // a processor saved the state when the context ended
		if final = endByContext(ctx, final); final.Status() == StatusStopped || final.Parked() {
			return mo.Ok(final)
		}
		err = context.Cause(ctx)
	}
	switch status := final.Status(); {
	case status == StatusCancelled, status == StatusFailed:
		err = cmp.Or(err, context.Cause(ctx), errors.New(cmp.Or(final.StopSignal().Message, "no reason given")))
	case err == nil:
		return mo.Ok(final)
	default: // a processor saved the state
		final = final.endAs(StatusFailed, Signal{Reason: StopError, Message: err.Error(), Source: baseSource})
	}
	return mo.Err[State](&RunError{State: final, Err: err})
}

// runErrorOf finds in err the RunError of s's own run. The error of another run, such as a sub-agent's, is treated like
// any other error.
func runErrorOf(s State, err error) (*RunError, bool) {
	failed, ok := errors.AsType[*RunError](err)
	return failed, ok && failed.State.Run().ID == s.Run().ID
}

// stepErrorOf finds in err the failed step of s's own run, unless a processor wrapped it in a RunError.
func stepErrorOf(s State, err error) (*StepError, bool) {
	if _, over := runErrorOf(s, err); over {
		return nil, false
	}
	failed, ok := errors.AsType[*StepError](err)
	return failed, ok && failed.State.read().live == s.read().live
}

// errForeign is returned when a processor returns another run's state.
var errForeign = errors.New("a processor returned a state of another run: derive it from the state that it received")
