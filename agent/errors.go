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
	// KindInvalid: arguments or an answer break their schema.
	KindInvalid ErrorKind = "invalid"
	// KindUnknown: none of the others.
	KindUnknown ErrorKind = "unknown"
)

// KindOf returns the kind of an error: what it says itself, KindTimeout for a passed
// deadline, KindUnknown otherwise.
func KindOf(err error) ErrorKind {
	var kinded interface{ ErrorKind() ErrorKind }
	switch {
	case errors.As(err, &kinded):
		return kinded.ErrorKind()
	case errors.Is(err, context.DeadlineExceeded):
		return KindTimeout
	}
	return KindUnknown
}

// Failure is an error as the state keeps it: its kind and its text survive JSON,
// the error value itself does not.
type Failure struct {
	Kind ErrorKind `json:"kind"`
	Text string    `json:"text"`
	err  error
}

func newFailure(err error, kind ErrorKind) *Failure {
	if k := KindOf(err); k != KindUnknown {
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
