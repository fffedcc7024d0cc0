package hooks

import (
	"context"
	"fmt"
	"strings"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// deliberation is the control phase of one call: each control's latest answer, and what
// the answers have made of the call so far.
type deliberation struct {
	call   *agent.Prepared // as it stands, with the original call
	latest []judgement     // one for each control, in the order of asking; nil while all have passed
	final  *Outcome        // the Stop or Deny that ended the phase
}

// judgement is the latest answer of one control.
type judgement struct {
	outcome *Outcome        // nil: the control passed, allowed without more, or did not match
	call    *agent.ToolCall // the call that the answer is about; nil before the first answer
}

// decide asks the controls about a call until all of them have judged the same call, folds
// their answers (Stop > Deny > Ask > Mock > Allow), and tells the observers. The first
// Stop or Deny ends the asking.
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

// decideFrom continues decide behind the controls that have passed already.
func (x *HookedToolExecutor) decideFrom(
	ctx context.Context, s agent.State, hooks *toolHooks, p *agent.Prepared, c ToolContext, at *progress,
) mo.Result[*agent.Prepared] {
	d := deliberation{call: p}
	controls := hooks.pre.controls
	for ; at.next < len(controls) && d.final == nil; at.next++ {
		o, err := controls[at.next].consultNext(ctx, at, &c)
		if err != nil {
			return broken(ctx, d.withEffects(), err)
		}
		if !hasNoSay(o) && p.Begun && ignored(ctx, s, p, o) {
			o = nil
		}
		if hasNoSay(o) && d.latest == nil {
			continue
		}
		d.record(at.next, len(controls), o)
		if !hasNoSay(o) {
			c.state, c.p = s.Apply(d.effects(-1)), d.call
		}
	}
	if d.latest != nil {
		if err := d.askAgain(ctx, s, controls, &c); err != nil {
			return broken(ctx, d.withEffects(), err)
		}
		p, c.frozen = d.settle(ctx, s)
	}
	if len(hooks.pre.observers)+len(hooks.pre.detached) > 0 {
		if err := hooks.pre.announce(ctx, x.hooks.pool, c); err != nil {
			return broken(ctx, p, err)
		}
	}
	return mo.Ok(p)
}

// hasNoSay reports whether an answer changes nothing.
func hasNoSay(o *Outcome) bool { return o == nil || o == preToolUse.allowed || o.plain() }

// askAgain asks every control that has not judged the call as it stands, in order, until
// all have judged the same call. After mostRounds rounds, the first asking included, it
// denies the call.
func (d *deliberation) askAgain(ctx context.Context, s agent.State, controls []*entry[ToolContext], c *ToolContext) error {
	for round := 1; d.final == nil && !d.agreed(); round++ {
		if round == mostRounds {
			d.final = d.disagreement()
			break
		}
		for i, e := range controls {
			if d.final != nil || d.judged(i) {
				continue
			}
			c.state, c.p = s.Apply(d.effects(i)), d.call
			o, err := e.consult(ctx, *c)
			if err != nil {
				return err
			}
			d.record(i, len(controls), o)
		}
	}
	c.state, c.p = s.Apply(d.effects(-1)), d.call
	return nil
}

// mostRounds is how often the controls of a point are asked before controls that rewrite
// what the others wrote are taken for a failure.
const mostRounds = 4

// record takes in the answer of control i, of n, about the call as it stands.
func (d *deliberation) record(i, n int, o *Outcome) {
	if d.latest == nil { // all controls before have passed this very call
		d.latest = make([]judgement, n)
		for k := range i {
			d.latest[k].call = d.call.Call
		}
	}
	again := d.latest[i].call != nil
	about := d.call.Call
	switch {
	case hasNoSay(o):
		o = nil
	case o.decision == StopRun, o.decision == Deny:
		d.final = o
	case o.decision == Rewrite:
		about = d.rewrite(o, again)
	}
	d.latest[i] = judgement{o, about}
}

// rewrite puts a rewritten call in place and returns the call that its author has judged.
// The executor further in may have changed the rewrite: the author has not judged that,
// unless it was just asked about the very same call. A control that is asked again and
// only spells the arguments in another way leaves the call as the others judged it.
func (d *deliberation) rewrite(o *Outcome, again bool) *agent.ToolCall {
	before, after := d.call.Call, o.prepared.Call
	if d.call.Begun { // it keeps its arguments: this rewrite is none
		return before
	}
	if again && before.Name == after.Name && sameArguments(before.Arguments, o.arguments) {
		return before
	}
	prepared := *o.prepared
	prepared.Original = d.call.Original
	d.call = &prepared
	if sameCall(after, before) || after.Arguments == o.arguments {
		return after
	}
	written := *before
	written.Arguments = o.arguments
	return &written
}

// sameCall reports whether two calls are of the same tool with the same arguments, letter
// by letter.
func sameCall(a, b *agent.ToolCall) bool {
	return a == b || a.Name == b.Name && argumentsOf(*a) == argumentsOf(*b)
}

// sameArguments reports whether two texts of arguments are the same JSON value.
func sameArguments(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := parseJSON(lo.CoalesceOrEmpty(a, "{}"))
	y, errY := parseJSON(lo.CoalesceOrEmpty(b, "{}"))
	return errX == nil && errY == nil && sameJSON(x, y)
}

// judged reports whether the latest answer of control i is about the call as it stands.
func (d *deliberation) judged(i int) bool {
	about := d.latest[i].call
	return about != nil && sameCall(about, d.call.Call)
}

// agreed reports whether all controls have judged the call as it stands.
func (d *deliberation) agreed() bool {
	for i := range d.latest {
		if !d.judged(i) {
			return false
		}
	}
	return true
}

// disagreement is the denial of a call that the controls keep rewriting.
func (d *deliberation) disagreement() *Outcome {
	names := d.authors()
	return &Outcome{
		decision: Deny, point: PreToolUse, hook: lo.LastOrEmpty(names), failed: true, reason: disagreementOf(names),
	}
}

// authors returns the names of the controls whose latest answer is a rewrite.
func (d *deliberation) authors() []string {
	var names []string
	for _, j := range d.latest {
		if j.outcome.Decision() == Rewrite {
			names = append(names, j.outcome.hook)
		}
	}
	return names
}

// disagreementOf is why a call, an input or a run is denied that these hooks keep
// rewriting.
func disagreementOf(names []string) string {
	return fmt.Sprintf("the hooks could not agree in %d rounds: rewritten again and again by %s",
		mostRounds, strings.Join(names, ", "))
}

// answers iterates over the latest answers that have a say, in the order of asking.
func (d *deliberation) answers(yield func(*Outcome) bool) {
	for _, j := range d.latest {
		if j.outcome != nil && !yield(j.outcome) {
			return
		}
	}
}

// effects joins the effects of the latest answers, in the order of asking, behind those
// that came with the call; without the ones of control i, if i is not negative.
func (d *deliberation) effects(without int) agent.Effects {
	all := d.call.Effects
	for i, j := range d.latest {
		if j.outcome != nil && i != without {
			all = all.Plus(j.outcome.effects)
		}
	}
	return all
}

// withEffects is the call as it stands, with what the hooks add.
func (d *deliberation) withEffects() *agent.Prepared {
	p := *d.call
	p.Effects = d.effects(-1)
	return &p
}

// tellConflicts tells the observers of the run which metadata several controls have set.
func (d *deliberation) tellConflicts(ctx context.Context, s agent.State) {
	var earlier agent.Effects
	for o := range d.answers {
		if o.effects.Len() > 0 {
			tellConflicts(ctx, s, PreToolUse, earlier, o.effects)
			earlier = earlier.Plus(o.effects)
		}
	}
}

// first is the first of the latest answers with that decision, or nil.
func (d *deliberation) first(decision Decision) *Outcome {
	for o := range d.answers {
		if o.decision == decision {
			return o
		}
	}
	return nil
}

// settle folds the latest answers: the call as it was decided upon, and the outcome that
// counts.
func (d *deliberation) settle(ctx context.Context, s agent.State) (*agent.Prepared, *Outcome) {
	d.tellConflicts(ctx, s)
	p := d.withEffects()
	ask, mock := d.first(Ask), d.first(Mock)
	counts, _ := lo.Coalesce(d.final, ask, mock, d.last(Rewrite), d.first(Allow))
	switch {
	case d.final != nil && d.final.decision == StopRun:
		p.Disposition, p.Stop, p.Answer = agent.DisposeStop, signalOf(d.final), nil
	case p.Disposition == agent.DisposeStop: // hooks further in stopped the run
		counts = nil
	case d.final != nil:
		p.Disposition, p.Answer = agent.DisposeAnswer, denial(p.Call, d.final)
	case answered(p): // invalid: the model must mend the call first; or denied further in
		counts, _ = lo.Coalesce(d.last(Rewrite), d.first(Allow))
	default:
		if mock != nil {
			p.Answer = mockedAnswer(p, mock)
			p.Disposition = max(p.Disposition, agent.DisposeAnswer)
		}
		if ask != nil {
			p.Disposition, p.Question = agent.DisposeAsk, questionOf(ask)
		}
	}
	return p, counts
}

// last is the last of the latest answers with that decision, or nil.
func (d *deliberation) last(decision Decision) (found *Outcome) {
	for o := range d.answers {
		if o.decision == decision {
			found = o
		}
	}
	return found
}

// questionOf is what a person is asked, in the name of the hook that wants it.
func questionOf(ask *Outcome) *agent.Question {
	q := agent.Question{Reason: ask.reason}
	if ask.question != nil {
		q = *ask.question
	}
	q.By = ask.hook
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

// mockedAnswer is the answer that a hook gives in the tool's place.
func mockedAnswer(p *agent.Prepared, mock *Outcome) *agent.ToolResult {
	r := *mock.mock
	r.Status, r.DecidedBy = agent.ToolMocked, mock.hook
	return r.To(p)
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
