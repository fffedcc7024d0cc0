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

// Prepare asks the hooks at PreToolUse what is to become of the call.
func (x *HookedToolExecutor) Prepare(ctx context.Context, s agent.State, call *agent.ToolCall) mo.Result[*agent.Prepared] {
	inner := x.inner.Prepare(ctx, s, call)
	p, err := inner.Get()
	if err != nil || malformed(p.Invalid) {
		return inner
	}
	hooks := x.hooks.tools.of(call.Name)
	if hooks == nil || hooks.pre.empty() {
		return inner
	}
	return mo.TupleToResult(x.decide(ctx, s, hooks, p))
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
// first Stop or Deny ends it. Then the observers are told. Where nothing was
// decided, p goes on as it is.
func (x *HookedToolExecutor) decide(ctx context.Context, s agent.State, hooks *toolHooks, p *agent.Prepared) (*agent.Prepared, error) {
	var final, ask, mock, rewrite *Outcome
	var effects agent.Effects
	original := p.Original
	seen := newToolPayload(s, p, nil)
	for _, e := range hooks.pre.controls {
		o, err := e.consult(ctx, ToolContext{Common{&seen.base}, seen})
		if err != nil {
			return nil, err
		}
		if o == nil {
			continue
		}
		if o.effects.Len() > 0 {
			tellConflicts(ctx, s, PreToolUse, effects, o.effects)
			effects = effects.Plus(o.effects)
			seen = newToolPayload(s.Apply(effects), p, nil)
		}
		switch o.decision {
		case StopRun, Deny:
			final = o
		case Ask:
			ask = firstOf(ask, o)
		case Mock:
			mock = firstOf(mock, o)
		case Rewrite:
			rewritten, refusal, err := x.rewrite(ctx, s, p, seen, e, o)
			if err != nil {
				return nil, err
			}
			p, final, rewrite = rewritten, refusal, o
			seen = newToolPayload(seen.state, p, nil)
		}
		if final != nil {
			break
		}
	}
	if final == nil {
		final = firstOf(ask, mock, rewrite)
	}
	if final != nil || effects.Len() > 0 {
		p = settled(p, final, mock)
		p.Original, p.Effects = original, effects
	}
	if len(hooks.pre.observers)+len(hooks.pre.detached) == 0 {
		return p, nil
	}
	if final != nil {
		seen = newToolPayload(seen.state, seen.prepared, final)
	}
	return p, hooks.pre.announce(ctx, x.hooks.pool, ToolContext{Common{&seen.base}, seen})
}

func firstOf(outcomes ...*Outcome) *Outcome {
	for _, o := range outcomes {
		if o != nil {
			return o
		}
	}
	return nil
}

// newToolPayload is a payload for the hooks that follow; one that was seen stays as
// it was.
func newToolPayload(s agent.State, p *agent.Prepared, frozen *Outcome) *toolPayload {
	return &toolPayload{
		base: base{
			state: s, point: PreToolUse, step: s.RunStepCount(), kind: agent.StepToolExecution,
			call: p.Call, frozen: frozen,
		},
		prepared: p,
	}
}

// rewrite lets the inner executor check the new arguments. A rewrite that breaks
// the schema is a failure of the hook: neither the original nor the rewrite runs.
func (x *HookedToolExecutor) rewrite(
	ctx context.Context, s agent.State, p *agent.Prepared, seen *toolPayload, e *entry[ToolContext], o *Outcome,
) (*agent.Prepared, *Outcome, error) {
	call := *p.Call
	call.Arguments = o.arguments
	inner, err := x.inner.Prepare(ctx, s, &call).Get()
	if err != nil {
		return p, nil, err
	}
	if inner.Invalid == nil {
		rewritten := *inner
		rewritten.Original = p.Original
		return &rewritten, nil, nil
	}
	failure := fmt.Errorf("it rewrote the arguments into invalid ones: %w", inner.Invalid)
	if s.Observed() {
		e.tellFailure(ctx, ToolContext{Common{&seen.base}, seen}, failure, 1, "closed")
	}
	if e.policy.kind == failAbort {
		return p, nil, &HookError{Hook: e.name, Point: PreToolUse, Err: failure}
	}
	return p, &Outcome{
		decision: Deny, point: PreToolUse, hook: e.name, failed: true,
		reason: "the hook could not decide: " + failure.Error(),
	}, nil
}

// settled is the prepared call as it was decided upon.
func settled(p *agent.Prepared, final, mock *Outcome) *agent.Prepared {
	q := *p
	switch final.Decision() {
	case StopRun:
		q.Disposition, q.Stop, q.Answer = agent.DisposeStop, signalOf(final), nil
		return &q
	case Deny:
		q.Disposition, q.Answer = agent.DisposeAnswer, denial(q.Call, final)
		return &q
	}
	if q.Invalid != nil {
		return &q // answered by the inner executor: the model must mend the call first
	}
	if mock != nil {
		answer := *mock.mock
		answer.CallID, answer.Tool, answer.Call, answer.Original = q.Original.ID, q.Call.Name, q.Call, q.Original
		answer.Status, answer.DecidedBy = agent.ToolMocked, mock.hook
		q.Disposition, q.Answer = agent.DisposeAnswer, &answer
	}
	if final.Decision() == Ask {
		q.Disposition, q.Question = agent.DisposeAsk, &agent.Question{By: final.hook, Reason: final.reason}
	}
	return &q
}

// denial is the answer to a call that a hook denied, or could not decide on.
func denial(call *agent.ToolCall, o *Outcome) *agent.ToolResult {
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
	hooks := x.hooks.tools.of(p.Call.Name)
	result := x.inner.Execute(ctx, s, p)
	r, err := result.Get()
	if err != nil || hooks == nil {
		return result
	}
	if hooks.failed.empty() && hooks.post.empty() {
		return result
	}
	if r.Original != p.Original || r.Call != p.Call || r.CallID != p.Original.ID {
		named := *r
		named.CallID, named.Tool, named.Call, named.Original = p.Original.ID, p.Call.Name, p.Call, p.Original
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
	p.call = p.result.Call
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
