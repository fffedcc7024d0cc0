package agent

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"
)

// A call that began and has no result may have happened. A resumed run repeats it unchanged, or not at all. It uses the
// journalled arguments even if the executor now prepares others. Questions that were answered before the call began are
// not asked again. Unless the tool is repeatable, a person decides whether the call runs again.

// doubter is the By of the question whether a call in doubt runs again.
const doubter = "doubt"

// begin records that p's call starts, and uses up its approval.
func (c *openCall) begin(s State, p *Prepared) {
	call := *p.Call
	call.ID, call.Index = p.Original.ID, p.Original.Index
	c.begun = &call
	if in := p.approvalData().input; in != nil {
		c.input = &callInput{state: in.state, given: in.given}
	}
	switch {
	case p.Approval() != nil && !c.asked.approved(&call):
		c.ask(c.approvedIntervention(s, p))
	case c.asked == nil || c.asked.Answer() == nil:
		return
	}
	used := *c.asked
	used.used = true
	c.asked = &used
}

// approvedIntervention returns the intervention for a call that was approved at once, without parking the run.
func (c *openCall) approvedIntervention(s State, p *Prepared) *Intervention {
	i := interventionAbout(p, time.Now())
	i.Round = c.round() + 1
	i.Questions, i.input = i.Questions.WithAnswer(*p.Approval()), nil
	return new(i.WithID(s.Run().ID, s.RunStepCount()))
}

// approved reports whether the intervention approves this call.
func (i *Intervention) approved(c *ToolCall) bool {
	if i == nil || i.used {
		return false
	}
	a := i.Answer()
	return a != nil && (a.Arguments == c.Arguments || i.Covers(*c))
}

// round returns how often a person was asked about the call.
func (c *openCall) round() int {
	if c == nil || c.asked == nil {
		return 0
	}
	return c.asked.Round
}

// ask replaces the earlier question. Questions that were answered before the call began stay answered.
func (c *openCall) ask(i *Intervention) {
	if i.input != nil {
		c.input, i.input = i.input, nil
	}
	switch {
	case c.asked == nil || i == c.asked:
	case c.asked.used:
		i.earlier = append(slices.Clip(c.asked.earlier), c.asked.Questions.withoutKind(QuestionInput)...)
	case c.awaitsInput():
		i.earlier = c.asked.earlier
	}
	c.asked = i
}

// mayHaveHappened reports whether the call may have happened.
func (c *openCall) mayHaveHappened() bool {
	return c != nil && c.begun != nil && c.result == nil && !c.child.Parked() && !c.awaitsInput()
}

// callBegun returns call i as it began, or nil when it has not begun or has a result.
func (o *openStep) callBegun(i int) *ToolCall {
	if c := o.at(i); c != nil && c.result == nil {
		return c.begun
	}
	return nil
}

// answeredEarlier reports whether a question was answered before the call began.
func (c *openCall) answeredEarlier(q Question, tool ToolSpec) bool {
	if c.asked == nil || !c.asked.isAbout(tool) {
		return false
	}
	return c.asked.used && slices.ContainsFunc(c.asked.Questions, q.isSameQuestion) || slices.ContainsFunc(c.asked.earlier, q.isSameQuestion)
}

// resumePrepared returns the decision on a begun call. P is the executor's new decision. The call
// keeps its journalled arguments.
func (c *openCall) resumePrepared(p *Prepared, original *ToolCall, tool ToolSpec) *Prepared {
	q := *p
	q.Original, q.Begun, q.inDoubt = original, true, c.mayHaveHappened()
	if !q.Call.IsSame(*c.begun) {
		q.Carry, q.Strict = nil, false
	}
	q.Call = c.begun
	if q.Disposition == DisposeAsk {
		q.Answer = nil // a mock cannot replace a call after it has begun
		if q.SetQuestions(lo.Reject(q.Questions(), func(one Question, _ int) bool { return c.answeredEarlier(one, tool) })); len(q.Questions()) == 0 {
			q.Disposition = DisposeRun
			q.grant(original.ID)
		}
	}
	runs := q.Disposition == DisposeRun || q.Disposition == DisposeAsk
	if runs && q.inDoubt && !q.Repeats {
		q.Disposition = DisposeAsk
		q.SetQuestions(append(slices.Clip(q.Questions()), doubt))
	}
	return &q
}

// answerInDoubt returns the call in doubt with the answer "outcome unknown". The answer is used when the call does not
// run again.
func (c *openCall) answerInDoubt(p *Prepared) *Prepared {
	if c.awaitsInput() && p.Disposition == DisposeAnswer {
		return c.answerUnfinished(p)
	}
	if !c.mayHaveHappened() || p.Disposition != DisposeAnswer {
		return p
	}
	q := *p
	q.Call, q.Begun, q.inDoubt = c.begun, true, true
	q.Answer = q.unknown(p.Answer.To(&q))
	return &q
}

// doubt asks whether a call in doubt runs again. It is asked in addition to the hooks' questions.
var doubt = Question{Kind: QuestionDoubt, By: doubter, Reason: doubtful, OnTimeout: RejectAndContinue}

// doubtful is the reason that a person reads in this question.
const doubtful = "the run was cut off after this call began, and its outcome is unknown: it would run again"

// unknown returns the answer to a call in doubt that does not run again. R holds the reason.
func (p *Prepared) unknown(r *ToolResult) *ToolResult {
	if !p.inDoubt || r.Status == ToolUnknown || r.Executed() {
		return r
	}
	u := *r
	u.Status, u.Attempts = ToolUnknown, 0
	tool := fmt.Sprintf("tool %q: ", p.Call.Name)
	text := tool + NotRepeated
	if why := strings.TrimPrefix(r.Text(), tool); why != "" && !r.Mocked() {
		text += ": " + why
	}
	u.Content = TextContent(text)
	return &u
}

// NotRepeated describes a call with status ToolUnknown to the model, in events and on web pages.
const NotRepeated = "outcome unknown, not repeated"
