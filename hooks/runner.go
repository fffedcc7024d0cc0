package hooks

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// entry is a hook at one point, ready to be called.
type entry[C Context] struct {
	name     string
	info     *pointInfo
	ask      func(ctx context.Context, c C) Result // controls
	tell     func(ctx context.Context, c C) error  // observers
	match    *Matcher                              // nil: everything that gets here
	timeout  time.Duration                         // zero: DefaultTimeout, trusted
	policy   FailurePolicy
	detached bool
}

// verdict is what came of calling a hook.
type verdict struct {
	outcome *Outcome // nil: pass
	skipped bool     // the matchers said no
	err     error    // the hook failed
}

// consult asks a control. The outcome is nil when the hook passed; a failure is
// turned into an outcome by the hook's policy. The error is the run's: the hook's
// policy aborts, or the run was cancelled while the hook was asked.
func (e *entry[C]) consult(ctx context.Context, c C) (*Outcome, error) {
	observed := c.shared().state.Observed()
	if !observed {
		v := e.call(ctx, c)
		if v.err == nil {
			return v.outcome, nil
		}
		return e.failed(ctx, c, v.err, 1)
	}
	v, took := e.witnessed(ctx, c, 1)
	if v.err != nil {
		return e.failed(ctx, c, v.err, 1)
	}
	if !v.skipped {
		e.report(ctx, c, v.outcome, took, 1)
	}
	return v.outcome, nil
}

// witnessed is call with a start event and a clock.
func (e *entry[C]) witnessed(ctx context.Context, c C, attempt int) (verdict, time.Duration) {
	start := e.event(c, HookStart)
	start.Attempt = attempt
	if e.match != nil && !e.matchesSafely(c) {
		return verdict{skipped: true}, 0
	}
	c.shared().state.Emit(ctx, start)
	began := time.Now()
	v := e.call(ctx, c)
	return v, time.Since(began)
}

// matchesSafely is for events only: a matcher that panics is met again, and dealt
// with, in call.
func (e *entry[C]) matchesSafely(c C) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = true
		}
	}()
	return e.match.matches(c)
}

func (e *entry[C]) event(c C, kind EventKind) Event {
	b := c.shared()
	ev := Event{
		Kind: kind, Run: b.state.Run(), Step: b.step, Hook: e.name, Point: e.info.name,
		Control: e.ask != nil, Detached: e.detached, Attempt: 1,
	}
	if b.call != nil {
		ev.Call = *b.call
	}
	return ev
}

// report tells of a hook that answered.
func (e *entry[C]) report(ctx context.Context, c C, o *Outcome, took time.Duration, attempt int) {
	ev := e.event(c, HookComplete)
	ev.Duration, ev.Decision, ev.Reason, ev.Attempt = took, o.Decision(), o.Reason(), attempt
	switch ev.Decision {
	case Deny, StopRun, Withhold:
		ev.Kind = HookBlocked
	case Rewrite:
		ev.After = o.Arguments()
		ev.Before = ev.Call.Arguments
	}
	c.shared().state.Emit(ctx, ev)
}

// call calls the hook once. It always returns, unless the hook neither honours
// its context nor has a time limit of its own.
func (e *entry[C]) call(ctx context.Context, c C) verdict {
	switch {
	case e.detached:
		return e.callDetached(ctx, c)
	case e.timeout > 0:
		return e.callApart(ctx, c)
	}
	lazy := c.shared().lazy(ctx)
	v := e.protected(lazy, c)
	if lazy.end() && ctx.Err() == nil {
		return verdict{err: ErrTimeout}
	}
	return v
}

// callApart calls the hook on a goroutine of its own and does not wait longer
// than the limit.
func (e *entry[C]) callApart(ctx context.Context, c C) verdict {
	limited, cancel := context.WithTimeoutCause(ctx, e.timeout, ErrTimeout)
	defer cancel()
	answer := make(chan verdict, 1)
	go func() { answer <- e.protected(limited, c) }()
	select {
	case v := <-answer:
		if context.Cause(limited) == ErrTimeout { //nolint:errorlint // this very limit, not one above
			return verdict{err: fmt.Errorf("%w: %s", ErrTimeout, e.timeout)}
		}
		return v
	case <-limited.Done():
		if ctx.Err() != nil {
			return verdict{err: ctx.Err()}
		}
		return verdict{err: fmt.Errorf("%w: %s", ErrTimeout, e.timeout)}
	}
}

