package hooks

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/errguard"
)

// entry is a hook at one point, ready to be called.
type entry[C Context] struct {
	name     string
	info     *pointInfo
	order    int                                   // position among the hooks at the point, from one
	ask      func(ctx context.Context, c C) Result // for a control
	tell     func(ctx context.Context, c C) error  // for an observer
	match    *Matcher                              // nil: matches everything
	timeout  time.Duration                         // zero: DefaultTimeout, which the hook itself must honor
	policy   FailurePolicy
	detached bool
	shadow   bool // asked, but without effect
	origin   *Origin
	priority int
	waivable bool // Question.Waivable of its questions
}

// verdict is the result of calling a hook.
type verdict struct {
	outcome *Outcome // nil: pass
	err     error    // the hook failed
	took    time.Duration
}

// consult calls a control or an observer. The outcome is nil when the hook passed or the matchers did not match. The
// hook's policy converts a failure to an outcome. An error ends the run: the hook's policy is Abort, or the run was
// cancelled during the call.
func (e *entry[C]) consult(ctx context.Context, c C) (*Outcome, error) {
	return e.conclude(ctx, c, e.attempt(ctx, c, 1))
}

// conclude handles the first attempt's verdict.
func (e *entry[C]) conclude(ctx context.Context, c C, v verdict) (*Outcome, error) {
	if v.err != nil {
		return e.applyFailurePolicy(ctx, c, v, 1)
	}
	return e.effectiveOutcome(v.outcome), nil
}

// effectiveOutcome returns the outcome that takes effect. It is nil for a hook in shadow.
func (e *entry[C]) effectiveOutcome(o *Outcome) *Outcome {
	if e.shadow {
		return nil
	}
	return o
}

// attempt calls the hook if the matchers match, and emits its events. It creates no events in a run without an
// observer.
func (e *entry[C]) attempt(ctx context.Context, c C, attempt int) verdict {
	var v verdict
	if e.match != nil {
		matched, err := e.matches(c)
		if err == nil && !matched {
			return v
		}
		v.err = err
	}
	observed := c.State().Observed()
	var began time.Time
	if observed {
		e.tellStart(ctx, c, attempt)
		began = time.Now()
	}
	if v.err == nil {
		v = e.callOnce(ctx, c)
	}
	v = e.acceptAnswer(ctx, &c, v)
	if observed {
		if v.took = time.Since(began); v.err == nil {
			e.tellAnswer(ctx, c, v, attempt)
		}
	}
	return v
}

// byName returns the matchers' judgement about a tool's name.
func (e *entry[C]) byName(tool string) truth {
	if e.match == nil {
		return yes
	}
	return e.match.byName(tool)
}

// matches evaluates the matchers. A panic in a matcher is a hook failure.
func (e *entry[C]) matches(c C) (ok bool, err error) {
	returned := false
	defer func() {
		if !returned {
			ok, err = false, panicError(recover())
		}
	}()
	o := matchInput{state: c.State(), point: e.info, kind: c.stepKind(), call: c.toolCall()}
	if e.match.needsContext {
		o.context = c
	}
	ok = matchesMoment(e.match, o)
	returned = true
	return ok, nil
}

// callOnce calls the hook once. It always returns, unless the hook ignores its context
// and has no time limit.
func (e *entry[C]) callOnce(ctx context.Context, c C) verdict {
	switch {
	case e.detached:
		return e.callDetached(ctx, c)
	case e.timeout > 0:
		return e.callApart(ctx, c)
	}
	limited := &lazyContext{Context: ctx}
	v := e.callSafely(limited, &c)
	if limited.end() {
		return verdict{err: fmt.Errorf("%w: %s", ErrTimeout, DefaultTimeout)}
	}
	return v
}

// callApart calls the hook on a separate goroutine and does not wait longer than the hook's time limit.
func (e *entry[C]) callApart(ctx context.Context, c C) verdict {
	limited, cancel := context.WithTimeoutCause(ctx, e.timeout, ErrTimeout)
	defer cancel()
	answer := e.onItsOwn(limited, c)
	select {
	case v := <-answer:
		switch {
		case limited.Err() == nil:
			return v
		case ctx.Err() != nil: // a denial counts; an approval may have come too late
			if v.err == nil && v.outcome != nil && !v.outcome.plain() {
				return v
			}
			return verdict{err: ctx.Err()}
		}
	case <-limited.Done():
		if ctx.Err() != nil {
			return verdict{err: ctx.Err()}
		}
	}
	return verdict{err: fmt.Errorf("%w: %s", ErrTimeout, e.timeout)}
}

// onItsOwn calls the hook on a separate goroutine, and sends its verdict even if the
// hook exits the goroutine.
func (e *entry[C]) onItsOwn(ctx context.Context, c C) <-chan verdict {
	answer := make(chan verdict, 1)
	go func() {
		v := verdict{err: errors.New("the hook ended its goroutine")}
		defer func() { answer <- v }()
		v = e.callSafely(ctx, &c)
	}()
	return answer
}

// callSafely calls the hook and converts a panic to a failure. Hooks' panics are recovered only here and in matches.
func (e *entry[C]) callSafely(ctx context.Context, c *C) (v verdict) {
	returned := false
	defer func() {
		if !returned {
			v = verdict{err: panicError(recover())}
		}
	}()
	if e.ask == nil {
		v.err = e.tell(ctx, *c)
	} else {
		result := e.ask(ctx, *c)
		if v.outcome, v.err = result.Get(); v.err == nil && result.IsError() {
			v.err = errNoReason
		}
	}
	returned = true
	return v
}

