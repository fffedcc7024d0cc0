package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"
	"github.com/samber/mo"
)

// A call that has returned an InputError waits for a person. When the approver answers at once, the step continues like
// a resumed step. Every call without a result is prepared again, so that the controls judge it, and is then executed.

// CheckInputRequest returns an error when the call must not ask for this input. That is so when it has asked too often,
// or when the request cannot be shown or stored. Executors call it so that the call fails in their own way. The loop
// calls it, too.
func (p *Prepared) CheckInputRequest(e *InputError) error {
	given, _ := p.Input()
	if p.Disposition != DisposeRun {
		return errors.New("it asks for input, but it does not run")
	}
	return e.check(len(given))
}

// wronglyAsked returns the result for a call whose request for input is not allowed.
func (p *Prepared) wronglyAsked(err error) *ToolResult {
	r := NotExecuted(p.Call, ReasonError, "", fmt.Sprintf("tool %q: failed: %v", p.Call.Name, err))
	r.Status, r.Attempts, r.Err = ToolFailed, 1, err
	return p.withDecision(r.To(p))
}

// awaitPending asks for the input that calls in the batch need. When all requests are answered, it continues the step.
// Otherwise it returns the parked state. Waiting is the state with the open step.
func (a *Agent) awaitPending(
	ctx context.Context, waiting State, reply *Step, started time.Time, batch []*Prepared, pending []pendingCall,
) mo.Result[State] {
	var asking []*Prepared
	var places []int
	for i, w := range pending {
		if w.input != nil {
			given, _ := batch[i].Input()
			one := batch[i].withInputRequest(w.input.Request, len(given)+1).withTool(a.toolFor(waiting, batch[i].Call.Name))
			asking, places = append(asking, one), append(places, i)
		}
	}
	if len(asking) == 0 {
		return mo.Ok(waiting.suspend())
	}
	answers, err := a.ask(ctx, waiting, asking)
	if ctx.Err() != nil {
		answers, err = make([]Approval, len(asking)), nil
		for n := range answers {
			answers[n].Verdict = Park // no person has answered
		}
	}
	if err != nil {
		err = fmt.Errorf("asking for input: %w", err)
		results := resultsOf(waiting, len(batch))
		err = errors.Join(err, a.endChildren(ctx, waiting, batch, results))
		return mo.Err[State](&StepError{waiting.record(reply, results, started, newFailure(err, KindUnknown)), err})
	}
	ends := slices.ContainsFunc(answers, func(one Approval) bool { return one.Verdict == RejectAndEnd })
	later := !ends && slices.ContainsFunc(answers, func(one Approval) bool { return one.Verdict == Park })
	unanswered := map[int]*ToolResult{}
	calls := slices.Clone(waiting.read().open.calls)
	for n, i := range places {
		asked := interventionAbout(asking[n], time.Now())
		asked.input = nil // the call has newer input
		asked.Round = calls[i].round() + 1
		*asked = asked.WithID(waiting.Run().ID, waiting.RunStepCount())
		if wrong := asked.CheckInput(answers[n]); wrong != nil && answers[n].Verdict == Approve {
			unanswered[i] = asking[n].noInput(ReasonInvalid, fmt.Sprintf("the answer of %s does not fit: %v", orPerson(answers[n].By), wrong))
		} else if !answers[n].Verdict.final() && !later && !ends {
			unanswered[i] = asking[n].noInput(ReasonNobodyToAsk, "there is no person to ask")
		}
		if answers[n].Verdict.final() {
			*asked = asked.WithAnswer(answers[n])
		}
		calls[i].ask(asked)
	}
	waiting = waiting.withOpen(waiting.read().open.withCallStates(calls))
	switch {
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), ErrSuspended):
		results := resultsOf(waiting, len(batch))
		return a.recordEnded(waiting, reply, results, started, a.endChildren(ctx, waiting, batch, results))
	case later || ctx.Err() != nil:
		return mo.Ok(waiting.suspend())
	}
	for i, r := range unanswered {
		q := *batch[i]
		q.Disposition, q.Answer = DisposeAnswer, r
		if calls[i].result, err = a.executeCall(ctx, waiting, i, &q); err != nil {
			results := resultsOf(waiting, len(batch))
			results[i] = calls[i].result
			return a.recordEnded(waiting, reply, results, started, errors.Join(err, a.endChildren(ctx, waiting, batch, results)))
		}
	}
	waiting = waiting.withOpen(waiting.read().open.withCallStates(calls))
	return a.performCalls(ctx, waiting, &waiting.read().open.reply, started)
}

