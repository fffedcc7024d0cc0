package agent

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/samber/lo"
)

// Intervention is a tool call that waits, or waited, for a person. It is the card that the person is shown, and a plain
// value.
type Intervention struct { //nolint:recvcheck // decoding needs a pointer
	// ID identifies the card: see WithID. An answer names it, so that the answer never counts for a later question
	// about the same call.
	ID string `json:"id,omitempty"`
	// Round counts how often a person was asked about the call in its step, from one.
	Round int `json:"round,omitempty"`
	// Original is the model's call. Call is the call that would run, and the person is asked about Call.
	Original ToolCall `json:"original"`
	Call     ToolCall `json:"call"`
	// Questions says which hooks ask and why, and holds the answers so far.
	Questions Questions `json:"questions"`
	// Asked is when the person was asked. Deadline is when the time for an answer ends, and zero means never.
	Asked    time.Time `json:"asked"`
	Deadline time.Time `json:"deadline,omitzero"`
	// Child is the sub-agent's run that makes the call, below the state's run. Its ID is empty if the state's own run
	// makes the call. Path is the name of a sub-agent call: see CallID.
	Child Run    `json:"child,omitzero"`
	Path  string `json:"path,omitempty"`

	// Begun reports that the call had begun when the person was asked, so that its arguments can no longer change.
	Begun bool `json:"begun,omitempty"`

	// Schema is the JSON Schema of the tool's arguments when the run parked, as JSON text. It is empty when unknown. An
	// answer with other arguments must fit it.
	Schema string `json:"schema,omitempty"`
	// Description is another party's description of its tool: see ToolSpec.External. It is empty for other tools.
	Description string `json:"description,omitempty"`

	prepared string     // digest of the call that the controls wanted approval for
	used     bool       // the call has begun since, which used up the answer
	earlier  []Question // answered before the call began
	input    *callInput // the call's input
}

// WithID returns the intervention with its ID, which is a digest. It covers the run, the step, the round, the call,
// what the person is told about its tool, and the question IDs. A repeated question about a call has another round and
// so another ID.
func (i Intervention) WithID(run RunID, step int) Intervention {
	parts := []string{
		"card", string(run), strconv.Itoa(step), strconv.Itoa(i.Round), i.CallID(), i.Original.Name, i.Original.Arguments,
		i.Call.Name, i.Call.Arguments, strconv.FormatBool(i.Begun), i.Schema, i.Description,
	}
	for _, q := range i.Questions {
		parts = append(parts, q.ID())
	}
	i.ID = digest(parts...)
	return i
}

// Answer returns the answer that decides the call: see Questions.Decision. It is nil while the call waits.
func (i Intervention) Answer() *Approval { return i.Questions.Decision() }

// WithAnswer returns the intervention with a person's answer to all open questions. An approval with other arguments
// answers every question and voids the answers about the old arguments. It has no effect if the call has begun, because
// the arguments can no longer change. Once the call is decided, further answers have no effect.
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

// UnmarshalJSON reads an intervention.
func (i *Intervention) UnmarshalJSON(data []byte) error {
	type plain Intervention
	*i = Intervention{}
	if err := json.Unmarshal(data, (*plain)(i)); err != nil {
		return err
	}
	return i.Questions.check()
}

// Covers reports whether c is the call that the person was asked about, or that call before a hook showed the person
// something else.
func (i Intervention) Covers(c ToolCall) bool {
	return c.digest() == i.prepared || c.IsSame(i.Call)
}

// CallID returns a name that is unique among the calls that the state waits for. It is the call's ID. For a sub-agent
// call, it is the IDs of the calls that lead to it and its own ID, separated by slashes.
func (i Intervention) CallID() string { return cmp.Or(i.Path, i.Original.ID) }

// Parked reports whether the run waits for answers: see Interventions.
func (s State) Parked() bool { return s.Status() == StatusParked }

// Interventions returns the open step's calls that a person was asked about, in call order. Sub-agent calls are at the
// position of the call that started the sub-agent.
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

// path returns a name for a sub-agent call that is unique among named. The model chooses IDs, and they can contain
// slashes.
func (o *openStep) path(call, below string, named []Intervention) string {
	name := call + "/" + below
	for o.findCall(name) != nil || slices.ContainsFunc(named, func(i Intervention) bool { return i.CallID() == name }) {
		name = call + "/" + name
	}
	return name
}

// Waiting reports whether the run is parked and cannot be resumed yet: an answer is missing, and no given answer ends
// the run.
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

// WithApprovalAt returns a parked state with an answer to the Intervention with that ID: see Intervention.WithAnswer.
// Now is the time of the answer, and zero means the present. An answer at or after the deadline does not count:
// Questions.OnTimeout decides. The state does not change when the run is not parked, when the question is closed, or
// when the answer changes the arguments of a begun call.
func (s State) WithApprovalAt(id string, answer Approval, now time.Time) State {
	if !s.Parked() || !answer.Verdict.final() {
		return s
	}
	if now.IsZero() {
		now = time.Now()
	}
	if answer.At.IsZero() {
		answer.At = now
	}
	return s.withAnswers(func(i Intervention) *Approval {
		switch {
		case i.ID != id:
			return nil
		case i.expired(now):
			return i.timeout()
		case !i.Takes(answer):
			return nil
		}
		return &answer
	})
}

// expired reports whether the deadline for an answer has passed.
func (i *Intervention) expired(now time.Time) bool {
	return !i.Deadline.IsZero() && !now.Before(i.Deadline)
}

// timeout returns the answer that counts when the deadline has passed.
func (i *Intervention) timeout() *Approval {
	return &Approval{Verdict: i.Questions.OnTimeout(), Author: AuthorDeadline, By: byTimeout, Reason: errNoAnswer.Error()}
}

// Takes reports whether the call accepts this answer. The answer cannot change the arguments if the call has begun or
// needs several people, or if it also needs others than the answer's author. Each of these people approves the
// arguments that they were shown. Input must fit: see CheckInput.
func (i Intervention) Takes(answer Approval) bool {
	if i.CheckInput(answer) != nil {
		return false
	}
	if answer.Arguments == "" || answer.Arguments == i.Call.Arguments {
		return true
	}
	return !i.Begun && !i.Questions.InDoubt() && !slices.ContainsFunc(i.Questions, func(q Question) bool {
		return q.Kind == QuestionGate || q.Quorum > 1 || !q.Admits(answer)
	})
}

// withAnswers adds answers about the waiting calls.
func (s State) withAnswers(answer func(Intervention) *Approval) State {
	list := s.Interventions() // empty when the run was suspended
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

// take adds the answers to the Interventions in order, one for each. A nil answer adds nothing. Take returns the
// answers that remain.
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
