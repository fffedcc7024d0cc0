package toolexec

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/errguard"
)

// attempt runs a tool's body once, and recovers a panic.
func (e *Executor) attempt(ctx context.Context, t *bound, body Body, c *Call) (out Output, err error) {
	if t.policy.Timeout > 0 {
		return e.callWithin(ctx, t, body, *c)
	}
	defer recoverPanic(ctx, t.name, &err)
	out, err = body.Run(ctx, *c)
	if err != nil {
		if err = errguard.Check(err); ctx.Err() != nil {
			err = attemptError(ctx, t, err)
		}
	}
	return out, err
}

// recoverPanic sets err to the error for a tool's panic, and logs the panic with its stack. Call it with defer.
func recoverPanic(ctx context.Context, tool string, err *error) {
	if v := recover(); v != nil {
		broken := &PanicError{Value: v, Stack: string(debug.Stack())}
		*err = broken
		slog.ErrorContext(ctx, "tool panicked", "tool", tool, "panic", broken.describe(), "stack", broken.Stack)
	}
}

// flight is an attempt on its own goroutine. The first of two events decides its outcome: the tool returns, or the
// executor abandons the attempt.
type flight struct {
	settled atomic.Bool
	landed  chan struct{}
	out     Output
	err     error
}

// errNoReturn is returned when a tool ends its goroutine, as runtime.Goexit does.
var errNoReturn = errors.New("the tool ended its goroutine without an answer")

// callWithin runs a body with a time limit.
func (e *Executor) callWithin(ctx context.Context, t *bound, body Body, c Call) (Output, error) {
	within, cancel := context.WithTimeoutCause(ctx, t.policy.Timeout, t.timedOut)
	defer cancel()
	f := &flight{landed: make(chan struct{}), err: errNoReturn}
	go func() {
		defer e.land(f)
		defer recoverPanic(ctx, t.name, &f.err)
		f.out, f.err = body.Run(within, c)
		f.err = errguard.Check(f.err)
	}()
	select {
	case <-f.landed:
	case <-within.Done():
		if !f.landsWithin(t.policy.Grace) && e.abandon(f) {
			return Output{}, attemptError(ctx, t, nil)
		}
		<-f.landed
	}
	if f.err != nil && within.Err() != nil {
		return Output{}, attemptError(ctx, t, f.err)
	}
	return f.out, f.err
}

// land records that the tool's goroutine has ended.
func (e *Executor) land(f *flight) {
	if f.settled.CompareAndSwap(false, true) {
		close(f.landed)
		return
	}
	e.abandoned.Add(-1)
}

// abandon abandons the attempt, unless it has just returned.
func (e *Executor) abandon(f *flight) bool {
	e.abandoned.Add(1)
	if f.settled.CompareAndSwap(false, true) {
		return true
	}
	e.abandoned.Add(-1)
	return false
}

func (f *flight) landsWithin(d time.Duration) bool {
	if d <= 0 {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-f.landed:
		return true
	case <-timer.C:
		return false
	}
}

// attemptError returns the error for an attempt whose ctx ended before the tool answered. Either the run's ctx is done,
// or the attempt's time is up. err is the tool's error; nil if the tool did not return.
func attemptError(ctx context.Context, t *bound, err error) error {
	if _, panicked := err.(*PanicError); panicked { //nolint:errorlint // created for this attempt and not wrapped
		return err
	}
	_, stops := stopIn(err)
	waits := false
	switch err.(type) { //nolint:errorlint // created for this attempt and not wrapped
	case *agent.ParkedError, *agent.InputError:
		waits = true
	}
	switch {
	case waits:
		return err
	case ctx.Err() != nil:
		return &CancelledError{Cause: context.Cause(ctx), Abandoned: err == nil, Err: err}
	case stops:
		return err
	}
	return &TimeoutError{After: t.policy.Timeout, Abandoned: err == nil, Err: err}
}
