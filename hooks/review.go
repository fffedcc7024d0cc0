package hooks

import (
	"cmp"
	"context"
	"fmt"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// reviewing is the state while one result is reviewed.
type reviewing struct {
	before  agent.State     // the state at the step's beginning
	state   agent.State     // before, with the effects so far
	call    *agent.Prepared // the call that is answered
	result  *agent.ToolResult
	effects agent.Effects // from the hooks, without the tool's effects
	given   *agent.Signal // the stop signal from the tool or the executor
	filters filters
	held    *heldEvents // nil in runs without an observer
}

// reviewResult passes a call's result to the hooks after it, which may change it. A guard must see a result even when
// the run is being cancelled.
func (x *HookedToolExecutor) reviewResult(
	ctx context.Context, s agent.State, hooks *toolHooks, p *agent.Prepared, result mo.Result[*agent.ToolResult],
) mo.Result[*agent.ToolResult] {
	r, err := result.Get()
	if err != nil {
		return mo.Err[*agent.ToolResult](x.reviewError(ctx, s, hooks, p, err, true))
	}
	if r == nil {
		return result
	}
	v := reviewOf(s, p, r)
	if err := v.askControls(ctx, x.hooks.pool, hooks, true); err != nil {
		return mo.Err[*agent.ToolResult](err)
	}
	return mo.Ok(v.result)
}

// reviewOf begins a review. If a stop was decided before the call, it is part of the result.
func reviewOf(s agent.State, p *agent.Prepared, r *agent.ToolResult) reviewing {
	v := reviewing{before: s, state: s, call: p, result: withStatus(r, p)}
	if s.Observed() {
		v.held = new(heldEvents)
	}
	if p.Effects.Len()+r.Effects.Len() > 0 {
		v.state = s.Apply(p.Effects.Add(r.Effects))
	}
	if r.Stop == nil && p.Stop != nil {
		n := *v.result
		n.Stop = p.Stop
		v.result = &n
	}
	v.given = v.result.Stop
	return v
}

// askControls asks the controls at ToolFailed and then the controls at PostToolUse. Each sees the result as changed by
// earlier controls. Then it calls both points' observers with the final result. It returns an error if a hook's failure
// aborts the run. After such a failure, the other hooks are still asked, because the error must pass their filters.
func (v *reviewing) askControls(ctx context.Context, pool *Pool, hooks *toolHooks, announce bool) error {
	var failed, post *Outcome
	var aborted error
	ofFailure := v.result.Status == agent.ToolFailed && !hooks.failed.empty()
	if ofFailure {
		failed, aborted = consultAt(ctx, &hooks.failed, toolFailed, v)
	}
	if !hooks.post.empty() {
		var err error
		post, err = consultAt(ctx, &hooks.post, postToolUse, v)
		aborted = cmp.Or(aborted, err)
	}
	v.held.release(v.filters)
	v.result = v.call.NoteRewrite(v.result.CutToLimit(), v.filters.filterEach)
	if aborted != nil {
		return v.filters.abort(aborted)
	}
	if !announce {
		return nil
	}
	if ofFailure {
		if err := announceAt(ctx, pool, &hooks.failed, toolFailed, v, failed); err != nil {
			return err
		}
	}
	return announceAt(ctx, pool, &hooks.post, postToolUse, v, post)
}

// withStatus returns the result with a status, if the executor left it to the loop.
func withStatus(r *agent.ToolResult, p *agent.Prepared) *agent.ToolResult {
	if r.Status != "" {
		return r
	}
	n := *r
	n.Status = agent.ToolNotExecuted
	if p.Disposition == agent.DisposeRun {
		n.Status = agent.ToolExecuted
	}
	return &n
}

// resultContext is a context of a point after a call.
type resultContext interface {
	Context
	~struct{ resultView }
}

// viewAt returns the context for a control.
func viewAt[C resultContext](v *reviewing, at *pointInfo) C {
	return C(struct{ resultView }{resultView{contextView{state: v.state, info: at}, v.call, v.result, v.held}})
}

// consultAt asks the controls at one of the points and combines their answers. It returns the
// answer that determines the decision.
func consultAt[C resultContext](ctx context.Context, m *pointHooks[C], point *pointInfo, v *reviewing) (last *Outcome, aborted error) {
	c := viewAt[C](v, point)
	for _, e := range m.controls {
		o, err := e.consult(ctx, c)
		switch {
		case err == nil:
		case ctx.Err() == nil:
			aborted = cmp.Or(aborted, err)
			continue
		case !e.shadow && e.onFailure() != failOpen:
			o = &Outcome{decision: Withhold, point: point.name, hook: e.name, failed: true, reason: "the run was cancelled before the hook could decide"}
		}
		if o == nil || o == point.allowed || o.plain() {
			continue
		}
		o = v.fold(ctx, point, o)
		if !o.plain() && (last == nil || o.decision != Allow && last.decision != StopRun) {
			last = o
		}
		c = viewAt[C](v, point)
	}
	return last, aborted
}

// announceAt calls the observers at one of the points with the decision and with the result as
// changed by the controls.
func announceAt[C resultContext](ctx context.Context, pool *Pool, m *pointHooks[C], point *pointInfo, v *reviewing, last *Outcome) error {
	if len(m.observers)+len(m.detached) == 0 {
		return nil
	}
	frozen := v.filters.filterOutcome(last)
	c := C(struct{ resultView }{resultView{contextView{state: v.state, info: point, frozen: frozen}, v.call, v.result, nil}})
	if err := m.announce(ctx, pool, c); ctx.Err() == nil {
		return err
	}
	return nil // the run was cancelled: keep the result
}

// fold applies a control's answer, and returns the outcome that takes effect. Earlier filters apply to the answer's
// additions. Its own filter applies to everything. Replaced or withheld text is also removed from the error and from
// the tool's stop.
func (v *reviewing) fold(ctx context.Context, at *pointInfo, o *Outcome) *Outcome {
	o = v.filters.outcome(o)
	if o.effects.Len() > 0 {
		for _, ev := range conflicts(v.before, at.name, v.call.Effects.Add(v.effects), o.effects) {
			v.held.holdOrSend(ctx, v.before, ev)
		}
		v.effects = v.effects.Add(o.effects)
	}
	n := *v.result
	n.Effects = n.Effects.Add(o.effects)
	v.result = &n
	switch o.decision {
	case Filter:
		o = v.applyFilter(o)
	case Replace:
		what := fmt.Sprintf("tool %q failed; its text was replaced by %s", v.call.Call.Name, o.hook)
		n.Content, n.DecidedBy = *o.content, o.hook
		if n.Err != nil {
			n.Err = standingFor(n.Err, what)
		}
		v.silence(o.hook, fmt.Sprintf("tool %q stopped the run; its text was replaced by %s", v.call.Call.Name, o.hook))
	case Withhold:
		v.withholdResult(o)
	case StopRun:
		if n.Stop == nil {
			n.Stop = signalOf(o)
		}
	}
	if broken := v.filters.firstFailure(); broken != nil {
		o = broken.failure(at)
		v.withholdResult(o)
	}
	v.state = v.before.Apply(v.call.Effects.Add(v.result.Effects))
	return o
}

// applyFilter applies a filter to everything, including the additions of earlier hooks.
func (v *reviewing) applyFilter(o *Outcome) *Outcome {
	x := &filter{hook: o.hook, f: o.filter}
	v.filters = append(v.filters, x)
	own := v.result.Stop == v.given
	if v.result = (filters{x}).filterResult(v.result); own {
		v.given = v.result.Stop
	}
	if x.changed {
		v.result.DecidedBy = o.hook
	}
	return o.withFilter(x.changed)
}

// withholdResult withholds the whole result, and drops effects from the tool and earlier hooks.
func (v *reviewing) withholdResult(o *Outcome) {
	n := *v.result
	text := fmt.Sprintf("tool %q: result withheld by %s: %s", v.call.Call.Name, o.hook, orNoReason(o.reason))
	n.Err, n.Content, n.DecidedBy, n.Reason = standingFor(n.Err, text), agent.TextContent(text), o.hook, agent.ReasonWithheld
	n.Effects = o.effects
	v.result = &n
	v.silence(o.hook, text)
}

// silence replaces the message of a tool's stop signal.
func (v *reviewing) silence(hook, text string) {
	if v.given == nil || v.result.Stop != v.given {
		return
	}
	stop := v.given.MapText(func(string) string { return "" })
	v.result.Stop = &agent.Signal{Reason: cmp.Or(stop.Reason, agent.StopByHook), Message: text, Source: hook}
	v.given = nil
}
