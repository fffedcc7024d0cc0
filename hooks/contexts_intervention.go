package hooks

import (
	"slices"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// The points of interventions.
var (
	interventionRequested, _ = infoOf(InterventionRequested)
	interventionResolved, _  = infoOf(InterventionResolved)
	interventionStopped, _   = infoOf(InterventionStopped)
)

// batchView is the common part of the contexts at the points of interventions: all calls in the step that a person is
// asked about.
type batchView struct {
	contextView
	batch []agent.Intervention
}

// Interventions returns every call in the step that a person is asked about, in call order.
func (c batchView) Interventions() []agent.Intervention { return slices.Clone(c.batch) }

// CallIDs returns the IDs of the calls in Interventions.
func (c batchView) CallIDs() []string {
	return lo.Map(c.batch, func(i agent.Intervention, _ int) string { return i.CallID() })
}

// CallID returns the ID of the only call in Interventions. ok is false when there are several.
func (c batchView) CallID() (id string, ok bool) {
	if len(c.batch) != 1 {
		return "", false
	}
	return c.batch[0].CallID(), true
}

// InterventionContext is the context of AtInterventionRequested.
type InterventionContext struct {
	batchView
	p *agent.Prepared // with the changes so far
}

// Call returns the call that the person is asked about, with earlier rewrites.
func (c InterventionContext) Call() Call { return Call{*c.p.Call} }

// Original returns the model's original call.
func (c InterventionContext) Original() Call { return Call{*c.p.Original} }

// Tool returns the tool's name.
func (c InterventionContext) Tool() string { return c.p.Call.Name }

// Questions returns the questions about the call: which hooks ask and why, with earlier hooks' answers for the person.
func (c InterventionContext) Questions() agent.Questions { return slices.Clone(c.p.Questions()) }

// Allow leaves the decision to the person.
func (c InterventionContext) Allow() Result { return c.allowWith(nil) }

// Deny forbids the call. No person is asked, and the model receives the reason. Every hook may deny.
func (c InterventionContext) Deny(reason string) Result {
	return c.newAnswer(Outcome{decision: Deny, reason: reason}, nil)
}

// Rewrite asks the person about other arguments, even if an earlier hook has approved the
// call with its old arguments. After an approval, the rewritten call is checked against the
// tool's schema and judged by the controls.
func (c InterventionContext) Rewrite(arguments any) Result {
	text, err := strictjson.Marshal(arguments)
	if err == nil {
		err = strictjson.CheckObject(text)
	}
	if err != nil {
		err = &rewriteError{err}
	}
	return c.newAnswer(Outcome{decision: Rewrite, arguments: text, invalid: err}, nil)
}

// Approve answers for the person: the call may run with its current arguments. It answers only the questions that the
// hook may answer. A required policy's question requires a hook from a required policy. Another question requires a
// priority that is not lower than the asking hook's priority. No hook may answer whether a call in doubt is repeated.
// The remaining questions go to the person, and an event of kind HookSkipped says why. If a later hook rewrites the
// call, the answers are void.
func (c InterventionContext) Approve(reason string) Result {
	return c.newAnswer(Outcome{decision: Approve, reason: reason}, nil)
}

// RejectAndEnd answers for the person: the call does not run, and the run ends as interrupted. Policies call it reject.
// To let the run continue, use Deny. Every hook may reject. RejectAndEnd takes precedence over Deny.
func (c InterventionContext) RejectAndEnd(reason string) Result {
	return c.newAnswer(Outcome{decision: RejectAndEnd, reason: reason}, nil)
}

func (c InterventionContext) toolCall() *agent.ToolCall { return c.p.Call }

// InterventionResolvedContext is the context of AtInterventionResolved.
type InterventionResolvedContext struct{ batchView }

// InterventionStoppedContext is the context of AtInterventionStopped.
type InterventionStoppedContext struct{ batchView }
