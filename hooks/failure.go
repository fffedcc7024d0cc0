package hooks

import (
	"errors"
	"fmt"
	"time"
)

// A FailurePolicy says how to handle a hook's panic, timeout, error or invalid answer. The zero policy means the
// default: Closed for controls, Open for observers.
type FailurePolicy struct {
	kind   failureKind
	tries  int
	delay  time.Duration
	nested bool // a Retry after a Retry
}

type failureKind uint8

const (
	failDefault failureKind = iota
	failClosed
	failOpen
	failAbort
)

func (k failureKind) String() string {
	switch k {
	case failClosed:
		return "closed"
	case failOpen:
		return "open"
	case failAbort:
		return "abort"
	}
	return "default"
}

// The failure policies.
var (
	// Closed treats a failure as a denial. The call is denied, the result withheld, the input denied, or the run
	// stopped, depending on the hook's point. Texts and events name the hook and say that it could not decide. Closed
	// is for controls only.
	Closed = FailurePolicy{kind: failClosed}
	// Open continues as if the hook had no opinion. However, if a hook rewrote a call into an invalid one, the call
	// does not run, because the hook did not allow the original call.
	Open = FailurePolicy{kind: failOpen}
	// Abort fails the run. It is not allowed for detached hooks, because the run does not wait for them. It is not
	// allowed either for hooks that are only at points where the run has ended: ExecutionEnd and InterventionStopped.
	Abort = FailurePolicy{kind: failAbort}
)

// Retry calls a failed hook again, up to tries more times, with delay in between. After the last failure, the policy
// then applies. It must not be a Retry itself.
func Retry(tries int, delay time.Duration, then FailurePolicy) FailurePolicy {
	return FailurePolicy{kind: then.kind, tries: tries, delay: delay, nested: then.tries != 0 || then.nested}
}

func (p FailurePolicy) String() string {
	if p.tries != 0 {
		return fmt.Sprintf("retry(%d, %s, %s)", p.tries, p.delay, p.kind)
	}
	return p.kind.String()
}

// HookError is returned when a hook failed: it could not decide.
type HookError struct {
	// Hook and Point name the hook and the point where it failed.
	Hook  string
	Point PointName
	Err   error
}

func (e *HookError) Error() string {
	return fmt.Sprintf("hook %q at %s could not decide: %v", e.Hook, e.Point, e.Err)
}

func (e *HookError) Unwrap() error { return e.Err }

// Retryable returns false. When a hook's failure fails the run, asking the model again does not help.
func (e *HookError) Retryable() bool { return false }

// DeniedError is the error in the result of a denied call; see agent.ToolResult.Err.
type DeniedError struct {
	// Tool is the denied call's tool. Hook is the hook that denied it.
	Tool string
	Hook string
	// Reason is the hook's reason. It may be empty.
	Reason string
	// Failed is set if the hook did not deny but could not decide.
	Failed bool
}

func (e *DeniedError) Error() string {
	if e.Failed {
		return fmt.Sprintf("tool %q: not executed: %s: %s", e.Tool, e.Hook, orNoReason(e.Reason))
	}
	return fmt.Sprintf("tool %q: denied by %s: %s", e.Tool, e.Hook, orNoReason(e.Reason))
}

// rewriteError is returned when a hook rewrote a call into an invalid one.
type rewriteError struct{ err error }

func (e *rewriteError) Error() string {
	return fmt.Sprintf("the rewritten arguments are invalid: %v", e.err)
}

func (e *rewriteError) Unwrap() error { return e.err }

// executorError is returned when the executor failed while it checked a hook's rewrite. It is not a hook failure.
type executorError struct{ err error }

func (e *executorError) Error() string { return e.err.Error() }

func (e *executorError) Unwrap() error { return e.err }

// PanicError is returned when a hook panicked.
type PanicError struct {
	Value any
	// Stack is the stack trace from debug.Stack.
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// ErrTimeout is returned when a hook exceeded its time limit.
var ErrTimeout = errors.New("the hook did not answer in time")

func orNoReason(reason string) string {
	if reason == "" {
		return "no reason given"
	}
	return reason
}
