package agent

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/errguard"
)

// mostRounds limits how often the approver is asked about a batch again. That happens when a control changes the
// arguments that a person has set.
const mostRounds = 4

// approveCalls asks a person about the calls that need approval. No call of the batch has run yet. When the approver
// postpones an answer, the step parks and waits for the interventions in parked.
func (a *Agent) approveCalls(ctx context.Context, s State, m Message, batch []*Prepared) (decided []*Prepared, parked []*Intervention, err error) {
	for round := 0; ; round++ {
		pending := make([]*Prepared, 0, len(batch))
		for i, p := range batch {
			if p.Disposition == DisposeAsk {
				batch[i] = p.withTool(a.toolFor(s, p.Call.Name))
				pending = append(pending, batch[i])
			}
		}
		if len(pending) == 0 {
			return batch, nil, nil
		}
		answers, err := a.ask(ctx, s, pending)
		if ctx.Err() != nil { // an approval after the context's end does not count
			return settleCalls(m, batch, ReasonCancelled, "not executed: the run was cancelled"), nil, nil //nolint:nilerr // cancelled: no failure
		}
		if err != nil {
			return settleCalls(m, batch, ReasonRunStopped, "not executed: the run failed"), nil, fmt.Errorf("asking for approval: %w", err)
		}
		if parked := park(s, m, batch, answers, time.Now()); parked != nil {
			return nil, parked, nil
		}
		next := 0
		for i, p := range batch {
			if p.Disposition != DisposeAsk {
				continue
			}
			if batch[i], err = a.decideByAnswer(ctx, s, p, answers[next], round); err != nil {
				return settleCalls(m, batch, ReasonRunStopped, "not executed: the run failed"), nil, err
			}
			if batch[i].Disposition == DisposeStop { // a control stopped the run because of the changed arguments
				return stopCalls(m, batch[:i+1]), nil, nil
			}
			next++
		}
	}
}

// ask returns the approver's answers, one for each question.
func (a *Agent) ask(ctx context.Context, s State, pending []*Prepared) ([]Approval, error) {
	if a.config.Approver != nil {
		tellRequests(ctx, s, pending)
	}
	asked := time.Now()
	answers, err := approveSafely(ctx, a.approver, s, pending)
	if err == nil && len(answers) != len(pending) {
		err = fmt.Errorf("the approver gave %d answers to %d questions", len(answers), len(pending))
	}
	if err != nil {
		return nil, errguard.Check(err)
	}
	took := time.Since(asked)
	if err := replaceLate(pending, answers, took); err != nil {
		return nil, err
	}
	for i := range answers {
		if answers[i].At.IsZero() && answers[i].Verdict.final() {
			answers[i].At = asked.Add(took).Round(0)
		}
	}
	tellAnswers(ctx, s, pending, answers)
	return answers, nil
}

// replaceLate replaces the approvals that came after the deadline of their questions.
func replaceLate(pending []*Prepared, answers []Approval, took time.Duration) error {
	for i, p := range pending {
		if p.isAnswered() {
			continue
		}
		onTimeout, within := p.Questions().OnTimeout(), p.Questions().Within()
		late := within > 0 && took >= within
		switch a := answers[i]; {
		case a.TimedOut() && (!late || a.Verdict != onTimeout):
			return errors.New("the approver answered as if a deadline had passed")
		case late && took > within && a.Verdict == Approve && !a.TimedOut(): // the answer came too late
			answers[i] = Approval{Verdict: onTimeout, Author: AuthorDeadline, By: byTimeout, Reason: errNoAnswer.Error()}
		}
	}
	return nil
}

// isAnswered reports whether the call was decided while the run was parked.
func (p *Prepared) isAnswered() bool { return p.Questions().Decision() != nil }

// tellRequests tells the observers about the calls that a person is asked about.
func tellRequests(ctx context.Context, s State, pending []*Prepared) {
	l := s.read().live
	if !l.watched() {
		return
	}
	for _, p := range pending {
		if !p.isAnswered() {
			l.tell(ctx, ApprovalRequested{s.Run(), s.RunStepCount(), *p.Call, p.Questions()})
		}
	}
}

