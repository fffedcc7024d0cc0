package action

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Fault says in one word what kept an action from being done.
type Fault string

// The faults. docs/actions.md says what becomes of each.
const (
	// FaultSetup: it cannot be done as it is declared: a variable that is not set, an unknown name.
	FaultSetup Fault = "setup"
	// FaultStart: it did not start: no such program, no rights.
	FaultStart Fault = "start"
	// FaultExit: it ended with an error: an exit code that is not zero, a panic, an agent that failed.
	FaultExit Fault = "exit"
	// FaultSignal: a signal killed it.
	FaultSignal Fault = "signal"
	// FaultTimeout: it took longer than it may.
	FaultTimeout Fault = "timeout"
	// FaultTooMuch: what it is to be told, or what it answered, is more than is allowed.
	FaultTooMuch Fault = "too_much"
	// FaultAnswer: what it answered makes no sense: it is no decision where only one counts, or none that can be.
	FaultAnswer Fault = "bad_answer"
	// FaultStatus: the status of its HTTP answer is not 2xx.
	FaultStatus Fault = "status"
	// FaultNetwork: no host could be reached.
	FaultNetwork Fault = "network"
	// FaultCancelled: the run was cancelled.
	FaultCancelled Fault = "cancelled"
)

// Error is the failure of an action. Its text has no secret in it.
type Error struct {
	// Type is that of the action, Fault what is wrong, in one word.
	Type  string
	Fault Fault
	// Err says what happened.
	Err error
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

func (e *timeoutError) Error() string { return fmt.Sprintf("it took longer than %s", e.limit) }

// Unwrap makes it one of context.DeadlineExceeded.
func (e *timeoutError) Unwrap() error { return context.DeadlineExceeded }

// withLimit returns ctx with a limit that says so itself.
func withLimit(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, &timeoutError{limit})
}

// contextError returns the error of an action whose context is done: it was too late, or cancelled.
func contextError(ctx context.Context, kind string) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &Error{Type: kind, Fault: FaultTimeout, Err: cause}
	}
	return &Error{Type: kind, Fault: FaultCancelled, Err: fmt.Errorf("cancelled: %w", cause)}
}
