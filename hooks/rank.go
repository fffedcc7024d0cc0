package hooks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// mayNotAnswer returns the reason why a hook must not approve a question for a person. It is empty when the hook may.
// Every hook may reject.
func (e *entry[C]) mayNotAnswer(q agent.Question) string {
	switch {
	case q.Kind != agent.QuestionOrdinary:
		return fmt.Sprintf("a question of kind %q is for a person", q.Kind)
	case q.Restricted():
		return fmt.Sprintf("the question of %s is for people whose identity is verified", q.By)
	case q.Required && (e.origin == nil || !e.origin.Required):
		return fmt.Sprintf("the question of %s is of a required policy", q.By)
	case q.Required && e.origin.Layer > q.Layer:
		return fmt.Sprintf("the question of %s is of a required policy in an outer layer", q.By)
	case !q.Required && e.priority < q.Priority:
		return fmt.Sprintf("the question of %s has priority %d, and this hook %d", q.By, q.Priority, e.priority)
	}
	return ""
}

// answerFor returns the call's questions. It adds the hook's approval to the open questions that the hook may answer.
func (e *entry[C]) answerFor(c InterventionContext, o *Outcome) agent.Questions {
	answer := agent.Approval{Verdict: agent.Approve, Author: agent.AuthorHook, By: e.name, Reason: o.reason, Arguments: c.p.Call.Arguments}
	questions := slices.Clone(c.p.Questions())
	for i, q := range questions {
		if q.Decision() == nil && e.mayNotAnswer(q) == "" {
			questions[i].Answers = append(slices.Clip(q.Answers), answer)
		}
	}
	return questions
}

// refusedAnswers returns the reasons why the hook may not approve some of the open questions. some reports whether it
// may approve any of them.
func (e *entry[C]) refusedAnswers(questions agent.Questions) (why string, some bool) {
	open := questions.Open()
	refused := lo.FilterMap(open, func(q agent.Question, _ int) (string, bool) {
		why := e.mayNotAnswer(q)
		return why, why != ""
	})
	return strings.Join(lo.Uniq(refused), "; "), len(refused) < len(open)
}

// tellApproval sends the event of a hook that approved for a person. If the hook may not answer any question, the event
// is a HookSkipped. If it may answer only some of them, there are two events.
func (e *entry[C]) tellApproval(ctx context.Context, c InterventionContext, ev Event) {
	why, some := e.refusedAnswers(c.p.Questions())
	if some || why == "" {
		c.state.Emit(ctx, ev)
	}
	if why != "" {
		ev.Kind, ev.Reason = HookSkipped, "the hook may not answer: "+why
		c.state.Emit(ctx, ev)
	}
}

// tellIgnored sends an event for an answer that has no effect.
func (e *entry[C]) tellIgnored(ctx context.Context, c C, kind EventKind, why string) {
	if !c.State().Observed() {
		return
	}
	ev := e.event(c, kind, 1)
	ev.Reason = why
	c.State().Emit(ctx, ev)
}
