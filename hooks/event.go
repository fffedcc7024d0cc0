package hooks

import (
	"context"
	"errors"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// EventKind says what happened to a hook.
type EventKind string

// The kinds of hook events. A hook that is called gives HookStart and then one of
// HookComplete, HookBlocked, HookFailed, HookTimeout and HookSkipped. One whose
// matchers say no gives none.
const (
	HookStart    EventKind = "hook.start"
	HookComplete EventKind = "hook.complete"
	// HookBlocked: the hook denied, stopped or withheld. One in shadow never does.
	HookBlocked EventKind = "hook.blocked"
	// HookFailed: the hook could not decide; Policy says what was done about it.
	HookFailed EventKind = "hook.failed"
	// HookTimeout is HookFailed for a hook that took longer than it may.
	HookTimeout EventKind = "hook.timeout"
	// HookSkipped: the hook was not called, or its answer not used.
	HookSkipped EventKind = "hook.skipped"
	// HookConflict: two hooks set the same metadata, and the later one wins; or a hook
	// rewrote or mocked a call that has begun, and its answer is ignored.
	HookConflict EventKind = "hook.conflict"
)

// Event tells an agent.Observer what a hook did. It holds nothing of a result that
// a hook replaced or withheld.
type Event struct {
	Kind  EventKind
	Run   agent.Run
	Step  int
	Hook  string
	Point PointName
	// Order is the hook's place among those at its point, in calling order, from
	// one. It is zero where no hook was called.
	Order int
	// Call is the effective call at tool points; its ID is empty elsewhere.
	Call agent.ToolCall
	// Detached is set for hooks that are not waited for.
	Detached bool
	// Control tells a control from an observer.
	Control bool
	// Shadow is set for a control that is asked and not obeyed: Decision is what it would
	// have decided.
	Shadow bool
	// Origin is the rule of a file that the hook stands for, with the type and the target of its action; nil for others.
	Origin *Origin
	// Attempt counts the calls of the hook for one occasion from 1.
	Attempt int
	// Duration is how long this attempt took. It is zero in HookStart.
	Duration time.Duration
	Decision Decision
	Reason   string
	// Outcome is the hook's answer; nil when it passed, failed, or has not answered
	// yet. That of a mock is without its result, which no hook has let out.
	Outcome *Outcome
	// Err is what a failed hook failed with, and Policy what was done about it:
	// closed, open, abort, or retry.
	Err    error
	Policy string
	// At is when it happened, where it is told later: at the points where filters apply, what
	// hooks said is told when all of them were asked. Zero means now.
	At time.Time
	// Before and After are what a rewrite changed: the arguments of a call, the parameters of a run at RunStart, the
	// instruction of a sub-agent.
	Before, After string
}

// EventName returns the kind.
func (e Event) EventName() string { return string(e.Kind) }

// event returns what all events of a hook have in common.
func (e *entry[C]) event(c C, kind EventKind, attempt int) Event {
	s := c.State()
	ev := Event{
		Kind: kind, Run: s.Run(), Step: c.StepIndex(), Hook: e.name, Point: e.info.name, Order: e.order,
		Control: e.ask != nil, Detached: e.detached, Shadow: e.shadow, Origin: e.origin, Attempt: attempt,
	}
	if call := c.toolCall(); call != nil {
		ev.Call = *call
	}
	return ev
}

func (e *entry[C]) tellStart(ctx context.Context, c C, attempt int) {
	c.Tell(ctx, e.event(c, HookStart, attempt))
}

// forObservers returns the outcome as observers are told of it. The result of a mock has yet to pass
// the hooks after the call.
func (o *Outcome) forObservers() *Outcome {
	if o == nil || o.mock == nil {
		return o
	}
	out := *o
	out.mock = nil
	return &out
}

// tellAnswer tells of a hook that answered.
func (e *entry[C]) tellAnswer(ctx context.Context, c C, v verdict, attempt int) {
	ev := e.event(c, HookComplete, attempt)
	ev.Duration, ev.Outcome, ev.Decision, ev.Reason = v.took, v.outcome.forObservers(), v.outcome.Decision(), v.outcome.Reason()
	switch ev.Decision {
	case Deny, StopRun, Withhold:
		if !e.shadow {
			ev.Kind = HookBlocked
		}
	case Rewrite:
		ev.Before, ev.After = beforeRewrite(c, ev.Call), v.outcome.Arguments()
	case Approve:
		if asked, ok := any(c).(InterventionContext); ok && !e.shadow {
			e.tellApproval(ctx, asked, ev)
			return
		}
	}
	c.Tell(ctx, ev)
}

// beforeRewrite returns what a rewrite at the point of c puts something else in the place of.
func beforeRewrite(c Context, call agent.ToolCall) string {
	switch c := c.(type) {
	case RunStartContext:
		return string(c.about.Parameters)
	case PreSubagentContext:
		return c.about.Instruction
	}
	return call.Arguments
}

// tellFailure tells of a hook that could not decide.
func (e *entry[C]) tellFailure(ctx context.Context, c C, v verdict, attempt int, policy string) {
	if !c.State().Observed() {
		return
	}
	kind := HookFailed
	if errors.Is(v.err, ErrTimeout) {
		kind = HookTimeout
	}
	ev := e.event(c, kind, attempt)
	ev.Duration, ev.Err, ev.Policy = v.took, v.err, policy
	c.Tell(ctx, ev)
}

// tellCancelled tells of a hook that did not get to answer.
func (e *entry[C]) tellCancelled(ctx context.Context, c C, v verdict, attempt int) {
	if !c.State().Observed() {
		return
	}
	ev := e.event(c, HookSkipped, attempt)
	ev.Duration, ev.Err, ev.Reason = v.took, v.err, "cancelled before it answered"
	c.Tell(ctx, ev)
}