// tellAnswers tells the observers about the answers, without the input that people gave.
func tellAnswers(ctx context.Context, s State, pending []*Prepared, answers []Approval) {
	l := s.read().live
	if !l.watched() {
		return
	}
	for i, p := range pending {
		if !answers[i].Verdict.final() {
			continue
		}
		told := answers[i]
		told.Questions, told.Input = nil, ""
		questions := p.questionsWith(answers[i]).each(func(q *Question) {
			q.Answers = slices.Clone(q.Answers)
			for i := range q.Answers {
				q.Answers[i].Input = ""
			}
		})
		l.tell(ctx, ApprovalCompleted{s.Run(), s.RunStepCount(), *p.Call, told, questions.Answers(), questions})
	}
}

// approveSafely calls an approver and returns its panic as an error.
func approveSafely(ctx context.Context, x Approver, s State, pending []*Prepared) (answers []Approval, err error) {
	defer func() {
		if v := recover(); v != nil {
			answers, err = nil, fmt.Errorf("the approver panicked: %v\n\n%s", v, debug.Stack())
		}
	}()
	return x.Approve(ctx, s, pending)
}

// park returns the interventions that the step waits for, or nil when no answer was postponed.
func park(s State, m Message, batch []*Prepared, answers []Approval, now time.Time) []*Intervention {
	later, ends := false, false
	for _, answer := range answers {
		later = later || answer.Verdict == Park
		ends = ends || answer.Verdict == RejectAndEnd
	}
	if later && ends { // the other answers are no longer needed
		for i := range answers {
			if answers[i].Verdict == Park {
				answers[i].Verdict = withdrawn
			}
		}
	}
	if !later || ends {
		return nil
	}
	waits := make([]*Intervention, m.CallCount())
	next := 0
	for i, p := range batch {
		if p.Disposition != DisposeAsk {
			continue
		}
		answer := answers[next]
		next++
		asked := interventionAbout(p, now)
		asked.Questions = p.questionsWith(answer)
		if answer.Arguments != "" && !asked.Begun { // a hook changed the call that the person sees
			asked.Call.Arguments = answer.Arguments
		}
		before := s.read().open.at(i)
		if before.asksTheSame(asked) {
			waits[i] = before.asked // decided: the person is not asked again
			continue
		}
		asked.Round = before.round() + 1
		waits[i] = new(asked.WithID(s.Run().ID, s.RunStepCount()))
	}
	return waits
}

// asksTheSame reports whether the same question about the call was asked before and decided.
func (c *openCall) asksTheSame(i *Intervention) bool {
	if c == nil || c.asked == nil || c.asked.used || c.asked.Begun != i.Begun || !c.asked.Call.IsSame(i.Call) ||
		c.asked.Schema != i.Schema || c.asked.Description != i.Description {
		return false
	}
	was := c.asked.Answer()
	return was != nil && i.Answer() != nil && slices.EqualFunc(c.asked.Questions, i.Questions, Question.isSameQuestion)
}

// toolFor returns the tool's description in this step: as offered to the model, or else as the agent has it.
func (a *Agent) toolFor(s State, name string) ToolSpec {
	for _, known := range []Tools{s.Request().Tools, a.config.Request.Tools} {
		if spec, ok := known.ByName(name); ok {
			return spec
		}
	}
	return ToolSpec{}
}

// withTool returns the call with the tool's schema and description as a person sees them.
func (p *Prepared) withTool(spec ToolSpec) *Prepared {
	q := *p
	q.changeApprovalData(func(rest *approvalData) {
		rest.schema, rest.description = spec.Parameters, ""
		if spec.External {
			rest.description = spec.Description
		}
	})
	return &q
}

// isAbout reports whether the tool still has the description and schema that the person saw. It checks only tools that
// another party describes.
func (i *Intervention) isAbout(spec ToolSpec) bool {
	switch {
	case !spec.External && i.Description == "":
		return true
	case !spec.External || spec.Description != i.Description:
		return false
	}
	return sameJSON(spec.Parameters, i.Schema)
}

// interventionAbout returns the intervention that asks a person about a call.
func interventionAbout(p *Prepared, now time.Time) *Intervention {
	i := &Intervention{
		Original: *p.Original, Call: *p.Call, Questions: p.Questions(), Asked: now, Begun: p.Begun,
		Schema: p.approvalData().schema, Description: p.approvalData().description, prepared: p.Call.digest(), input: p.approvalData().input,
	}
	if within := p.Questions().Within(); within > 0 {
		i.Deadline = now.Add(within)
	}
	return i
}

