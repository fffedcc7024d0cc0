package agent

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/samber/lo"
)

// Hash names what a call does: SHA-256 of its tool and its arguments, in hexadecimal.
// An approval is of this call and of no other.
func (c ToolCall) Hash() string {
	h := sha256.New()
	h.Write([]byte(c.Name))
	h.Write([]byte{0})
	arguments := c.Arguments
	if arguments == "" {
		arguments = "{}"
	}
	h.Write([]byte(arguments))
	return hex.EncodeToString(h.Sum(nil))
}

// Intervention is a tool call that waits for a person, or did. It is a plain value.
type Intervention struct { //nolint:recvcheck // decoding needs a pointer
	// Original is what the model asked for, Call what would run: what the person is
	// asked about.
	Original ToolCall `json:"original"`
	Call     ToolCall `json:"call"`
	// Questions says who asks and why, and which answers there are.
	Questions Questions `json:"questions"`
	// Asked is when, and Deadline when the time for an answer is over; zero for never.
	Asked    time.Time `json:"asked"`
	Deadline time.Time `json:"deadline,omitzero"`
	// Child is the run that makes the call, where that is a sub-agent's below the run of
	// the state; its ID is empty for the state's own. Path is what the call is named by
	// then: see CallID.
	Child Run    `json:"child,omitzero"`
	Path  string `json:"path,omitempty"`

	// Begun says that the call had begun when the person was asked: its arguments
	// cannot be changed any more.
	Begun bool `json:"begun,omitempty"`

	prepared string     // hash of the call that the controls wanted approval for
	used     bool       // the call has begun since: the answer has counted
	earlier  []Question // answered before the call began
}

// Answer returns what decides the call: see Questions.Decision. It is nil while the call
// waits.
func (i Intervention) Answer() *Approval { return i.Questions.Decision() }

// WithAnswer returns the intervention with a person's answer to all questions that are
// open. An approval with other arguments is an answer to every question: it voids the
// answers that were given to the call as it was. A call that has begun cannot be changed: such
// an answer has no effect, and neither has any answer to a call that was decided.
func (i Intervention) WithAnswer(a Approval) Intervention {
	if i.Answer() != nil || !a.Verdict.final() || !i.Takes(a) {
		return i
	}
	if a.Verdict == Approve && a.Arguments != "" && a.Arguments != i.Call.Arguments {
		i.Questions = i.Questions.WithoutAnswers()
	}
	i.Questions = i.Questions.WithAnswer(a)
	return i
}

// UnmarshalJSON reads an intervention, also of the form with a single question that
// earlier versions wrote.
func (i *Intervention) UnmarshalJSON(data []byte) error {
	type plain Intervention
	form := struct {
		*plain
		Question *Question `json:"question"`
		Answer   *Approval `json:"answer"`
	}{plain: (*plain)(i)}
	*i = Intervention{}
	if err := json.Unmarshal(data, &form); err != nil {
		return err
	}
	i.Questions = migratedQuestions(i.Questions, form.Question, form.Answer)
	return i.Questions.check()
}

// migratedQuestions returns the questions of a stored call: those of the current form, or
// the single one that earlier versions wrote, with its answer beside it. A call that is
// asked about has at least one question.
func migratedQuestions(questions Questions, single *Question, answer *Approval) Questions {
	if len(questions) > 0 {
		return questions
	}
	questions = Questions{lo.FromPtr(single)}
	if answer != nil {
		questions = questions.WithAnswer(*answer)
	}
	return questions
}

// Covers reports whether a call is what the person was asked about, or what the
// controls had made of it before a hook showed the person something else.
func (i Intervention) Covers(c ToolCall) bool {
	hash := c.Hash()
	return hash == i.prepared || hash == i.Call.Hash()
}

// CallID names the call among all that the state waits for: its id; for a call of a
// sub-agent, the ids of the calls that lead to it and its own, with slashes between them.
func (i Intervention) CallID() string { return cmp.Or(i.Path, i.Original.ID) }

// Parked reports whether the run waits for answers: see Interventions.
func (s State) Parked() bool { return s.Status() == StatusParked }

