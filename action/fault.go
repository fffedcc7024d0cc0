package action

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Fault names the kind of an action's failure in one word.
type Fault string

// The faults. docs/actions.md says how each one is handled.
const (
	// FaultSetup means that the action cannot run as declared: a variable is not set, or a name is unknown.
	FaultSetup Fault = "setup"
	// FaultStart means that the action did not start: the program does not exist, or permission was denied.
	FaultStart Fault = "start"
	// FaultExit means that the action ended with an error: a nonzero exit code, a panic, or an agent that failed.
	FaultExit Fault = "exit"
	// FaultSignal means that a signal killed the process.
	FaultSignal Fault = "signal"
	// FaultTimeout means that the action exceeded its time limit.
	FaultTimeout Fault = "timeout"
	// FaultTooMuch means that the input or the output of the action exceeds its size limit.
	FaultTooMuch Fault = "too_much"
	// FaultAnswer means that the answer is invalid: not a decision where one is required, or a decision that the point
	// does not allow.
	FaultAnswer Fault = "bad_answer"
	// FaultStatus means that the HTTP response has a status other than 2xx.
	FaultStatus Fault = "status"
	// FaultNetwork means that the host could not be reached.
	FaultNetwork Fault = "network"
	// FaultCancelled means that the run was cancelled.
	FaultCancelled Fault = "cancelled"
)

// Error is the failure of an action. Its text contains no secrets.
type Error struct {
	// Type is the action's type, Fault the kind of failure.
	Type  string
	Fault Fault
	Err   error
	// Body is the beginning of the body of an HTTP response that FaultStatus is about, without secrets. It is not part of the text,
	// because models read that.
	Body string
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.Type, e.Err) }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// newFault returns an Error of the given kind.
func newFault(kind string, fault Fault, format string, args ...any) error {
	return &Error{Type: kind, Fault: fault, Err: fmt.Errorf(format, args...)}
}

// timeoutError is the cause of a context whose time limit has passed.
type timeoutError struct{ limit time.Duration }

func (e *timeoutError) Error() string { return fmt.Sprintf("timed out after %s", e.limit) }

// Unwrap returns context.DeadlineExceeded, so that errors.Is finds it.
func (e *timeoutError) Unwrap() error { return context.DeadlineExceeded }

// withLimit returns ctx with a time limit whose cause is a timeoutError.
func withLimit(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, &timeoutError{limit})
}

// contextError returns the error of an action whose context is done: a timeout or a cancellation.
func contextError(ctx context.Context, kind string) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &Error{Type: kind, Fault: FaultTimeout, Err: cause}
	}
	return &Error{Type: kind, Fault: FaultCancelled, Err: fmt.Errorf("cancelled: %w", cause)}
}
