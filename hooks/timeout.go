package hooks

import (
	"context"
	"sync/atomic"
	"time"
)

// lazyContext is the context of a hook that has no time limit of its own. It has
// DefaultTimeout as its deadline, and starts a clock only when the hook looks at
// it: most never do. One that was not looked at yet serves the next hook, too.
type lazyContext struct {
	context.Context // what the hook was called with

	armed atomic.Pointer[armedContext]
}

// armedContext is what a lazyContext becomes when it is looked at.
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
		cancel() // another goroutine of the hook was quicker
	}
	return c.armed.Load()
}

// Deadline returns the time by which the hook must have answered.
func (c *lazyContext) Deadline() (time.Time, bool) { return c.arm().Deadline() }

// Done returns a channel that is closed at the deadline, or when the run is cancelled.
func (c *lazyContext) Done() <-chan struct{} { return c.arm().Done() }

// Err says which of both it was.
func (c *lazyContext) Err() error { return c.arm().Err() }

// Value returns the value in what the hook was called with. Package context finds the
// clock in here, if there is one.
func (c *lazyContext) Value(key any) any {
	if armed := c.armed.Load(); armed != nil {
		return armed.Value(key)
	}
	return c.Context.Value(key)
}

// seen reports whether the hook has looked at it.
func (c *lazyContext) seen() bool { return c.armed.Load() != nil }

// end releases the clock. It reports whether the deadline had passed.
func (c *lazyContext) end() (late bool) {
	armed := c.armed.Load()
	if armed == nil {
		return false
	}
	late = context.Cause(armed) == ErrTimeout //nolint:errorlint // this very value
	armed.cancel()
	return late
}
