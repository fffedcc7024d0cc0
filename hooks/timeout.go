package hooks

import (
	"context"
	"sync/atomic"
	"time"
)

// lazyContext is the context of a hook without a time limit. Its deadline is
// DefaultTimeout, and its timer starts only when the hook uses the context, which most
// hooks never do.
type lazyContext struct {
	context.Context // the caller's context

	armed atomic.Pointer[armedContext]
}

// armedContext is a lazyContext's state with a running timer.
type armedContext struct {
	context.Context

	cancel context.CancelFunc
}

func (c *lazyContext) arm() *armedContext {
	if armed := c.armed.Load(); armed != nil {
		return armed
	}
	ctx, cancel := context.WithTimeoutCause(c.Context, DefaultTimeout, ErrTimeout)
	armed := &armedContext{ctx, cancel}
	if !c.armed.CompareAndSwap(nil, armed) {
		cancel() // another goroutine of the hook has armed it first
	}
	return c.armed.Load()
}

// Deadline returns the time by which the hook must have answered.
func (c *lazyContext) Deadline() (time.Time, bool) { return c.arm().Deadline() }

// Done returns a channel that is closed at the deadline, or when the run is cancelled.
func (c *lazyContext) Done() <-chan struct{} { return c.arm().Done() }

// Err returns the reason why Done is closed, or nil.
func (c *lazyContext) Err() error { return c.arm().Err() }

// Value returns a value from the context with which the hook was called. Package context uses it to find the timer
// context, if there is one.
func (c *lazyContext) Value(key any) any {
	if armed := c.armed.Load(); armed != nil {
		return armed.Value(key)
	}
	return c.Context.Value(key)
}

// end releases the timer. It reports whether the deadline had passed.
func (c *lazyContext) end() (late bool) {
	armed := c.armed.Load()
	if armed == nil {
		return false
	}
	late = context.Cause(armed) == ErrTimeout //nolint:errorlint // compares the value itself
	armed.cancel()
	return late
}
