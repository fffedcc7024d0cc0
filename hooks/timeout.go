package hooks

import (
	"context"
	"sync"
	"time"
)

// lazyContext is the context of a hook that has no time limit of its own. It has
// DefaultTimeout as its deadline, and starts a clock only when the hook looks at
// it: most never do.
type lazyContext struct {
	context.Context // what the hook was called with

	once   sync.Once
	armed  context.Context
	cancel context.CancelFunc
}

func (c *lazyContext) arm() context.Context {
	c.once.Do(func() {
		c.armed, c.cancel = context.WithTimeoutCause(c.Context, DefaultTimeout, ErrTimeout)
	})
	return c.armed
}

// Deadline is the time by which the hook must have answered.
func (c *lazyContext) Deadline() (time.Time, bool) { return c.arm().Deadline() }

// Done is closed at the deadline, or when the run is cancelled.
func (c *lazyContext) Done() <-chan struct{} { return c.arm().Done() }

// Err says which of both it was.
func (c *lazyContext) Err() error { return c.arm().Err() }

// AfterFunc lets contexts that are derived from this one do without a goroutine.
func (c *lazyContext) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(c.arm(), f) }

// end releases the clock. It reports whether the deadline had passed.
func (c *lazyContext) end() (late bool) {
	c.once.Do(func() {})
	if c.armed == nil {
		return false
	}
	late = context.Cause(c.armed) == ErrTimeout //nolint:errorlint // this very limit, not one above
	c.cancel()
	return late
}
