package hooks

import (
	"context"
	"slices"
	"time"
)

// DefaultTimeout is how long a hook may take that was not told otherwise.
const DefaultTimeout = 60 * time.Second

// Suggested priorities. Hooks of higher priority are asked first; at the points
// after something happened (…End, Post…, …Failed) they are asked last, so that a
// guard has the last word.
const (
	PriorityGuard          = 200
	PriorityInfrastructure = 100
	PriorityUser           = 0
	PriorityAfterwork      = -100
)

// Hook is a func tied to one or more points. It is an immutable value and serves
// any number of runs at once: what belongs to one run does not go into it. Make
// hooks with On, Observe and ObserveAll.
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
	origin   *Origin
	matchers []Matcher
}

// On returns a control: it is asked at its point, in turn, and its answer counts. It
// is called for what all the matchers match. A control that fails is taken for a
// no, unless WithFailure says otherwise.
func On[C Context](at Point[C], name string, f func(ctx context.Context, c C) Result, matching ...Matcher) Hook {
	h := Hook{name: name, points: []PointName{at.name}, control: true, matchers: slices.Clone(matching)}
	if f != nil {
		h.fn = f
	}
	return h
}

// Observe returns an observer: it is told what the controls decided and cannot change
// it. An observer that fails changes nothing, unless WithFailure says otherwise.
func Observe[C Context](at Point[C], name string, f func(ctx context.Context, c C) error, matching ...Matcher) Hook {
	h := Hook{name: name, points: []PointName{at.name}, matchers: slices.Clone(matching)}
	if f != nil {
		h.fn = f
	}
	return h
}

// ObserveAll returns an observer at several points; without any, at all of them.
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

// Points returns where the hook is asked or told.
func (h Hook) Points() []PointName { return slices.Clone(h.points) }

// Control reports whether the hook's answer counts.
func (h Hook) Control() bool { return h.control }

// IsDetached reports whether the run does not wait for the hook.
func (h Hook) IsDetached() bool { return h.detached }

// Priority returns the hook's priority.
func (h Hook) Priority() int { return h.priority }

// WithPriority returns the hook with a priority. Zero is the default; equals keep
// the order in which they were given.
func (h Hook) WithPriority(priority int) Hook { h.priority = priority; return h }

// WithTimeout returns the hook with a time limit. A hook without one has
// DefaultTimeout as the deadline of its context, and is trusted to honour it. A
// hook with one runs on a goroutine of its own and is left behind when it does not
// come back in time; that costs about a microsecond a call.
func (h Hook) WithTimeout(limit time.Duration) Hook { h.timeout = limit; return h }

// WithFailure returns the hook with a failure policy.
func (h Hook) WithFailure(policy FailurePolicy) Hook { h.policy = policy; return h }

// Detach returns the observer as one that is started and not waited for, with
// a context that outlives the run. Its errors are only told to the agent's
// observer. Agent.Drain waits for detached hooks, Agent.Cancel ends them.
func (h Hook) Detach() Hook { h.detached = true; return h }

// InShadow returns the control as one that is asked and changes nothing: what it would
// have decided is told in its events alone, and so is a failure. A rule is watched in
// shadow before it is put in force.
func (h Hook) InShadow() Hook { h.shadow = true; return h }

// IsShadow reports whether the hook is asked and not obeyed.
func (h Hook) IsShadow() bool { return h.shadow }

// From returns the hook with the rule of a file that it stands for; nil for none. The
// origin is shared and must not be written.
func (h Hook) From(o *Origin) Hook { h.origin = o; return h }

// Origin returns the rule that the hook stands for, or nil for a hook that is a func and
// nothing else.
func (h Hook) Origin() *Origin { return h.origin }

// Matchers returns what must match for the hook to be called: all of them.
func (h Hook) Matchers() []Matcher { return slices.Clone(h.matchers) }

// Matching returns the hook with more matchers: all of them must match.
func (h Hook) Matching(matchers ...Matcher) Hook {
	h.matchers = append(slices.Clip(h.matchers), matchers...)
	return h
}
