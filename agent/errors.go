package agent

import (
	"context"
	"errors"
	"fmt"
)

// ErrorKind classifies errors by how a caller can react. An error reports its kind with a method `ErrorKind()
// ErrorKind`.
type ErrorKind string

// The kinds of errors.
const (
	// KindTool: a tool's body failed.
	KindTool ErrorKind = "tool"
	// KindModel: the model service failed in a way that no other kind describes.
	KindModel ErrorKind = "model"
	// KindRateLimit: the model service limits the requests of this account.
	KindRateLimit ErrorKind = "rate_limit"
	// KindOverloaded: the model service is overloaded for all its users.
	KindOverloaded ErrorKind = "overloaded"
	// KindContextLength: the messages exceed the model's context window.
	KindContextLength ErrorKind = "context_length"
	// KindAuth: the model service does not know the caller, or does not authorize it.
	KindAuth ErrorKind = "auth"
	// KindBadRequest: the model service rejected the request.
	KindBadRequest ErrorKind = "bad_request"
	// KindBrokenStream: a reply broke off, or violated the protocol.
	KindBrokenStream ErrorKind = "broken_stream"
	// KindTimeout: something exceeded its time limit.
	KindTimeout ErrorKind = "timeout"
	// KindCancelled: the caller, a user or another process cancelled the work.
	KindCancelled ErrorKind = "cancelled"
	// KindInvalid: arguments or an answer violate their schema.
	KindInvalid ErrorKind = "invalid"
	// KindUnknown: none of the others.
	KindUnknown ErrorKind = "unknown"
)

// KindOf returns the kind that the error reports. Otherwise it returns KindTimeout for a passed deadline, KindCancelled
// for a cancelled context, and KindUnknown for other errors. A cancelled run's error has KindCancelled for every cause
// except a passed deadline.
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

// Retryable reports whether another attempt may succeed after err. An error decides with a method `Retryable() bool`.
// Without that method, its kind decides: KindInvalid, KindBadRequest, KindContextLength and KindAuth are permanent,
// because the service will reject the request again. A durable worker does not repeat work that failed with a permanent
// error.
func Retryable(err error) bool {
	var knows interface{ Retryable() bool }
	if errors.As(err, &knows) {
		return knows.Retryable()
	}
	switch KindOf(err) {
	case KindInvalid, KindBadRequest, KindContextLength, KindAuth:
		return false
	}
	return true
}

// StateOf returns the state in the outermost *RunError or *StepError of an error's chain. Ok is false when there is
// none.
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

// A Failure is an error that a state records. Its kind and text survive JSON, but the error value does not.
type Failure struct {
	Kind ErrorKind `json:"kind"`
	Text string    `json:"text"`
	err  error
}

func newFailure(err error, kind ErrorKind) *Failure {
	if k := KindOf(err); k != KindUnknown && k != KindCancelled { // a cancellation within the step does not cancel the run
		kind = k
	}
	return &Failure{Kind: kind, Text: err.Error(), err: err}
}

func (f *Failure) Error() string { return f.Text }

// Unwrap returns the error value, or nil after a round trip through JSON.
func (f *Failure) Unwrap() error { return f.err }

// ErrorKind returns the failure's kind.
func (f *Failure) ErrorKind() ErrorKind { return f.Kind }

// RunError is the error of a failed or cancelled run. It holds the state at that moment, so that no work is lost. A
// processor that fails after next has returned can return a RunError to keep next's state. The loop sets the status.
type RunError struct {
	// State is the last good state. Its Status is StatusFailed or StatusCancelled.
	State State
	// Err is the error that ended the run, or the cause of the cancellation.
	Err error
}

func (e *RunError) Error() string {
	if _, ok := runErrorOf(e.State, e.Err); ok {
		return e.Err.Error() // its text includes all this and any processor's text
	}
	run := e.State.Run()
	what := StatusFailed
	if status := e.State.Status(); status.Terminal() || e.State.Parked() {
		what = status
	}
	return fmt.Sprintf("agent %q: run %s %s at step %d: %v", run.Agent, run.ID, what, e.State.RunStepCount(), e.Err)
}

func (e *RunError) Unwrap() error { return e.Err }

// ErrorKind returns KindCancelled for a cancelled run, or KindTimeout if a passed deadline cancelled it. Otherwise it
// returns Err's kind.
func (e *RunError) ErrorKind() ErrorKind {
	if e.State.Status() == StatusCancelled && !errors.Is(e.Err, context.DeadlineExceeded) {
		return KindCancelled
	}
	return KindOf(e.Err)
}

func (e *RunError) keptState() State { return e.State }

// A StepError is the error of a step whose model call or executor failed. The processors around the step receive it. If
// a processor returns it, wrapped or not, the criteria decide whether the run continues. Any other error ends the run,
// even a RunError that wraps the StepError.
type StepError struct {
	// State includes the failed step. If the run continues, it continues from this state. The last step has a Failure,
	// and its Reply has a Message if the model answered before the failure.
	State State
	// Err is the step's error.
	Err error
}

func (e *StepError) Error() string { return e.Err.Error() }

func (e *StepError) Unwrap() error { return e.Err }

func (e *StepError) keptState() State { return e.State }