// Interventions returns the calls of the open step that a person was asked about, in call
// order, those of sub-agents in the place of the call that started them; none when there
// are none.
func (s State) Interventions() []Intervention {
	open := s.read().open
	if open == nil {
		return nil
	}
	var list []Intervention
	for i := range open.calls {
		c := &open.calls[i]
		if c.asked != nil {
			list = append(list, *c.asked)
		}
		for _, below := range c.child.Interventions() {
			below.Path = open.path(open.reply.Message.list()[i].ID, below.CallID(), list)
			if below.Child.ID == "" {
				below.Child = c.child.Run()
			}
			list = append(list, below)
		}
	}
	return list
}

// path names a call of a sub-agent as no other is named. Models may put slashes into ids.
func (o *openStep) path(call, below string, named []Intervention) string {
	name := call + "/" + below
	for o.findCall(name) != nil || slices.ContainsFunc(named, func(i Intervention) bool { return i.CallID() == name }) {
		name = call + "/" + name
	}
	return name
}

// Waiting reports whether the run is parked and there is nothing to do yet: an answer
// is missing, and no answer ends the run.
func (s State) Waiting() bool {
	if !s.Parked() {
		return false
	}
	waiting := false
	for _, i := range s.Interventions() {
		switch answer := i.Answer(); {
		case answer == nil:
			waiting = true
		case answer.Verdict == RejectAndEnd:
			return false
		}
	}
	return waiting
}

// WithApproval returns a parked state with an answer that is given now: see
// WithApprovalAt.
func (s State) WithApproval(callID string, answer Approval) State {
	return s.WithApprovalAt(callID, answer, time.Now())
}

// WithApprovalAt returns a parked state with an answer about a call that was given at
// now, which is the present when it is zero: see Intervention.WithAnswer. An answer at the deadline or after it does not count:
// what the questions say for that case does, see Questions.OnTimeout. The state stays as
// it is when the run is not parked, when no person is asked about such a call, when the
// call was decided, and when the answer changes the arguments of a call that has begun.
func (s State) WithApprovalAt(callID string, answer Approval, now time.Time) State {
	if !s.Parked() || !answer.Verdict.final() {
		return s
	}
	if now.IsZero() {
		now = time.Now()
	}
	return s.withAnswers(func(i Intervention) *Approval {
		switch {
		case i.CallID() != callID:
			return nil
		case i.expired(now):
			return i.timeout()
		case !i.Takes(answer):
			return nil
		}
		return &answer
	})
}

// expired reports whether the time for an answer is over.
func (i *Intervention) expired(now time.Time) bool {
	return !i.Deadline.IsZero() && !now.Before(i.Deadline)
}

// timeout returns the answer that counts when the deadline has passed.
func (i *Intervention) timeout() *Approval {
	return &Approval{Verdict: i.Questions.OnTimeout(), By: byTimeout, Reason: errNoAnswer.Error()}
}

// Takes reports whether the call can be answered so: the arguments of a call that has
// begun cannot be changed.
func (i Intervention) Takes(answer Approval) bool {
	return !i.Begun && !i.Questions.InDoubt() || answer.Arguments == "" || answer.Arguments == i.Call.Arguments
}

// withAnswers gives answers about the calls that wait.
func (s State) withAnswers(answer func(Intervention) *Approval) State {
	list := s.Interventions() // none when it was suspended
	given := make([]*Approval, len(list))
	for n, i := range list {
		if i.Answer() == nil {
			given[n] = answer(i)
		}
	}
	if len(lo.Compact(given)) > 0 {
		s, _ = s.take(given)
	}
	return s
}

// take gives one answer, or none, to each of the Interventions, and returns the answers
// that are left over.
func (s State) take(given []*Approval) (State, []*Approval) {
	open := s.read().open
	if open == nil {
		return s, given
	}
	calls := slices.Clone(open.calls)
	for i := range calls {
		c := &calls[i]
		if c.asked != nil {
			if given[0] != nil {
				c.asked = new(c.asked.WithAnswer(*given[0]))
			}
			given = given[1:]
		}
		c.child, given = c.child.take(given)
	}
	return s.withOpen(open.withCallStates(calls)), given
}
