package hooks

import (
	"context"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// asking is how far the asking about one call has come.
type asking struct {
	call    *agent.Prepared // as it stands, with the original call
	effects agent.Effects   // of the hooks
	changed bool            // some hook wants something else than p

	final, ask, mock, rewrite, allow *Outcome
}

// decide asks the controls about a call and folds their answers: Stop > Deny > Ask
// > Mock > Allow. The first Stop or Deny ends it. Then the observers are told.
func (x *HookedToolExecutor) decide(ctx context.Context, s agent.State, hooks *toolHooks, p *agent.Prepared) mo.Result[*agent.Prepared] {
	c := ToolContext{Common{state: s, info: preToolUse}, p, x}
	if p.Effects.Len() > 0 {
		c.state = s.Apply(p.Effects)
	}
	at := progress{limited: contextOf(ctx, s, p.Original.Index)}
	if !s.Observed() && hooks.pre.quick(&at, c) {
		return mo.Ok(p)
	}
	return x.decideFrom(ctx, s, hooks, p, c, &at)
}

// decideFrom is decide where some of the controls have nothing against the call.
func (x *HookedToolExecutor) decideFrom(
	ctx context.Context, s agent.State, hooks *toolHooks, p *agent.Prepared, c ToolContext, at *progress,
) mo.Result[*agent.Prepared] {
	a := asking{call: p}
	for ; at.next < len(hooks.pre.controls); at.next++ {
		o, err := hooks.pre.controls[at.next].consultNext(ctx, at, &c)
		if err != nil {
			return broken(ctx, a.sofar(), err)
		}
		if o == nil || o == preToolUse.allowed || o.plain() || p.Begun && ignored(ctx, s, p, o) {
			continue
		}
		a.fold(ctx, s, o)
		c.state, c.p = s.Apply(a.call.Effects.Plus(a.effects)), a.call
		if a.final != nil {
			break
		}
	}
	if a.changed {
		p, c.frozen = a.settle()
	}
	if len(hooks.pre.observers)+len(hooks.pre.detached) > 0 {
		if err := hooks.pre.announce(ctx, x.hooks.pool, c); err != nil {
			return broken(ctx, p, err)
		}
	}
	return mo.Ok(p)
}

// fold takes an answer in.
func (a *asking) fold(ctx context.Context, s agent.State, o *Outcome) {
	a.changed = true
	switch o.decision {
	case StopRun, Deny:
		a.final = o
	case Ask:
		a.ask = firstOf(a.ask, o)
	case Mock:
		a.mock = firstOf(a.mock, o)
	case Allow:
		a.allow = firstOf(a.allow, o)
	case Rewrite:
		a.rewrite = o
		call := *o.prepared
		call.Original = a.call.Original
		a.call = &call
	}
	if o.effects.Len() > 0 {
		tellConflicts(ctx, s, PreToolUse, a.effects, o.effects)
		a.effects = a.effects.Plus(o.effects)
	}
}

func firstOf(outcomes ...*Outcome) *Outcome {
	for _, o := range outcomes {
		if o != nil {
			return o
		}
	}
	return nil
}

// sofar is the call as it stands, with what the hooks add.
func (a *asking) sofar() *agent.Prepared {
	p := *a.call
	p.Effects = p.Effects.Plus(a.effects)
	return &p
}

// settle is the call as it was decided upon, and the outcome that counts.
func (a *asking) settle() (*agent.Prepared, *Outcome) {
	p := a.sofar()
	counts := firstOf(a.final, a.ask, a.mock, a.rewrite, a.allow)
	switch {
	case a.final != nil && a.final.decision == StopRun:
		p.Disposition, p.Stop, p.Answer = agent.DisposeStop, signalOf(a.final), nil
	case p.Disposition == agent.DisposeStop: // hooks further in stopped the run
		counts = nil
	case a.final != nil:
		p.Disposition, p.Answer = agent.DisposeAnswer, denial(p.Call, a.final)
	case answered(p): // invalid: the model must mend the call first; or denied further in
		counts = firstOf(a.rewrite, a.allow)
	default:
		if a.mock != nil {
			p.Answer = a.mocked()
			p.Disposition = max(p.Disposition, agent.DisposeAnswer)
		}
		if a.ask != nil {
			p.Disposition, p.Question = agent.DisposeAsk, a.question()
		}
	}
	return p, counts
}

// question is what a person is asked, in the name of the first hook that wants it.
func (a *asking) question() *agent.Question {
	q := agent.Question{Reason: a.ask.reason}
	if a.ask.question != nil {
		q = *a.ask.question
	}
	q.By = a.ask.hook
	return &q
}

// answered reports whether the call does not run, whatever more is said, and is not
// mocked.
func answered(p *agent.Prepared) bool {
	return p.Disposition == agent.DisposeAnswer && p.Answer != nil && !p.Answer.Mocked()
}

// broken is the end of the asking for an error. When the run was cancelled, the
// call is answered: that is no failure, and no permission.
func broken(ctx context.Context, p *agent.Prepared, err error) mo.Result[*agent.Prepared] {
	if ctx.Err() == nil {
		return mo.Err[*agent.Prepared](err)
	}
	if answered(p) {
		return mo.Ok(p)
	}
	q := *p
	q.Disposition = agent.DisposeAnswer
	q.Answer = agent.NotExecuted(p.Call, agent.ReasonCancelled, "", "not executed: the run was cancelled")
	return mo.Ok(&q)
}

// mocked is the answer in the tool's place.
func (a *asking) mocked() *agent.ToolResult {
	r := *a.mock.mock
	r.Status, r.DecidedBy = agent.ToolMocked, a.mock.hook
	return r.To(a.call)
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
