package hooks

import (
	"context"
	"slices"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// decide asks the controls about a call until all of them have judged the same call. It combines their answers (Stop >
// Deny > Ask > Mock > Allow), and tells the observers. After the first Stop or Deny, it asks no further control.
func (x *HookedToolExecutor) decide(ctx context.Context, s agent.State, hooks *toolHooks, p *agent.Prepared) mo.Result[*agent.Prepared] {
	c := ToolContext{contextView{state: s, info: preToolUse}, p, x}
	if p.Effects.Len() > 0 {
		c.state = s.Apply(p.Effects)
	}
	d := callDeliberation{deliberation[judgedCall]{now: judgedCall{p}}}
	controls := hooks.pre.controls
	for i := 0; i < len(controls) && d.final == nil; i++ {
		o, err := controls[i].consult(ctx, c)
		if err != nil {
			return endForError(ctx, d.withEffects(), err)
		}
		if !hasNoSay(o) && p.Begun && ignored(ctx, s, p, o) {
			o = nil
		}
		if hasNoSay(o) && d.latest == nil {
			continue
		}
		d.recordOutcome(i, len(controls), o)
		if !hasNoSay(o) {
			c = d.context(c, s, -1)
		}
	}
	if d.latest != nil {
		if err := d.askAgain(ctx, s, controls, c); err != nil {
			return endForError(ctx, d.withEffects(), err)
		}
		c = d.context(c, s, -1)
		p, c.frozen = d.settle(ctx, s)
	}
	if hooks.pre.hasObservers() {
		if err := hooks.pre.announce(ctx, x.hooks.pool, c); err != nil {
			return endForError(ctx, p, err)
		}
	}
	return mo.Ok(p)
}

// hasNoSay reports whether an answer has no effect on the call or the state.
func hasNoSay(o *Outcome) bool { return o == nil || o.plain() }

// judgedCall is a prepared call that the controls judge.
type judgedCall struct{ *agent.Prepared }

// same reports whether tool and arguments are identical texts.
func (j judgedCall) same(other judgedCall) bool { return sameCall(j.Call, other.Call) }

func sameCall(a, b *agent.ToolCall) bool {
	return a == b || a.Name == b.Name && argumentsOf(*a) == argumentsOf(*b)
}

// applyRewrite returns the rewritten call that the inner executor has prepared. If the executor changed the rewritten
// arguments further, the rewriting control has not judged the result, unless it is asked about exactly that call. A
// rewrite to the same arguments changes nothing. Neither does a rewrite that changes only the JSON's spelling, if the
// control is asked again.
func (j judgedCall) applyRewrite(o *Outcome, again bool) (now, judged judgedCall) {
	if j.Begun { // it keeps its arguments, so the rewrite is ignored
		return j, j
	}
	if o.arguments == argumentsOf(*j.Call) || again && sameArguments(j.Call.Arguments, o.arguments) {
		return j, j
	}
	prepared := *o.prepared
	prepared.Original = j.Original
	now = judgedCall{&prepared}
	if now.same(j) || now.Call.Arguments == o.arguments {
		return now, now
	}
	written := *j.Call
	written.Arguments = o.arguments
	return now, judgedCall{&agent.Prepared{Original: j.Original, Call: &written}}
}

// callDeliberation is a call's control phase.
type callDeliberation struct{ deliberation[judgedCall] }

// askAgain asks the controls that have not judged the current call.
func (d *callDeliberation) askAgain(ctx context.Context, s agent.State, controls []*entry[ToolContext], c ToolContext) error {
	if d.final != nil || d.agreed() {
		return nil
	}
	return askAgain(ctx, &d.deliberation, PreToolUse, controls, func(i int) ToolContext { return d.context(c, s, i) })
}

// context returns the context with the current call, and the state with the effects of all controls. It leaves out the
// control with index without, unless without is negative.
func (d *callDeliberation) context(c ToolContext, s agent.State, without int) ToolContext {
	c.state, c.p = s.Apply(d.now.Effects.Add(d.joinEffects(without))), d.now.Prepared
	return c
}

// withEffects returns the current call with the effects of the controls.
func (d *callDeliberation) withEffects() *agent.Prepared {
	p := *d.now.Prepared
	p.Effects = p.Effects.Add(d.joinEffects(-1))
	return &p
}

// settle combines the latest answers into the decided call and the outcome that determined
// the decision.
func (d *callDeliberation) settle(ctx context.Context, s agent.State) (*agent.Prepared, *Outcome) {
	d.tellConflicts(ctx, s, PreToolUse)
	p := d.withEffects()
	ask, mock := d.first(Ask), d.first(Mock)
	counts, _ := lo.Coalesce(d.final, ask, mock, d.last(Rewrite), d.first(Allow))
	switch {
	case d.final != nil && d.final.decision == StopRun:
		p.Disposition, p.Stop, p.Answer = agent.DisposeStop, signalOf(d.final), nil
	case p.Disposition == agent.DisposeStop: // inner hooks stopped the run
		counts = nil
	case d.final != nil:
		p.Disposition, p.Answer = agent.DisposeAnswer, denial(p.Call, d.final)
	case answered(p): // invalid: the model must correct the call; or denied by inner hooks
		counts, _ = lo.Coalesce(d.last(Rewrite), d.first(Allow))
	default:
		if mock != nil {
			p.Answer = mockedAnswer(p, mock)
			p.Disposition = max(p.Disposition, agent.DisposeAnswer)
		}
		if ask != nil {
			p.Disposition = agent.DisposeAsk
			p.SetQuestions(append(slices.Clip(p.Questions()), d.pendingQuestions()...))
		}
	}
	return p, counts
}

// pendingQuestions returns the latest answers' questions for a person, in the order of asking.
func (d *callDeliberation) pendingQuestions() (list agent.Questions) {
	for o := range d.answers {
		if o.decision == Ask {
			list = append(list, *o.question)
		}
	}
	return list
}

// answered reports whether the call already has an answer, other than a mock, so that it does
// not run.
func answered(p *agent.Prepared) bool {
	return p.Disposition == agent.DisposeAnswer && p.Answer != nil && !p.Answer.Mocked()
}

// endForError returns the result of decide for an error. If the run was cancelled, the call is answered as not
// executed, which is neither a failure nor a permission.
func endForError(ctx context.Context, p *agent.Prepared, err error) mo.Result[*agent.Prepared] {
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

// mockedAnswer returns a hook's mock as the answer to a call.
func mockedAnswer(p *agent.Prepared, mock *Outcome) *agent.ToolResult {
	r := *mock.mock
	r.Status, r.DecidedBy = agent.ToolMocked, mock.hook
	return r.To(p)
}

// denial returns the answer to a call after a hook denied it or could not decide.
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
