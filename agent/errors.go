package agent

import (
	"context"
	"errors"
	"fmt"
)

// ErrorKind sorts errors by what may be done about them. An error says its kind
// by having a method `ErrorKind() ErrorKind`.
type ErrorKind string

// The kinds of errors.
const (
	// KindTool: a tool's body failed.
	KindTool ErrorKind = "tool"
	// KindModel: the model service failed, in none of the ways below.
	KindModel ErrorKind = "model"
	// KindRateLimit: the model service wants fewer requests from this account.
	KindRateLimit ErrorKind = "rate_limit"
	// KindOverloaded: the model service has too much to do, for all its users.
	KindOverloaded ErrorKind = "overloaded"
	// KindContextLength: the messages are more than the model can read.
	KindContextLength ErrorKind = "context_length"
	// KindAuth: the model service does not know the caller, or does not let it.
	KindAuth ErrorKind = "auth"
	// KindBadRequest: the model service does not accept what it was asked.
	KindBadRequest ErrorKind = "bad_request"
	// KindBrokenStream: a reply broke off, or was not what the protocol says.
	KindBrokenStream ErrorKind = "broken_stream"
	// KindTimeout: something took longer than it may.
	KindTimeout ErrorKind = "timeout"
	// KindCancelled: the caller, a user or another process gave the work up.
	KindCancelled ErrorKind = "cancelled"
	// KindInvalid: arguments or an answer break their schema.
	KindInvalid ErrorKind = "invalid"
	// KindUnknown: none of the others.
	KindUnknown ErrorKind = "unknown"
)

// KindOf returns the kind of an error: what it says itself, KindTimeout for a passed
// deadline, KindCancelled for a cancelled context, KindUnknown otherwise. The error of a
// cancelled run is of KindCancelled whatever its cause is, unless that is a passed deadline.
func KindOf(err error) ErrorKind {
	var kinded interface{ ErrorKind() ErrorKind }
	switch {
	case errors.As(err, &kinded):
		return kinded.ErrorKind()
	case errors.Is(err, context.DeadlineExceeded):
		return KindTimeout
	case errors.Is(err, context.Canceled):
		return KindCancelled
	}
	return KindUnknown
}

// StateOf returns the state that an error holds: that of the outermost *RunError or *StepError
// in its chain. Ok is false when there is none.
//
//	final, err := a.Run(ctx, s).Get()
//	if kept, ok := agent.StateOf(err); ok {
//		final = kept // what was done before the run failed
//	}
func StateOf(err error) (s State, ok bool) {
	var holder interface{ keptState() State }
	if !errors.As(err, &holder) {
		return State{}, false
	}
	return holder.keptState(), true
}

// Failure is an error as the state keeps it: its kind and its text survive JSON,
// the error value itself does not.
type Failure struct {
	Kind ErrorKind `json:"kind"`
	Text string    `json:"text"`
	err  error
}

func newFailure(err error, kind ErrorKind) *Failure {
	if k := KindOf(err); k != KindUnknown && k != KindCancelled { // what was cancelled within a step is not its run
		kind = k
	}
	return &Failure{Kind: kind, Text: err.Error(), err: err}
}

func (f *Failure) Error() string { return f.Text }

// Unwrap returns the error value, or nil after a round trip through JSON.
func (f *Failure) Unwrap() error { return f.err }

// ErrorKind returns the failure's kind.
func (f *Failure) ErrorKind() ErrorKind { return f.Kind }

// RunError is the error of a run that failed or was cancelled. It holds the
// state as it was when that happened, so that nothing is lost with the run. A
// processor that fails after next returned may return one to save the state that
// it got; the loop sees to the status.
type RunError struct {
	// State is the last good state; its Status is StatusFailed or
	// StatusCancelled.
	State State
	// Err is what went wrong, or why the run was cancelled.
	Err error
}

func (e *RunError) Error() string {
	if _, ok := runErrorOf(e.State, e.Err); ok {
		return e.Err.Error() // it says all this, and what a processor had to add
	}
	run := e.State.Run()
	what := StatusFailed
	if status := e.State.Status(); status.Terminal() || e.State.Parked() {
		what = status
	}
	return fmt.Sprintf("agent %q: run %s %s at step %d: %v", run.Agent, run.ID, what, e.State.RunStepCount(), e.Err)
}

func (e *RunError) Unwrap() error { return e.Err }

// ErrorKind returns KindCancelled for a run that was cancelled, KindTimeout where a passed
// deadline did that, and for any other run the kind of what went wrong.
func (e *RunError) ErrorKind() ErrorKind {
	if e.State.Status() == StatusCancelled && !errors.Is(e.Err, context.DeadlineExceeded) {
		return KindCancelled
	}
	return KindOf(e.Err)
}

func (e *RunError) keptState() State { return e.State }

// StepError is the error of a step that began and failed, as the processors
// around the step see it: the model call failed, or something broke in the
// executor. A processor that returns it, wrapped or not, leaves the failure to
// the criteria; any other error ends the run, a RunError around it included.
type StepError struct {
	// State is the state with the failed step recorded, from which the run goes
	// on. Its last step has a Failure, and its Reply has a Message if the model
	// had answered before it failed.
	State State
	// Err is what went wrong.
	Err error
}

func (e *StepError) Error() string { return e.Err.Error() }

func (e *StepError) Unwrap() error { return e.Err }

func (e *StepError) keptState() State { return e.State }
