package toolexec

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// UnknownToolError says that a model called a tool which is not there.
type UnknownToolError struct {
	// Name is what the model called.
	Name string
	// Nearest is the tool that it probably meant; empty when none is like it.
	Nearest string
	known   []string
}

// Most names that a model is told when it calls one that is not among them.
const shownTools = 20

func (e *UnknownToolError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "unknown tool %q", shortenName(e.Name))
	if e.Nearest != "" {
		fmt.Fprintf(&b, "; did you mean %q?", e.Nearest)
	}
	if len(e.known) == 0 {
		return b.String() + "; there are no tools at all"
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

// shortenName keeps a name readable that a model made up.
func shortenName(name string) string {
	if len(name) <= maxNameBytes {
		return name
	}
	return strings.ToValidUTF8(name[:maxNameBytes], "") + "…"
}

// PanicError says that a tool panicked. The model is told no more than that.
type PanicError struct {
	// Value is what the tool panicked with.
	Value any
	// Stack is where, as debug.Stack writes it.
	Stack string
}

func (e *PanicError) Error() string { return fmt.Sprintf("panicked: %v", e.Value) }

// Unwrap returns what the tool panicked with, if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// ErrorKind returns KindTool.
func (e *PanicError) ErrorKind() agent.ErrorKind { return agent.KindTool }

// TimeoutError says that an attempt took longer than it may. It is also the cause that the attempt's ctx is cancelled
// with. errors.Is finds context.DeadlineExceeded in it.
type TimeoutError struct {
	// After is how long the attempt was allowed to take.
	After time.Duration
	// Abandoned says that the tool did not return in time even then, and may still be at work.
	Abandoned bool
	// Err is what the tool returned when its time was up; nil when it was abandoned.
	Err error
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("no answer within %v", e.After) + epilogue(e.Abandoned, e.Err)
}

// Timeout returns true, as net.Error wants it.
func (e *TimeoutError) Timeout() bool { return true }

// Is makes the error a context.DeadlineExceeded.
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// Unwrap returns what the tool returned.
func (e *TimeoutError) Unwrap() error { return e.Err }

// ErrorKind returns KindTimeout.
func (e *TimeoutError) ErrorKind() agent.ErrorKind { return agent.KindTimeout }

// CancelledError says that the run was cancelled while the tool ran, or while it waited to be run again.
type CancelledError struct {
	// Cause is why the run was cancelled.
	Cause error
	// Abandoned says that the tool did not return soon, and may still be at work.
	Abandoned bool
	// Err is what the tool returned; nil when it was abandoned.
	Err error
}

func (e *CancelledError) Error() string {
	return fmt.Sprintf("the run was cancelled (%v)", e.Cause) + epilogue(e.Abandoned, e.Err)
}

// Unwrap returns the cause and what the tool returned.
func (e *CancelledError) Unwrap() []error { return lo.Compact([]error{e.Cause, e.Err}) }

// epilogue returns what there is to say of a tool whose time was up, besides that it was.
func epilogue(abandoned bool, err error) string {
	switch {
	case abandoned:
		return "; it was given up and may still be at work"
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return ""
	}
	return fmt.Sprintf("; it said: %v", err)
}
