package hooks

import (
	"context"
	"sync/atomic"
	"time"
)

// lazyContext is the context of a hook that has no time limit of its own. It has
// DefaultTimeout as its deadline, and starts a clock only when the hook looks at
// it: most never do. Once the hook has returned, it is cancelled.
type lazyContext struct {
	context.Context // what the hook was called with

	clock atomic.Pointer[clock]
}

// clock is a context with the deadline running.
type clock struct {
	context.Context

	cancel context.CancelFunc
}

// stopped stands for the clock of a hook that has returned.
var stopped = func() *clock {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return &clock{ctx, cancel}
}()

func (c *lazyContext) running() *clock {
	if running := c.clock.Load(); running != nil {
		return running
	}
	ctx, cancel := context.WithTimeoutCause(c.Context, DefaultTimeout, ErrTimeout)
	if !c.clock.CompareAndSwap(nil, &clock{ctx, cancel}) {
		cancel()
	}
	return c.clock.Load()
}

// Deadline is the time by which the hook must have answered.
func (c *lazyContext) Deadline() (time.Time, bool) { return c.running().Deadline() }

// Done is closed at the deadline, or when the run is cancelled.
func (c *lazyContext) Done() <-chan struct{} { return c.running().Done() }

// Err says which of both it was.
func (c *lazyContext) Err() error { return c.running().Err() }

// AfterFunc lets contexts that are derived from this one do without a goroutine.
func (c *lazyContext) AfterFunc(f func()) (stop func() bool) {
	return context.AfterFunc(c.running().Context, f)
}

// end stops the clock. It reports whether the deadline had passed.
func (c *lazyContext) end() (late bool) {
	running := c.clock.Swap(stopped)
	if running == nil {
		return false
	}
	late = context.Cause(running.Context) == ErrTimeout //nolint:errorlint // this very limit, not one above
	running.cancel()
	return late
}