// recordEnded records a step that ends the run. Broken is the error that ended it, if any.
func (*Agent) recordEnded(s State, reply *Step, results []*ToolResult, started time.Time, broken error) mo.Result[State] {
	if broken != nil {
		return mo.Err[State](&StepError{s.record(reply, results, started, newFailure(broken, KindUnknown)), broken})
	}
	return mo.Ok(s.record(reply, results, started, nil))
}

// resultsOf returns the results of the open step's calls. A call without a result has nil.
func resultsOf(s State, calls int) []*ToolResult {
	results := make([]*ToolResult, calls)
	for i := range results {
		results[i] = s.read().open.resultOf(i)
	}
	return results
}

// withInputRequest returns the call with the question for input. Number counts the call's requests.
func (p *Prepared) withInputRequest(r InputRequest, number int) *Prepared {
	r.Number = number
	q := *p
	q.Disposition, q.Begun, q.Answer = DisposeAsk, true, nil
	q.SetQuestions(Questions{r.question()})
	return &q
}

// noInput answers the call when it does not get the input that it needs.
func (p *Prepared) noInput(reason ReasonCode, why string) *ToolResult {
	return NotExecuted(p.Call, reason, "", fmt.Sprintf("tool %q: %s: %s", p.Call.Name, p.Questions().Reason(), why))
}

// resumeInput returns call i, which has begun, with the answers to its requests for input. The call does not run again
// if the answer ends the run, or if the run ended before an answer.
func (o *openStep) resumeInput(i int, p *Prepared) *Prepared {
	c := o.at(i)
	if c.input == nil {
		return p
	}
	q, in := *p, *c.input
	for _, one := range c.requests() {
		a := one.Decision()
		if a != nil && a.Verdict != RejectAndEnd {
			in.given = append(slices.Clip(in.given), one.Input.newGiven(a))
			continue
		}
		q.Disposition = DisposeAnswer
		if a == nil {
			q.Answer = NotExecuted(q.Call, ReasonRunStopped, "", fmt.Sprintf("tool %q: %s: a person ended the run", q.Call.Name, one.Reason))
			continue
		}
		q.Answer = NotExecuted(q.Call, ReasonRejected, a.By,
			fmt.Sprintf("tool %q: %s: rejected by %s: %s", q.Call.Name, one.Reason, orPerson(a.By), orNoReason(a.Reason)))
		q.Stop = &Signal{Reason: StopRejected, Message: orNoReason(a.Reason), Source: orPerson(a.By)}
	}
	q.changeApprovalData(func(rest *approvalData) { rest.input = &in })
	return &q
}

// answerUnfinished answers the call when it asked for input and does not run again. It ran and has no result.
func (c *openCall) answerUnfinished(p *Prepared) *Prepared {
	if p.Answer.Status != ToolNotExecuted && p.Answer.Status != "" {
		return p
	}
	r := *p.Answer
	why := strings.TrimPrefix(strings.TrimPrefix(r.Text(), fmt.Sprintf("tool %q: ", p.Call.Name)), "not executed: ")
	r.Status, r.Attempts = ToolFailed, 1
	r.Content = TextContent(fmt.Sprintf("tool %q: no result: %s", p.Call.Name, lo.CoalesceOrEmpty(why, "it had asked for input")))
	q := *p
	q.Call, q.Begun = c.begun, true
	q.Answer = r.To(&q)
	return &q
}
