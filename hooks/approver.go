package hooks

import (
	"context"
	"fmt"
	"slices"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// WrapApprover wraps an approver with the hooks at InterventionRequested and
// InterventionResolved.
func (c *Compiled) WrapApprover(inner agent.Approver) agent.Approver {
	if pointsOf(c).requested.empty() && pointsOf(c).resolved.empty() && pointsOf(c).stopped.empty() {
		return inner
	}
	return &hookedApprover{inner, c}
}

type hookedApprover struct {
	inner agent.Approver
	hooks *Compiled
}

// interventions is the run's last batch of calls that a person was asked about, with the answers. The hooks at
// InterventionStopped receive it.
var interventions = agent.NewScratch[[]agent.Intervention](nil)

// Approve asks the hooks first, call by call. If they do not decide a call, it asks the person, whose answer applies to
// all open questions about the call. If the person was asked about a call before the run was parked, it asks only new
// questions, about the same call.
func (x *hookedApprover) Approve(ctx context.Context, s agent.State, pending []*agent.Prepared) ([]agent.Approval, error) {
	batch := make([]agent.Intervention, len(pending))
	for i, p := range pending {
		batch[i] = interventionOf(s, p)
	}
	answers := make([]agent.Approval, len(pending))
	var rest []*agent.Prepared
	var places []int
	for i, p := range pending {
		if before, ok := askedBefore(s, p); ok {
			shown := *p
			shown.Call = &before.Call
			rest, places = append(rest, &shown), append(places, i)
			continue
		}
		shown, answer, err := x.askHooks(ctx, s, p, slices.Clone(batch)) // hooks may keep the slice
		if err != nil {
			return nil, err
		}
		batch[i].Call, batch[i].Questions = *shown.Call, shown.Questions()
		if answer != nil {
			answers[i] = *answer
			answers[i].Questions = shown.Questions()
			continue
		}
		rest, places = append(rest, shown), append(places, i)
	}
	if len(rest) > 0 {
		said, err := x.inner.Approve(ctx, s, rest)
		if err == nil && len(said) != len(rest) {
			err = fmt.Errorf("the approver gave %d answers to %d questions", len(said), len(rest))
		}
		if err != nil {
			return nil, err
		}
		for n, i := range places {
			answers[i] = said[n]
			answers[i].Questions = rest[n].Questions()
			if changed := rest[n].Call.Arguments; answers[i].Arguments == "" && changed != pending[i].Call.Arguments {
				answers[i].Arguments = changed // the approval is about these arguments
			}
		}
	}
	return x.resolve(ctx, s, batch, answers)
}

// askedBefore returns the intervention about a call from before the run was parked, if the
// call has no new question.
func askedBefore(s agent.State, p *agent.Prepared) (agent.Intervention, bool) {
	before, ok := agent.Checkpoint(s).Intervention(p.Original.ID)
	if !ok || !before.Covers(*p.Call) {
		return before, false
	}
	return before, lo.EveryBy(p.Questions().Open(), func(q agent.Question) bool {
		return slices.ContainsFunc(before.Questions, func(known agent.Question) bool { return known.ID() == q.ID() })
	})
}

// interventionOf returns the intervention that asks a person about a call.
func interventionOf(s agent.State, p *agent.Prepared) agent.Intervention {
	i := agent.Intervention{Original: *p.Original, Call: *p.Call}
	if before, ok := askedBefore(s, p); ok {
		i = before
	}
	i.Questions = p.Questions().WithoutAnswers()
	return i
}

// askHooks asks the hooks about a call before a person is asked. It returns the call that the person is shown, with
// hooks' answers in its questions. answer decides the call if no person is needed. It is a rejection (RejectAndEnd
// takes precedence over Deny), or an approval of every question by a hook that may answer it.
func (x *hookedApprover) askHooks(ctx context.Context, s agent.State, p *agent.Prepared, batch []agent.Intervention) (*agent.Prepared, *agent.Approval, error) {
	var last *Outcome
	var rejected *agent.Approval
	view := func(frozen *Outcome) InterventionContext {
		return InterventionContext{batchView{contextView{state: s, info: interventionRequested, frozen: frozen}, batch}, p}
	}
	for _, e := range pointsOf(x.hooks).requested.controls {
		c := view(nil)
		o, err := e.consult(ctx, c)
		if err != nil {
			return nil, nil, err
		}
		if o == nil || rejected != nil && o.decision != RejectAndEnd {
			continue
		}
		shown := *p
		switch o.decision {
		case Deny:
			rejected = &agent.Approval{Verdict: agent.RejectAndContinue, Author: agent.AuthorHook, By: o.hook, Reason: o.reason}
		case RejectAndEnd:
			rejected = &agent.Approval{Verdict: agent.RejectAndEnd, Author: agent.AuthorHook, By: o.hook, Reason: o.reason}
		case Approve:
			if shown.SetQuestions(e.answerFor(c, o)); len(shown.Questions().Open()) == len(p.Questions().Open()) {
				continue // the hook may not answer any question
			}
		case Rewrite:
			if p.Begun || p.Questions().InDoubt() {
				e.tellIgnored(ctx, c, HookConflict, "the call has begun and cannot be changed")
				continue
			}
			if p.Call.Arguments != o.arguments {
				call := *p.Call
				call.Arguments = o.arguments
				shown.Call = &call
				shown.SetQuestions(p.Questions().WithoutAnswers())
			}
		}
		p = &shown
		if last == nil || o.decision != Allow {
			last = o
		}
		if o.decision == RejectAndEnd {
			break
		}
	}
	answer := rejected
	if answer == nil {
		answer = p.Questions().Decision()
	}
	return p, answer, pointsOf(x.hooks).requested.announce(ctx, x.hooks.pool, view(last))
}

// resolve calls the hooks at InterventionResolved if all calls were answered. A rejection that ends the run also
// decides the calls without an answer. They are part of the batch and have no answer.
func (x *hookedApprover) resolve(ctx context.Context, s agent.State, batch []agent.Intervention, answers []agent.Approval) ([]agent.Approval, error) {
	ends := slices.ContainsFunc(answers, func(a agent.Approval) bool { return a.Verdict == agent.RejectAndEnd })
	for i := range answers {
		if answers[i].Verdict == agent.Park && !ends {
			return answers, nil
		}
		batch[i] = batch[i].WithAnswer(answers[i])
	}
	*interventions.Get(s) = batch
	c := InterventionResolvedContext{batchView{contextView{state: s, info: interventionResolved}, batch}}
	if err := pointsOf(x.hooks).resolved.announce(ctx, x.hooks.pool, c); err != nil {
		return nil, err
	}
	return answers, nil
}

// tellStopped tells the hooks that a person's rejection has ended the run. The hooks cannot
// change that.
func (c *Compiled) tellStopped(ctx context.Context, s agent.State) {
	if s.Status() != agent.StatusInterrupted || pointsOf(c).stopped.empty() {
		return
	}
	batch := *interventions.Get(s)
	_ = pointsOf(c).stopped.announce(ctx, c.pool, InterventionStoppedContext{batchView{contextView{state: s, info: interventionStopped}, batch}})
}
