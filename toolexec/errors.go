package toolexec

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// UnknownToolError is returned when a model calls a tool that does not exist.
type UnknownToolError struct {
	Name string
	// Nearest is the tool that the model probably meant. It is empty when no name is similar.
	Nearest string
	known   []string
}

// shownTools is the maximum number of tool names in the answer to an unknown tool's call.
const shownTools = 20

func (e *UnknownToolError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "unknown tool %q", shortenName(e.Name))
	if e.Nearest != "" {
		fmt.Fprintf(&b, "; did you mean %q?", e.Nearest)
	}
	if len(e.known) == 0 {
		return b.String() + "; the agent has no tools"
	}
	b.WriteString("; the tools are ")
	b.WriteString(strings.Join(lo.Slice(e.known, 0, shownTools), ", "))
	if more := len(e.known) - shownTools; more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	return b.String()
}

// ErrorKind returns KindInvalid: the same call will fail again.
func (e *UnknownToolError) ErrorKind() agent.ErrorKind { return agent.KindInvalid }

// shortenName shortens an overlong name in a message.
func shortenName(name string) string {
	if len(name) <= maxNameBytes {
		return name
	}
	return strings.ToValidUTF8(name[:maxNameBytes], "") + "…"
}

// PanicError is returned when a tool panicked. The model learns only that it panicked. The executor logs the panic with
// its stack to slog.Default. It logs the text of Go runtime errors. For other values it logs only the type.
type PanicError struct {
	// Value is the panic's value.
	Value any
	// Stack is the stack trace, as debug.Stack writes it.
	Stack string
}

func (e *PanicError) Error() string { return fmt.Sprintf("panicked: %v", e.Value) }

// PanicStack returns the stack trace. Telemetry adds it to the call's span.
func (e *PanicError) PanicStack() string { return e.Stack }

// describe returns the text of a Go runtime error. For other values it returns only the type, because no hook has
// reviewed their text.
func (e *PanicError) describe() string {
	if err, ok := e.Value.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("a value of type %T", e.Value)
}

// Unwrap returns the panic's value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// ErrorKind returns KindTool.
func (e *PanicError) ErrorKind() agent.ErrorKind { return agent.KindTool }

// TimeoutError is returned when an attempt exceeded its time limit. It is also the cause with which the attempt's ctx
// is cancelled. errors.Is finds context.DeadlineExceeded in it.
type TimeoutError struct {
	// After is the attempt's time limit.
	After time.Duration
	// Abandoned reports that the tool did not return after its ctx was done, and may still be running.
	Abandoned bool
	// Err is the error that the tool returned when its time was up. It is nil when the attempt was abandoned.
	Err error
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("no answer within %v", e.After) + epilogue(e.Abandoned, e.Err)
}

// Timeout returns true, as net.Error requires.
func (e *TimeoutError) Timeout() bool { return true }

// Is reports whether target is context.DeadlineExceeded.
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// Unwrap returns the error that the tool returned.
func (e *TimeoutError) Unwrap() error { return e.Err }

// ErrorKind returns KindTimeout.
func (e *TimeoutError) ErrorKind() agent.ErrorKind { return agent.KindTimeout }

// CancelledError is returned when the run was cancelled while the tool ran, or while it waited for a
// retry.
type CancelledError struct {
	// Cause is the cancellation's cause.
	Cause error
	// Abandoned reports that the tool did not return in time, and may still be running.
	Abandoned bool
	// Err is the error that the tool returned. It is nil when the attempt was abandoned.
	Err error
}

func (e *CancelledError) Error() string {
	return fmt.Sprintf("the run was cancelled (%v)", e.Cause) + epilogue(e.Abandoned, e.Err)
}

// Unwrap returns the cause and the error that the tool returned.
func (e *CancelledError) Unwrap() []error { return lo.Compact([]error{e.Cause, e.Err}) }

// epilogue returns the end of a TimeoutError's or CancelledError's message.
func epilogue(abandoned bool, err error) string {
	switch {
	case abandoned:
		return "; it was abandoned and may still be running"
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return ""
	}
	return fmt.Sprintf("; it said: %v", err)
}