// questionsWith returns the questions of the call with an approver's answer added.
func (p *Prepared) questionsWith(a Approval) Questions {
	questions := p.Questions()
	if a.Questions != nil {
		questions = questions.withAnswersOf(a.Questions.keepAdmissible(questions))
	}
	if a.Verdict.final() {
		questions = questions.WithAnswer(a)
	}
	return questions
}

// decideByAnswer applies a person's answer to the call p and returns the decided call.
func (a *Agent) decideByAnswer(ctx context.Context, s State, p *Prepared, answer Approval, round int) (*Prepared, error) {
	q := *p
	q.SetQuestions(p.questionsWith(answer))
	answer.Questions = nil
	question := append(p.Questions().Open(), Question{})[0]
	switch answer.Verdict {
	case Approve:
		changed := answer.Arguments != "" && answer.Arguments != p.Call.Arguments
		if changed && p.Begun {
			q.Disposition = DisposeAnswer
			q.Answer = NotExecuted(p.Call, ReasonRejected, answer.By, "the arguments of a call that has begun cannot be changed")
			return &q, nil
		}
		if open := q.Questions().Open(); len(open) > 0 {
			q.Disposition = DisposeAnswer
			q.Answer = NotExecuted(p.Call, ReasonNobodyToAsk, open[0].By,
				fmt.Sprintf("tool %q: denied by %s: the approval of %s does not suffice: %s: only a durable run can wait for that",
					p.Call.Name, open[0].By, orPerson(answer.By), open[0].Needs()))
			return &q, nil
		}
		if changed {
			return a.prepareEdited(ctx, s, p, answer, round)
		}
		q.approveBy(answer)
	case NobodyToAsk:
		q.Disposition = DisposeAnswer
		q.Answer = NotExecuted(p.Call, ReasonNobodyToAsk, question.By, p.nobodyToAsk())
	case RejectAndEnd, RejectAndContinue:
		q.Disposition = DisposeAnswer
		q.Answer = NotExecuted(p.Call, ReasonRejected, answer.By,
			fmt.Sprintf("tool %q: rejected by %s: %s", p.Call.Name, orPerson(answer.By), orNoReason(answer.Reason)))
		if answer.Verdict == RejectAndEnd {
			q.Stop = &Signal{Reason: StopRejected, Message: orNoReason(answer.Reason), Source: orPerson(answer.By)}
		}
	case withdrawn:
		q.Disposition = DisposeAnswer
		q.Answer = NotExecuted(p.Call, ReasonRunStopped, "", "not executed: a person ended the run")
	default:
		return nil, fmt.Errorf("the approver gave the undefined verdict %d", answer.Verdict)
	}
	return &q, nil
}

// nobodyToAsk returns the text for the model when there is no person to ask about the call.
func (p *Prepared) nobodyToAsk() string {
	open := p.Questions().Open()
	anyone := Approval{Verdict: Approve}
	if special, ok := lo.Find(open, func(q Question) bool { return !q.Admits(anyone) }); ok {
		return fmt.Sprintf("tool %q: denied by %s: %s (%s): only a durable run can wait for that",
			p.Call.Name, special.By, special.Needs(), orNoReason(special.Reason))
	}
	question := append(open, Question{})[0]
	return fmt.Sprintf("tool %q: denied by %s: needs approval (%s) and there is no person to ask",
		p.Call.Name, question.By, orNoReason(question.Reason))
}

// approveBy approves the call: the tool runs, or the call's mock answers.
func (p *Prepared) approveBy(by Approval) {
	p.Disposition = DisposeRun
	p.changeApprovalData(func(rest *approvalData) { rest.approval, rest.granted = &by, p.Original.ID })
	if p.Answer != nil {
		p.Disposition = DisposeAnswer
	}
}

// grant records that the call with this ID is approved.
func (p *Prepared) grant(id string) {
	p.changeApprovalData(func(rest *approvalData) { rest.granted = id })
}

