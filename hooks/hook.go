package hooks

import (
	"context"
	"slices"
	"time"
)

// DefaultTimeout is the time limit of a hook without WithTimeout.
const DefaultTimeout = 60 * time.Second

// Suggested priorities. Hooks with a higher priority are asked first. At points after something has happened (…End,
// Post…, …Failed) they are asked last, so that no other hook changes the result after a guard.
const (
	PriorityGuard          = 200
	PriorityInfrastructure = 100
	PriorityUser           = 0
	PriorityAfterwork      = -100
)

// A Hook is a func that is called at one or more points. It is an immutable value and serves any number of runs at the
// same time, so it must not hold one run's data. Create hooks with On, Observe and ObserveAll.
type Hook struct {
	name     string
	points   []PointName
	fn       any // func(context.Context, C) Result, or observer func(context.Context, C) error
	control  bool
	priority int
	timeout  time.Duration
	policy   FailurePolicy
	detached bool
	shadow   bool
	waives   bool
	origin   *Origin
	matchers []Matcher
	implied  []Matcher // for Gaps only
}

// On returns a control. It is asked at its point when all matchers match, and its answer has an effect. A control's
// failure counts as a denial, unless WithFailure sets another policy.
func On[C Context](at Point[C], name string, f func(ctx context.Context, c C) Result, matching ...Matcher) Hook {
	h := Hook{name: name, points: []PointName{at.name}, control: true, matchers: slices.Clone(matching)}
	if f != nil {
		h.fn = f
	}
	return h
}

// Observe returns an observer. It receives the controls' decision and cannot change it. An observer's failure changes
// nothing, unless WithFailure sets another policy.
func Observe[C Context](at Point[C], name string, f func(ctx context.Context, c C) error, matching ...Matcher) Hook {
	h := Hook{name: name, points: []PointName{at.name}, matchers: slices.Clone(matching)}
	if f != nil {
		h.fn = f
	}
	return h
}

// ObserveAll returns an observer at the given points, or at all points if none is given.
func ObserveAll(name string, f func(ctx context.Context, c Context) error, points ...PointName) Hook {
	h := Hook{name: name, points: slices.Clone(points)}
	if len(points) == 0 {
		h.points = PointNames()
	}
	if f != nil {
		h.fn = f
	}
	return h
}

// Name returns the hook's name. Within an agent, names are unique.
func (h Hook) Name() string { return h.name }

// Points returns the hook's points.
func (h Hook) Points() []PointName { return slices.Clone(h.points) }

// Control reports whether the hook is a control. Otherwise it is an observer.
func (h Hook) Control() bool { return h.control }

// IsDetached reports whether the run does not wait for the hook.
func (h Hook) IsDetached() bool { return h.detached }

// Priority returns the hook's priority.
func (h Hook) Priority() int { return h.priority }

// WithPriority returns the hook with a priority. Zero is the default. Hooks with equal priority keep the order in which
// they were given.
func (h Hook) WithPriority(priority int) Hook { h.priority = priority; return h }

// WithTimeout returns the hook with a time limit. A hook without a time limit has DefaultTimeout as its context's
// deadline, and must honor it. A hook with a time limit runs on a separate goroutine and is abandoned when it does not
// return in time. This costs about a microsecond for each call.
func (h Hook) WithTimeout(limit time.Duration) Hook { h.timeout = limit; return h }

// WithFailure returns the hook with a failure policy.
func (h Hook) WithFailure(policy FailurePolicy) Hook { h.policy = policy; return h }

// Detach returns the observer as a detached hook. The run does not wait for it, and its context outlives the run. Its
// errors are only reported to the agent's observer. Agent.Drain waits for detached hooks, Agent.Cancel cancels them.
func (h Hook) Detach() Hook { h.detached = true; return h }

// InShadow returns the control in shadow. It is asked but has no effect. Its decision, or its failure, appears only in
// its events. Use it to try out a rule before enforcing it.
func (h Hook) InShadow() Hook { h.shadow = true; return h }

// WithWaivers returns the control as one that approves what waivers cover. The questions of the agent's other hooks are then marked as
// Waivable, so that people are offered waivers.
func (h Hook) WithWaivers() Hook { h.waives = true; return h }

// IsShadow reports whether the hook is in shadow: asked, but without effect.
func (h Hook) IsShadow() bool { return h.shadow }

// Implying returns the hook with additional matchers for Gaps. They must match for the hook to do something, as far as
// that is known before the call, for example from a condition. They do not choose when the hook is called.
func (h Hook) Implying(matchers ...Matcher) Hook {
	h.implied = append(slices.Clip(h.implied), matchers...)
	return h
}

// From returns the hook with the policy rule that it implements. Nil means none. The origin is shared and must not be
// modified.
func (h Hook) From(o *Origin) Hook { h.origin = o; return h }

// Origin returns the policy rule that the hook implements, or nil.
func (h Hook) Origin() *Origin { return h.origin }

// Matchers returns the matchers. The hook is called when all of them match.
func (h Hook) Matchers() []Matcher { return slices.Clone(h.matchers) }

// Matching returns the hook with additional matchers.
func (h Hook) Matching(matchers ...Matcher) Hook {
	h.matchers = append(slices.Clip(h.matchers), matchers...)
	return h
}