// protected calls matcher and hook and turns a panic into a failure. This is the
// one place where panics of hooks are caught.
func (e *entry[C]) protected(ctx context.Context, c C) (v verdict) {
	finished := false
	defer func() {
		if finished {
			return
		}
		v = verdict{err: &PanicError{Value: recover(), Stack: debug.Stack()}}
	}()
	if e.match != nil && !e.match.matches(c) {
		finished = true
		return verdict{skipped: true}
	}
	if e.ask == nil {
		v.err = e.tell(ctx, c)
	} else {
		v.outcome, v.err = e.ask(ctx, c).Get()
	}
	finished = true
	if o := v.outcome; o != nil && v.err == nil {
		switch {
		case o.point != e.info.name:
			return verdict{err: fmt.Errorf("the answer was made for %s and cannot be given at %s", o.point, e.info.name)}
		case o.invalid != nil:
			return verdict{err: o.invalid}
		case o.hook == "" && o != allowed[e.info.name]:
			named := *o
			named.hook = e.name
			named.effects = o.effects.From(e.name)
			v.outcome = &named
		}
	}
	return v
}

// failed follows the policy of a hook that failed.
func (e *entry[C]) failed(ctx context.Context, c C, err error, attempt int) (*Outcome, error) {
	for e.policy.tries >= attempt && ctx.Err() == nil {
		e.tellFailure(ctx, c, err, attempt, "retry")
		if !pause(ctx, e.policy.delay) {
			break
		}
		attempt++
		v, took := e.witnessed(ctx, c, attempt)
		if v.err == nil {
			if !v.skipped {
				e.report(ctx, c, v.outcome, took, attempt)
			}
			return v.outcome, nil
		}
		err = v.err
	}
	if ctx.Err() != nil {
		// The run was cancelled: that is no failure of the hook, and no permission.
		e.tellCancelled(ctx, c, err, attempt)
		return nil, context.Cause(ctx)
	}
	kind := e.policy.kind
	if kind == failDefault {
		kind = failClosed
		if e.ask == nil {
			kind = failOpen
		}
	}
	failure := &HookError{Hook: e.name, Point: e.info.name, Err: err}
	switch kind {
	case failAbort:
		e.tellFailure(ctx, c, err, attempt, "abort")
		return nil, failure
	case failOpen:
		e.tellFailure(ctx, c, err, attempt, "open")
		return nil, nil
	}
	e.tellFailure(ctx, c, err, attempt, "closed")
	if e.info.closed == Pass || !e.info.decides {
		return nil, nil
	}
	return &Outcome{
		decision: e.info.closed, point: e.info.name, hook: e.name, failed: true,
		reason: fmt.Sprintf("the hook could not decide: %v", err),
	}, nil
}

func (e *entry[C]) tellFailure(ctx context.Context, c C, err error, attempt int, policy string) {
	if !c.shared().state.Observed() {
		return
	}
	kind := HookFailed
	if errors.Is(err, ErrTimeout) {
		kind = HookTimeout
	}
	ev := e.event(c, kind)
	ev.Err, ev.Policy, ev.Attempt = err, policy, attempt
	c.shared().state.Emit(ctx, ev)
}

// pause waits, and reports whether it was let to.
func pause(ctx context.Context, delay time.Duration) bool {
	if delay <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (e *entry[C]) tellCancelled(ctx context.Context, c C, err error, attempt int) {
	if c.shared().state.Observed() {
		ev := e.event(c, HookSkipped)
		ev.Err, ev.Attempt, ev.Reason = err, attempt, "cancelled before it answered"
		c.shared().state.Emit(ctx, ev)
	}
}

// moment is the hooks of one point, in the order in which they are called.
type moment[C Context] struct {
	controls  []*entry[C]
	observers []*entry[C]
	detached  []*entry[C]
}

func (m *moment[C]) empty() bool {
	return m == nil || len(m.controls)+len(m.observers)+len(m.detached) == 0
}

// announce tells the observers, then starts the detached ones: all of them,
// whatever becomes of one. Only an observer whose policy aborts, or a cancelled
// run, gives an error.
func (m *moment[C]) announce(ctx context.Context, pool *pool, c C) error {
	var broken error
	for _, e := range m.observers {
		if _, err := e.consult(ctx, c); err != nil && broken == nil {
			broken = err
		}
	}
	for _, e := range m.detached {
		pool.start(ctx, e.name, c.shared(), func(ctx context.Context) {
			_, _ = e.consult(ctx, c) // its errors are told to the observer of the run
		})
	}
	return broken
}
