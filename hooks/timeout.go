package hooks

import (
	"context"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/grapnel-go/grapnel/agent"
)

// lazyContext is the context of a hook that has no time limit of its own. It has
// DefaultTimeout as its deadline, and starts a clock only when the hook looks at
// it: most never do. One that nobody has looked at yet serves the next hook, too.
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

// Deadline is the time by which the hook must have answered.
func (c *lazyContext) Deadline() (time.Time, bool) { return c.arm().Deadline() }

// Done is closed at the deadline, or when the run is cancelled.
func (c *lazyContext) Done() <-chan struct{} { return c.arm().Done() }

// Err says which of both it was.
func (c *lazyContext) Err() error { return c.arm().Err() }

// Value is the value in what the hook was called with. Package context finds the
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

// unseen holds the contexts of a run that no hook has looked at yet: one for each
// of the first calls of a step, whose hooks may be called at once.
type unseen [4]atomic.Pointer[lazyContext]

var unseenContexts = agent.NewScratch[unseen](nil)

// contextOf is a context for a hook about the call of that index; any index will do
// at points where hooks are called one after the other.
func contextOf(ctx context.Context, s agent.State, index int) *lazyContext {
	if uint(index) >= uint(len(unseen{})) {
		return &lazyContext{Context: ctx}
	}
	place := &unseenContexts.Of(s)[index]
	if c := place.Load(); c != nil && c.armed.Load() == nil && identical(c.Context, ctx) {
		return c
	}
	c := &lazyContext{Context: ctx}
	place.Store(c)
	return c
}

// identical reports whether two contexts are the same value in the same place. It
// does what == does for pointers, and does not panic for what cannot be compared.
func identical(a, b context.Context) bool {
	type words [2]unsafe.Pointer // of an interface value: type and data
	v, w := (*words)(unsafe.Pointer(&a)), (*words)(unsafe.Pointer(&b))
	return v[0] == w[0] && v[1] == w[1]
}
