package hooks

import (
	"context"
	"fmt"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// reviewing is how far the asking about one result has come.
type reviewing struct {
	before  agent.State     // as the step began
	state   agent.State     // with the effects so far
	call    *agent.Prepared // what is answered
	result  *agent.ToolResult
	effects agent.Effects // of the hooks, without those of the tool
}

// review lets the hooks after a call see the answer, and change it. A guard must
// see a result even when the run is being cancelled.
func (x *HookedToolExecutor) review(ctx context.Context, s agent.State, hooks *toolHooks, p *agent.Prepared, r *agent.ToolResult) mo.Result[*agent.ToolResult] {
	at := progress{limited: contextOf(ctx, s, p.Original.Index)}
	if r.Status == agent.ToolExecuted && p.Effects.Len()+r.Effects.Len() == 0 && !s.Observed() {
		c := ToolResultContext{resultView{Common{state: s, info: postToolUse}, p, r}}
		if hooks.post.quick(&at, c) {
			return mo.Ok(r)
		}
	}
	return x.reviewFrom(ctx, s, hooks, p, r, &at)
}

// reviewFrom is review where some of the controls at PostToolUse let the answer stand.
func (x *HookedToolExecutor) reviewFrom(
	ctx context.Context, s agent.State, hooks *toolHooks, p *agent.Prepared, r *agent.ToolResult, at *progress,
) mo.Result[*agent.ToolResult] {
	v := reviewing{before: s, state: s, call: p, result: withStatus(r, p)}
	if p.Effects.Len()+r.Effects.Len() > 0 {
		v.state = s.Apply(p.Effects.Plus(r.Effects))
	}
	if r.Status == agent.ToolFailed && !hooks.failed.empty() {
		first := progress{limited: at.limited}
		if err := reviewAt(ctx, x.hooks.pool, &hooks.failed, toolFailed, &v, &first); err != nil {
			return mo.Err[*agent.ToolResult](err)
		}
	}
	if !hooks.post.empty() {
		if err := reviewAt(ctx, x.hooks.pool, &hooks.post, postToolUse, &v, at); err != nil {
			return mo.Err[*agent.ToolResult](err)
		}
	}
	return mo.Ok(v.result)
}

// withStatus is the result with what became of the call, if the executor left it
// for the loop to say.
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

// view is what the next hook sees.
func (v *reviewing) view(at *pointInfo, frozen *Outcome) struct{ resultView } {
	return struct{ resultView }{resultView{Common{state: v.state, info: at, frozen: frozen}, v.call, v.result}}
}

// resultContext is the contexts of the points after a call.
type resultContext interface {
	Context
	~struct{ resultView }
}

// reviewAt folds the answers of the controls at one of the points, each seeing what
// the ones before left of the result. Then the observers are told.
func reviewAt[C resultContext](ctx context.Context, pool *Pool, m *moment[C], point *pointInfo, v *reviewing, at *progress) error {
	var last *Outcome
	c := C(v.view(point, nil))
	for ; at.next < len(m.controls); at.next++ {
		e := m.controls[at.next]
		o, err := e.consultNext(ctx, at, &c)
		switch {
		case err == nil:
		case ctx.Err() == nil:
			return err
		case !e.shadow && e.onFailure() != failOpen:
			o = &Outcome{decision: Withhold, point: point.name, hook: e.name, failed: true, reason: "the run was cancelled before the hook could decide"}
		}
		if o == nil || o == point.allowed || o.plain() {
			continue
		}
		v.fold(ctx, point, o)
		c = C(v.view(point, nil))
		if last == nil || o.decision != Allow && last.decision != StopRun {
			last = o
		}
	}
	if len(m.observers)+len(m.detached) == 0 {
		return nil
	}
	if err := m.announce(ctx, pool, C(v.view(point, last))); ctx.Err() == nil {
		return err
	}
	return nil // cancelled: the result is as it is
}

// fold takes an answer in. What was replaced or withheld is gone from the error,
// too.
func (v *reviewing) fold(ctx context.Context, at *pointInfo, o *Outcome) {
	if o.effects.Len() > 0 {
		tellConflicts(ctx, v.before, at.name, v.call.Effects.Plus(v.effects), o.effects)
		v.effects = v.effects.Plus(o.effects)
	}
	n := *v.result
	n.Effects = n.Effects.Plus(o.effects)
	switch o.decision {
	case Replace:
		n.Content, n.DecidedBy = *o.content, o.hook
		if n.Err != nil {
			n.Err = fmt.Errorf("tool %q failed; what it said was replaced by %s", v.call.Call.Name, o.hook)
		}
	case Withhold:
		n.Err = fmt.Errorf("tool %q: result withheld by %s: %s", v.call.Call.Name, o.hook, orNoReason(o.reason))
		n.Content, n.DecidedBy, n.Reason = agent.TextContent(n.Err.Error()), o.hook, agent.ReasonWithheld
		n.Effects = v.effects
	case StopRun:
		if n.Stop == nil {
			n.Stop = signalOf(o)
		}
	}
	v.result = &n
	v.state = v.before.Apply(v.call.Effects.Plus(n.Effects))
}