func panicError(value any) error { return &PanicError{Value: value, Stack: debug.Stack()} }

// acceptAnswer checks an answer and sets the hook's name in it.
func (e *entry[C]) acceptAnswer(ctx context.Context, c *C, v verdict) verdict {
	o := v.outcome
	switch {
	case v.err != nil, o == nil:
		return v
	case o.point == "":
		v.err = errors.New("the answer was not made by a method of the hook's context")
	case o.point != e.info.name:
		v.err = fmt.Errorf("the answer was made for %s and cannot be given at %s", o.point, e.info.name)
	case o.invalid != nil:
		v.err = o.invalid
	case !o.plain():
		if o, v.err = (*c).vet(ctx, o); v.err == nil {
			named := *o
			named.hook, named.failed, named.effects = e.name, false, o.effects.From(e.name)
			if named.decision == Ask {
				named.question = e.questionOf(o)
			}
			v.outcome = &named
		}
	}
	return v
}

// questionOf returns the question of a hook that asks, with the hook's name and rank.
func (e *entry[C]) questionOf(o *Outcome) *agent.Question {
	q := agent.Question{Reason: o.reason}
	if o.question != nil {
		q.Within, q.OnTimeout = o.question.Within, o.question.OnTimeout
		q.Kind, q.Gate, q.Approvers, q.Quorum = o.question.Kind, o.question.Gate, o.question.Approvers, o.question.Quorum
	}
	q.By, q.Priority, q.Waivable = e.name, e.priority, e.waivable
	if e.origin != nil {
		q.Rule, q.Required, q.Layer = e.origin.Rule, e.origin.Required, e.origin.Layer
	}
	return &q
}

// applyFailurePolicy applies a failed hook's policy.
func (e *entry[C]) applyFailurePolicy(ctx context.Context, c C, v verdict, attempt int) (*Outcome, error) {
	v.err = errguard.Check(v.err)
	broken, isBroken := errors.AsType[*executorError](v.err) // not a failure of this hook: a retry does not help
	for !isBroken && e.policy.tries >= attempt && ctx.Err() == nil {
		e.tellFailure(ctx, c, v, attempt, "retry")
		if !pauseFor(ctx, e.policy.delay) {
			break
		}
		attempt++
		if v = e.attempt(ctx, c, attempt); v.err == nil {
			return e.effectiveOutcome(v.outcome), nil
		}
		broken, isBroken = errors.AsType[*executorError](v.err)
	}
	if isBroken && !e.shadow {
		return nil, broken.err
	}
	if ctx.Err() != nil {
		// The run was cancelled. This is neither a hook failure nor a permission.
		e.tellCancelled(ctx, c, v, attempt)
		return nil, context.Cause(ctx)
	}
	policy := e.onFailure()
	if e.shadow {
		e.tellFailure(ctx, c, v, attempt, failOpen.String())
		return nil, nil
	}
	if _, wrong := errors.AsType[*rewriteError](v.err); wrong && policy == failOpen {
		policy = failClosed // the hook did not allow the original call
	}
	e.tellFailure(ctx, c, v, attempt, policy.String())
	switch {
	case policy == failAbort:
		return nil, &HookError{Hook: e.name, Point: e.info.name, Err: v.err}
	case policy == failOpen, e.ask == nil, e.info.closed == Pass:
		return nil, nil
	}
	return &Outcome{
		decision: e.info.closed, point: e.info.name, hook: e.name, failed: true,
		reason: fmt.Sprintf("the hook could not decide: %v", v.err),
	}, nil
}

// onFailure returns the policy that applies after the last failed attempt.
func (e *entry[C]) onFailure() failureKind {
	switch {
	case e.policy.kind != failDefault:
		return e.policy.kind
	case e.ask == nil:
		return failOpen
	}
	return failClosed
}

// pauseFor waits, and reports whether the delay passed before ctx was done.
func pauseFor(ctx context.Context, delay time.Duration) bool {
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

// pointHooks holds one point's hooks, in the order in which they are called.
type pointHooks[C Context] struct {
	controls  []*entry[C]
	observers []*entry[C]
	detached  []*entry[C]
}

func (m *pointHooks[C]) empty() bool {
	return m == nil || len(m.controls)+len(m.observers)+len(m.detached) == 0
}

// hasObservers reports whether announce has anything to do.
func (m *pointHooks[C]) hasObservers() bool { return len(m.observers)+len(m.detached) > 0 }

// announce calls the observers, then starts the detached hooks. It calls all of them
// even if one fails. It returns an error only if an observer with the policy Abort
// fails or the run was cancelled.
func (m *pointHooks[C]) announce(ctx context.Context, pool *Pool, c C) error {
	var broken error
	for _, e := range m.observers {
		if _, err := e.consult(ctx, c); err != nil && broken == nil {
			broken = err
		}
	}
	for _, e := range m.detached {
		if e.match != nil {
			if matched, err := e.matches(c); err == nil && !matched {
				continue
			}
		}
		pool.start(ctx, e.name, e.info.name, c.State(), func(ctx context.Context) {
			_, _ = e.consult(ctx, c) // its errors are reported to the run's observer
		})
	}
	return broken
}
