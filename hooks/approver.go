package hooks

import (
	"context"
	"fmt"
	"slices"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// WrapApprover puts the hooks at InterventionRequested and InterventionResolved around
// whoever is asked.
func (c *Compiled) WrapApprover(inner agent.Approver) agent.Approver {
	if c.requested.empty() && c.resolved.empty() && c.stopped.empty() {
		return inner
	}
	return &hookedApprover{inner, c}
}

type hookedApprover struct {
	inner agent.Approver
	hooks *Compiled
}

// interventions is the last batch of a run that a person was asked about, with what
// was said: for the hooks at InterventionStopped.
var interventions = agent.NewScratch[[]agent.Intervention](nil)

// Approve asks the hooks first, call by call. Calls that they have not answered go to
// the person. A call that was asked about before, when the run was parked, is not
// asked about again: it is shown to the person as it was.
func (x *hookedApprover) Approve(ctx context.Context, s agent.State, pending []*agent.Prepared) mo.Result[[]agent.Approval] {
	batch := make([]agent.Intervention, len(pending))
	for i, p := range pending {
		batch[i] = interventionOf(s, p)
	}
	answers := make([]agent.Approval, len(pending))
	var rest []*agent.Prepared
	var places []int
	for i, p := range pending {
		if before, ok := s.Intervention(p.Original.ID); ok && before.Covers(*p.Call) {
			shown := *p
			shown.Call = &before.Call
			rest, places = append(rest, &shown), append(places, i)
			continue
		}
		shown, answer, err := x.request(ctx, s, p, slices.Clone(batch)) // hooks may keep theirs
		if err != nil {
			return mo.Err[[]agent.Approval](err)
		}
		if answer != nil {
			answers[i] = *answer
			continue
		}
		batch[i].Call = *shown.Call
		rest, places = append(rest, shown), append(places, i)
	}
	if len(rest) > 0 {
		said, err := x.inner.Approve(ctx, s, rest).Get()
		if err == nil && len(said) != len(rest) {
			err = fmt.Errorf("the approver gave %d answers to %d questions", len(said), len(rest))
		}
		if err != nil {
			return mo.Err[[]agent.Approval](err)
		}
		for n, i := range places {
			answers[i] = said[n]
			if changed := rest[n].Call.Arguments; answers[i].Arguments == "" && changed != pending[i].Call.Arguments {
				answers[i].Arguments = changed // the yes, and the question, are about this
			}
		}
	}
	return x.resolve(ctx, s, batch, answers)
}

// interventionOf is what a person is asked about a call.
func interventionOf(s agent.State, p *agent.Prepared) agent.Intervention {
	if before, ok := s.Intervention(p.Original.ID); ok && before.Covers(*p.Call) {
		before.Answer = nil
		return before
	}
	i := agent.Intervention{Original: *p.Original, Call: *p.Call}
	if p.Question != nil {
		i.Question = *p.Question
	}
	return i
}

// request asks the hooks about a call that a person is to be asked about. The first that
// says no ends the asking. A yes in the person's place counts unless a later one says no
// or makes another call of it.
func (x *hookedApprover) request(ctx context.Context, s agent.State, p *agent.Prepared, batch []agent.Intervention) (*agent.Prepared, *agent.Approval, error) {
	var last *Outcome
	var answer *agent.Approval
	view := func(frozen *Outcome) InterventionContext {
		return InterventionContext{batchView{Common{state: s, info: interventionRequested, frozen: frozen}, batch}, p}
	}
	for _, e := range x.hooks.requested.controls {
		o, err := e.consult(ctx, view(nil))
		if err != nil {
			return nil, nil, err
		}
		if o == nil {
			continue
		}
		switch o.decision {
		case Deny:
			answer = &agent.Approval{Verdict: agent.RejectAndContinue, By: o.hook, Reason: o.reason}
		case Approve:
			answer = &agent.Approval{Verdict: agent.Approve, By: o.hook, Reason: o.reason}
		case Reject:
			answer = &agent.Approval{Verdict: agent.Reject, By: o.hook, Reason: o.reason}
		case Rewrite:
			call, shown := *p.Call, *p
			if call.Arguments != o.arguments {
				answer = nil // a yes was to the call as it was
			}
			call.Arguments = o.arguments
			shown.Call, p = &call, &shown
		}
		if last == nil || o.decision != Allow {
			last = o
		}
		if o.decision == Deny || o.decision == Reject {
			break // a later control may still say no to a yes, and not the other way round
		}
	}
	if answer != nil && answer.Verdict == agent.Approve {
		answer.Arguments = p.Call.Arguments
	}
	return p, answer, x.hooks.requested.announce(ctx, x.hooks.pool, view(last))
}

// resolve tells the hooks that everything was answered, if it was.
func (x *hookedApprover) resolve(ctx context.Context, s agent.State, batch []agent.Intervention, answers []agent.Approval) mo.Result[[]agent.Approval] {
	for i := range answers {
		if answers[i].Verdict == agent.Park {
			return mo.Ok(answers)
		}
		answer := answers[i]
		batch[i].Answer = &answer
	}
	*interventions.Of(s) = batch
	c := InterventionResolvedContext{batchView{Common{state: s, info: interventionResolved}, batch}}
	if err := x.hooks.resolved.announce(ctx, x.hooks.pool, c); err != nil {
		return mo.Err[[]agent.Approval](err)
	}
	return mo.Ok(answers)
}

// tellStopped tells the hooks that a person's no has ended the run. Nothing that they
// do changes that.
func (c *Compiled) tellStopped(ctx context.Context, s agent.State) {
	if s.Status() != agent.StatusInterrupted || c.stopped.empty() {
		return
	}
	batch := *interventions.Of(s)
	_ = c.stopped.announce(ctx, c.pool, InterventionStoppedContext{batchView{Common{state: s, info: interventionStopped}, batch}})
}