// prepareEdited returns the controls' decision on a call after a person, or a hook in a person's place, has changed its
// arguments. The approval answers the earlier questions, unless the controls change the call again. If the new
// arguments raise new questions, the person is asked these.
func (a *Agent) prepareEdited(ctx context.Context, s State, p *Prepared, answer Approval, round int) (*Prepared, error) {
	call := *p.Call
	call.Arguments = answer.Arguments
	q, err := a.executor.Prepare(ctx, s, &call).Get()
	if err != nil {
		q, err = stopInstead(err)
	}
	if err == nil {
		q, err = checkPrepared(q, &call)
	}
	if err != nil {
		return nil, fmt.Errorf("tool %q: preparing call %s as a person changed it: %w", call.Name, call.ID, err)
	}
	again := *q.withTool(a.toolFor(s, q.Call.Name))
	again.Original = p.Original
	if len(again.Questions()) == 0 {
		again.SetQuestions(p.Questions().WithoutAnswers())
	}
	same := again.Call.IsSame(call)
	switch {
	case again.Disposition == DisposeRun, again.Disposition == DisposeAsk && same:
		if !same { // a control changed the call without asking: the approval was for other arguments
			again.Disposition = DisposeAsk
			again.SetQuestions(again.Questions().union(p.Questions().WithoutAnswers()))
			break
		}
		if again.SetQuestions(again.Questions().withAnswerToThose(p.Questions(), answer)); len(again.Questions().Open()) > 0 {
			again.Disposition = DisposeAsk
			break
		}
		again.approveBy(answer)
	}
	if again.Disposition == DisposeAsk && round+1 >= mostRounds {
		again.Disposition = DisposeAnswer
		again.Answer = NotExecuted(again.Call, ReasonNobodyToAsk, "",
			fmt.Sprintf("tool %q: not executed: hooks changed the edited arguments again %d times", call.Name, round+1))
	}
	return &again, nil
}

// stored is the innermost approver. It uses the answers that were given while the run was parked, and asks the agent's
// approver about the other calls.
type stored struct{ ask Approver }

func (x stored) Approve(ctx context.Context, s State, pending []*Prepared) ([]Approval, error) {
	answers := make([]Approval, len(pending))
	ends := false
	var rest []*Prepared
	var places []int
	for i, p := range pending {
		if known := p.Questions().Decision(); known != nil {
			answers[i] = *known
			ends = ends || known.Verdict == RejectAndEnd
			continue
		}
		rest, places = append(rest, p), append(places, i)
	}
	switch {
	case len(rest) == 0:
		return answers, nil
	case ends, x.ask == nil:
		for _, i := range places {
			answers[i] = Approval{Verdict: NobodyToAsk}
			if ends {
				answers[i].Verdict = withdrawn
			}
		}
		return answers, nil
	}
	more, err := approveSafely(ctx, x.ask, s, rest)
	if err == nil && len(more) != len(rest) {
		err = fmt.Errorf("the approver gave %d answers to %d questions", len(more), len(rest))
	}
	if err != nil {
		return nil, err
	}
	for n, i := range places {
		answers[i] = more[n]
	}
	return answers, nil
}

// withStored returns the call with its stored questions and answers from the time when the run was parked. A stored
// question stays even if no control asks it now. Its answer counts only for the call that the person saw. An answer
// that changes the arguments counts only when it decides the call.
func (o *openStep) withStored(i int, p *Prepared, tool ToolSpec) *Prepared {
	c := o.at(i)
	if c == nil || c.asked == nil || c.asked.used || p.Disposition != DisposeRun && p.Disposition != DisposeAsk {
		return p
	}
	stored := c.asked.storedFor(*p.Call).withoutKind(QuestionInput) // see resumeInput
	if len(stored) == 0 {
		return p
	}
	if !c.asked.isAbout(tool) {
		stored = stored.withoutApprovals()
	}
	q := *p
	q.Disposition = DisposeAsk
	questions := p.Questions().withAnswersOf(stored).union(stored)
	if d := questions.Decision(); d == nil && slices.ContainsFunc(questions, func(one Question) bool {
		a := one.Decision()
		return a != nil && a.Arguments != p.Call.Arguments
	}) {
		questions = questions.WithoutAnswers()
	}
	q.SetQuestions(questions)
	return &q
}

// storedFor returns the questions with only the answers that count for call c.
func (i *Intervention) storedFor(c ToolCall) Questions {
	if !i.Covers(c) {
		return i.Questions.WithoutAnswers()
	}
	return i.Questions.each(func(one *Question) {
		one.Answers = slices.Clone(one.Answers)
		for n := range one.Answers {
			if a := &one.Answers[n]; a.Verdict == Approve && a.Arguments == "" {
				a.Arguments = i.Call.Arguments // the arguments that the person was shown
			}
		}
	})
}
