package hooks

import (
	"context"
	"errors"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// EventKind is the kind of a hook event.
type EventKind string

// The kinds of hook events. Each call to a hook emits HookStart and then one of HookComplete, HookBlocked, HookFailed,
// HookTimeout and HookSkipped. A hook whose matchers do not match emits no event.
const (
	HookStart    EventKind = "hook.start"
	HookComplete EventKind = "hook.complete"
	// HookBlocked: the hook denied, stopped or withheld. It is never sent for a hook in shadow.
	HookBlocked EventKind = "hook.blocked"
	// HookFailed: the hook could not decide. Policy says how the failure was handled.
	HookFailed EventKind = "hook.failed"
	// HookTimeout is HookFailed for a hook that exceeded its time limit.
	HookTimeout EventKind = "hook.timeout"
	// HookSkipped: the hook was not called, or its answer was not used.
	HookSkipped EventKind = "hook.skipped"
	// HookConflict: two hooks set the same metadata, and the later one wins. Or a hook rewrote or mocked a begun call,
	// and its answer is ignored.
	HookConflict EventKind = "hook.conflict"
)

// An Event reports one hook's call or answer. It does not contain any part of a result that a hook replaced or
// withheld.
type Event struct {
	Kind  EventKind
	Run   agent.Run
	Step  int
	Hook  string
	Point PointName
	// Order is the hook's position among the hooks at its point, in calling order, from one. It is zero if no hook
	// was called.
	Order int
	// Call is the effective call at tool points. Its ID is empty elsewhere.
	Call agent.ToolCall
	// Detached is set for hooks for which the run does not wait.
	Detached bool
	// Control reports whether the hook is a control. Otherwise it is an observer.
	Control bool
	// Shadow is set for a control in shadow: Decision is the decision that it would have made.
	Shadow bool
	// Origin is the policy rule that the hook implements, with its action's type and target. It is nil for other hooks.
	Origin *Origin
	// Attempt is the number of the attempt to call the hook, counted from one.
	Attempt int
	// Duration is the duration of this attempt. It is zero in HookStart.
	Duration time.Duration
	Decision Decision
	Reason   string
	// Outcome is the hook's answer. It is nil when the hook passed, failed, or has not answered yet. A mock's Outcome
	// does not contain its result, which hooks have yet to review.
	Outcome *Outcome
	// Err is a failed hook's error, and Policy how it was handled: closed, open, abort, or retry.
	Err    error
	Policy string
	// At is the time of an event that was held back. At points where filters apply, events are sent after all controls
	// were asked. Zero means now.
	At time.Time
	// Before and After are the values before and after a rewrite: a call's arguments, the run's parameters at RunStart,
	// a sub-agent's instruction.
	Before, After string
}

// EventName returns the kind.
func (e Event) EventName() string { return string(e.Kind) }

// event returns an event with the common fields of all the hook's events.
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

// forObservers returns the outcome for observers. It omits a mock's result, which the hooks after the call have yet to
// review.
func (o *Outcome) forObservers() *Outcome {
	if o == nil || o.mock == nil {
		return o
	}
	out := *o
	out.mock = nil
	return &out
}

// tellAnswer sends the event of a hook that answered.
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

// beforeRewrite returns the value that a rewrite at the point of c replaces.
func beforeRewrite(c Context, call agent.ToolCall) string {
	switch c := c.(type) {
	case RunStartContext:
		return string(c.about.Parameters)
	case PreSubagentContext:
		return c.about.Instruction
	}
	return call.Arguments
}

// tellFailure sends the event of a hook that could not decide.
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

// tellCancelled sends the event of a hook that was cancelled before it answered.
func (e *entry[C]) tellCancelled(ctx context.Context, c C, v verdict, attempt int) {
	if !c.State().Observed() {
		return
	}
	ev := e.event(c, HookSkipped, attempt)
	ev.Duration, ev.Err, ev.Reason = v.took, v.err, "cancelled before it answered"
	c.Tell(ctx, ev)
}
