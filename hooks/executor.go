package hooks

import (
	"context"
	"errors"
	"fmt"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// HookedToolExecutor wraps an executor with the hooks at PreToolUse, ToolFailed
// and PostToolUse. It is immutable and safe for concurrent use.
type HookedToolExecutor struct {
	inner agent.Executor
	hooks *Compiled
}

var _ agent.Executor = (*HookedToolExecutor)(nil)

// WrapExecutor puts the hooks around an executor.
func (c *Compiled) WrapExecutor(inner agent.Executor) agent.Executor {
	if c.tools.none {
		return inner
	}
	return &HookedToolExecutor{inner: inner, hooks: c}
}

// hookedCall is a call that hooks were asked about: what they made of it, what
// the inner executor prepared, and the payload that the hooks saw.
type hookedCall struct {
	agent.Prepared
	inner *agent.Prepared
	hooks *toolHooks
	seen  toolPayload
}

// Prepare asks the hooks at PreToolUse what is to become of the call.
func (x *HookedToolExecutor) Prepare(ctx context.Context, s agent.State, call agent.ToolCall) mo.Result[*agent.Prepared] {
	inner := x.inner.Prepare(ctx, s, call)
	p, err := inner.Get()
	if err != nil || malformed(p.Invalid) {
		return inner
	}
	hooks := x.hooks.tools.of(call.Name)
	if hooks == nil || hooks.pre.empty() {
		return inner
	}
	h := &hookedCall{Prepared: *p, inner: p, hooks: hooks}
	h.Carry = h
	h.seen = toolPayload{
		base:     base{state: s, point: PreToolUse, step: s.RunStepCount(), kind: agent.StepToolExecution},
		prepared: p, current: p.Call,
	}
	h.seen.call = &h.seen.current
	if err := x.decide(ctx, s, h); err != nil {
		return mo.Err[*agent.Prepared](err)
	}
	return mo.Ok(&h.Prepared)
}

// malformed: the arguments cannot be read, so no hook can judge them.
func malformed(err error) bool {
	if err == nil {
		return false
	}
	wrong, ok := errors.AsType[*agent.ArgumentsError](err)
	return ok && wrong.Malformed
}

// decide folds the answers of the controls: Stop > Deny > Ask > Mock > Allow. The
// first Stop or Deny ends it. Then the observers are told.
func (x *HookedToolExecutor) decide(ctx context.Context, s agent.State, h *hookedCall) error {
	var final, ask, mock, rewrite *Outcome
	seen := &h.seen
	for _, e := range h.hooks.pre.controls {
		o, err := e.consult(ctx, ToolContext{Common{&seen.base}, seen})
		if err != nil {
			return err
		}
		if o == nil {
			continue
		}
		if o.effects.Len() > 0 {
			tellConflicts(ctx, s, PreToolUse, h.Effects, o.effects)
			h.Effects = h.Effects.Plus(o.effects)
		}
		switch o.decision {
		case StopRun, Deny:
			final = o
		case Ask:
			if ask == nil {
				ask = o
			}
		case Mock:
			if mock == nil {
				mock = o
			}
		case Rewrite:
			if seen, final, err = x.rewrite(ctx, s, h, seen, e, o); err != nil {
				return err
			}
			rewrite = o
		}
		if final != nil {
			break
		}
		if o.decision != Rewrite && o.effects.Len() > 0 {
			seen = seen.next(s.Apply(h.Effects))
		}
	}
	if final == nil {
		final = firstOf(ask, mock, rewrite)
	}
	settle(h, final, mock)
	if len(h.hooks.pre.observers)+len(h.hooks.pre.detached) == 0 {
		return nil
	}
	told := seen
	if final != nil {
		told = seen.next(seen.state)
		told.frozen = final
	}
	return h.hooks.pre.announce(ctx, x.hooks.pool, ToolContext{Common{&told.base}, told})
}

func firstOf(outcomes ...*Outcome) *Outcome {
	for _, o := range outcomes {
		if o != nil {
			return o
		}
	}
	return nil
}

// next is a payload for the hooks that follow; the one before stays as it was
// seen.
func (p *toolPayload) next(s agent.State) *toolPayload {
	n := &toolPayload{
		base:     base{state: s, point: p.point, step: p.step, kind: p.kind, frozen: p.frozen},
		prepared: p.prepared, current: p.current,
	}
	n.call = &n.current
	return n
}

// rewrite lets the inner executor check the new arguments. A rewrite that breaks
// the schema is a failure of the hook: neither the original nor the rewrite runs.
func (x *HookedToolExecutor) rewrite(
	ctx context.Context, s agent.State, h *hookedCall, seen *toolPayload, e *entry[ToolContext], o *Outcome,
) (*toolPayload, *Outcome, error) {
	call := h.Call
	call.Arguments = o.arguments
	p, err := x.inner.Prepare(ctx, s, call).Get()
	if err != nil {
		return seen, nil, err
	}
	if p.Invalid != nil {
		failure := fmt.Errorf("it rewrote the arguments into invalid ones: %w", p.Invalid)
		if s.Observed() {
			e.tellFailure(ctx, ToolContext{Common{&seen.base}, seen}, failure, 1, "closed")
		}
		if e.policy.kind == failAbort {
			return seen, nil, &HookError{Hook: e.name, Point: PreToolUse, Err: failure}
		}
		return seen, &Outcome{
			decision: Deny, point: PreToolUse, hook: e.name, failed: true,
			reason: "the hook could not decide: " + failure.Error(),
		}, nil
	}
	original := h.Original
	effects := h.Effects
	h.Prepared, h.inner = *p, p
	h.Original, h.Effects, h.Carry = original, effects, h
	n := seen.next(s.Apply(effects))
	prepared := *p
	prepared.Original = original
	n.prepared, n.current = &prepared, p.Call
	n.call = &n.current
	return n, nil, nil
}

// settle writes what was decided into the prepared call.
func settle(h *hookedCall, final, mock *Outcome) {
	call := h.Call
	if final != nil {
		switch final.decision {
		case StopRun:
			h.Disposition = agent.DisposeStop
			h.Stop = signalOf(final)
			h.Answer = nil
			return
		case Deny:
			h.Disposition = agent.DisposeAnswer
			h.Answer = denial(call, final)
			return
		}
	}
	if h.Invalid != nil {
		return // answered by the inner executor: the model must mend the call first
	}
	if mock != nil {
		answer := *mock.mock
		answer.CallID, answer.Tool, answer.Call, answer.Original = h.Original.ID, call.Name, call, h.Original
		answer.Status, answer.DecidedBy = agent.ToolMocked, mock.hook
		h.Disposition, h.Answer = agent.DisposeAnswer, &answer
	}
	if final != nil && final.decision == Ask {
		h.Disposition = agent.DisposeAsk
		h.Question = agent.Question{By: final.hook, Reason: final.reason}
	}
}

// denial is the answer to a call that a hook denied, or could not decide on.
func denial(call agent.ToolCall, o *Outcome) *agent.ToolResult {
	err := &DeniedError{Tool: call.Name, Hook: o.hook, Reason: o.reason, Failed: o.failed}
	code := agent.ReasonDenied
	if o.failed {
		code = agent.ReasonHookFailed
	}
	r := agent.NotExecuted(call, code, o.hook, err.Error())
	r.Err = err
	return r
}

func signalOf(o *Outcome) *agent.Signal {
	signal := agent.Signal{Reason: agent.StopByHook, Message: orNoReason(o.reason), Source: o.hook}
	if o.failed {
		signal.Details = map[string]any{"hook_failed": true}
	}
	return &signal
}

// Execute runs the call if it is to run, and lets the hooks at ToolFailed and
// PostToolUse see the answer, whatever became of the call.
func (x *HookedToolExecutor) Execute(ctx context.Context, s agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	var hooks *toolHooks
	inner := p
	if h, ok := p.Carry.(*hookedCall); ok {
		hooks, inner = h.hooks, h.inner
	} else {
		hooks = x.hooks.tools.of(p.Call.Name)
	}
	if p.Disposition != agent.DisposeRun {
		answered := *p
		answered.Carry = nil
		if inner != p {
			answered.Carry = inner.Carry
		}
		inner = &answered
	}
	result := x.inner.Execute(ctx, s, inner)
	r, err := result.Get()
	if err != nil || hooks == nil {
		return result
	}
	if hooks.failed.empty() && hooks.post.empty() {
		return result
	}
	if r.Original != p.Original || r.CallID != p.Original.ID {
		named := *r
		named.CallID, named.Original = p.Original.ID, p.Original
		r = &named
	}
	if r.Status == agent.ToolFailed && !hooks.failed.empty() {
		r, err = review(ctx, s, x.hooks.pool, &hooks.failed, ToolFailed, r, func(p *resultPayload) ToolFailureContext {
			return ToolFailureContext{resultView{Common{&p.base}, p}}
		})
		if err != nil {
			return mo.Err[*agent.ToolResult](err)
		}
	}
	if !hooks.post.empty() {
		r, err = review(ctx, s, x.hooks.pool, &hooks.post, PostToolUse, r, func(p *resultPayload) ToolResultContext {
			return ToolResultContext{resultView{Common{&p.base}, p}}
		})
		if err != nil {
			return mo.Err[*agent.ToolResult](err)
		}
	}
	return mo.Ok(r)
}

// review folds the answers of the controls after a tool call, each seeing what
// the ones before left of the result.
func review[C Context](
	ctx context.Context, s agent.State, pool *pool, m *moment[C], at PointName, r *agent.ToolResult,
	view func(*resultPayload) C,
) (*agent.ToolResult, error) {
	// A guard must see a result even when the run is being cancelled.
	seen := newResultPayload(s, at, r, nil)
	var last *Outcome
	for _, e := range m.controls {
		o, err := e.consult(ctx, view(seen))
		if err != nil {
			if ctx.Err() == nil {
				return nil, err
			}
			o = &Outcome{decision: Withhold, point: at, hook: e.name, failed: true, reason: "the run was cancelled before the hook could decide"}
		}
		if o == nil || o.decision == Allow && o.effects.Len() == 0 {
			continue
		}
		r = applied(r, o)
		tellConflicts(ctx, s, at, seen.result.Effects, o.effects)
		last = o
		seen = newResultPayload(s.Apply(r.Effects), at, r, nil)
	}
	if len(m.observers)+len(m.detached) == 0 {
		return r, nil
	}
	if last != nil {
		seen = newResultPayload(seen.state, at, r, last)
	}
	if err := m.announce(ctx, pool, view(seen)); err != nil && ctx.Err() == nil {
		return nil, err
	}
	return r, nil
}

func newResultPayload(s agent.State, at PointName, r *agent.ToolResult, frozen *Outcome) *resultPayload {
	p := &resultPayload{
		base:   base{state: s, point: at, step: s.RunStepCount(), kind: agent.StepToolExecution, frozen: frozen},
		result: r,
	}
	p.call = &p.result.Call
	return p
}

// applied is the result as an outcome changes it. What was replaced or withheld is
// gone from the error, too.
func applied(r *agent.ToolResult, o *Outcome) *agent.ToolResult {
	n := *r
	n.Effects = r.Effects.Plus(o.effects)
	switch o.decision {
	case Replace:
		n.Content, n.DecidedBy = *o.content, o.hook
		if n.Err != nil {
			n.Err = fmt.Errorf("tool %q failed; what it said was replaced by %s", n.Tool, o.hook)
		}
	case Withhold:
		err := fmt.Errorf("tool %q: result withheld by %s: %s", n.Tool, o.hook, orNoReason(o.reason))
		n.Content, n.DecidedBy, n.Err, n.Reason = agent.TextContent(err.Error()), o.hook, err, agent.ReasonWithheld
	case StopRun:
		if n.Stop == nil {
			n.Stop = signalOf(o)
		}
	}
	return &n
}

// tellConflicts tells the observer of metadata that more sets after earlier did.
func tellConflicts(ctx context.Context, s agent.State, at PointName, earlier, more agent.Effects) {
	if !s.Observed() || earlier.Len() == 0 {
		return
	}
	for _, e := range more.All() {
		name, scope, _, ok := e.Metadata()
		if !ok {
			continue
		}
		for _, old := range earlier.All() {
			oldName, oldScope, _, ok := old.Metadata()
			if ok && oldName == name && oldScope == scope && old.Source() != e.Source() {
				s.Emit(ctx, Event{
					Kind: HookConflict, Run: s.Run(), Step: s.RunStepCount(), Hook: e.Source(), Point: at,
					Reason: fmt.Sprintf("%s metadata %q was set by %s already; the later value stays", scope, name, old.Source()),
				})
			}
		}
	}
}
