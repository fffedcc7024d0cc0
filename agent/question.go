package agent

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/samber/lo"
)

// QuestionKind is the subject of a question.
type QuestionKind string

// The kinds of questions.
const (
	// QuestionOrdinary is a question from a hook or an executor: may the call run?
	QuestionOrdinary QuestionKind = ""
	// QuestionDoubt asks about a call whose run was cut off after the call began: may it be repeated? The framework
	// asks it. Hooks cannot create, answer, replace or hide it. An answer to it cannot change the arguments.
	QuestionDoubt QuestionKind = "doubt"
	// QuestionGate waits for an event instead of a person: see Question.Gate. People can only reject it.
	QuestionGate QuestionKind = "gate"
	// QuestionInput asks for input that a tool needs while it runs: see InputError and Question.Input. Hooks can
	// neither create nor answer it, but they can reject it, which declines.
	QuestionInput QuestionKind = "input"
)

// Question asks a person about a call. A call may have several: each hook that asks adds one, and the call runs when
// all of them are approved.
type Question struct {
	Kind QuestionKind `json:"kind,omitempty"`
	// By names the hook that asks. Rule names the policy rule that the hook implements.
	By   string `json:"by,omitempty"`
	Rule string `json:"rule,omitempty"`
	// Reason is a sentence for the person.
	Reason string `json:"reason,omitempty"`
	// Within is how long the person has. Zero means no deadline. OnTimeout is the verdict that counts when the deadline
	// has passed. Its zero value is RejectAndEnd.
	Within    time.Duration   `json:"within_ns,omitempty"`
	OnTimeout ApprovalVerdict `json:"on_timeout,omitempty"`
	// Required reports whether the hook belongs to a required policy. Layer is the policy's layer, 0 the outermost.
	// Priority is the hook's priority. They determine which hooks may answer for a person.
	Required bool `json:"required,omitempty"`
	Layer    int  `json:"layer,omitempty"`
	Priority int  `json:"priority,omitempty"`
	// Waivable reports whether the agent answers with waivers: package waiver has the hook. Without it, a waiver would have no effect.
	Waivable bool `json:"waivable,omitempty"`
	// Approvers, unless empty, are the names and roles of the people who may answer. Answers from others, or from
	// people without a verified identity, do not count.
	Approvers []string `json:"approvers,omitempty"`
	// Quorum is the number of people who must approve. Zero and one mean one person. Several answers of one verified
	// identity count as one.
	Quorum int `json:"quorum,omitempty"`
	// Gate describes the event that a QuestionGate waits for.
	Gate *Gate `json:"gate,omitempty"`
	// Input describes the input that a QuestionInput asks for. An approval accepts, with Approval.Input.
	// RejectAndContinue declines. The call runs again in both cases. RejectAndEnd ends the run.
	Input *InputRequest `json:"input,omitempty"`
	// Answers are the answers to this question. One rejection decides it. Without a rejection, Quorum approvals decide
	// it.
	Answers []Approval `json:"answers,omitempty"`
}

// Gate describes the event that a QuestionGate waits for.
type Gate struct {
	// Kind is the event's kind, such as "callback", "file" or "command".
	Kind string `json:"kind"`
	// Host, unless empty, is the host whose worker must watch for the event.
	Host string `json:"host,omitempty"`
	// Data describes the event. The framework does not interpret it.
	Data json.RawMessage `json:"data,omitempty"`
	// Seen is what the asker saw when it asked, such as a file as it was then. It may differ when the question is asked again.
	Seen json.RawMessage `json:"seen,omitempty"`
}

// ID identifies the question by everything but its time limit, Waivable, its answers, and a gate's Host and Seen. It is the same for the
// question as it is stored. Approval.Covers names questions by it. A question that is asked again keeps its answers only if its
// ID is the same.
func (q Question) ID() string {
	parts := []string{
		"question", string(q.Kind), q.By, q.Rule, q.Reason, q.OnTimeout.String(), strconv.FormatBool(q.Required),
		strconv.Itoa(q.Layer), strconv.Itoa(q.Priority), strconv.Itoa(max(q.Quorum, 1)), strconv.Itoa(len(q.Approvers)),
	}
	parts = append(parts, q.Approvers...)
	if g := q.Gate; g != nil {
		data, err := json.Marshal(g.Data) // in the form in which it is stored
		if err != nil {
			data = g.Data
		}
		parts = append(parts, g.Kind, string(data))
	}
	if r := q.Input; r != nil {
		parts = append(parts, r.By, r.Message, r.Schema, r.URL, strconv.Itoa(r.Number))
	}
	return digest(parts...)
}

// digest returns a hash of some texts, 32 hexadecimal digits. Bytes that are not UTF-8 count as their replacement in JSON, so that
// the digest of stored texts is the same.
func digest(parts ...string) string {
	var text []byte
	for _, part := range parts {
		if !utf8.ValidString(part) {
			part = string([]rune(part))
		}
		text = append(binary.AppendUvarint(text, uint64(len(part))), part...)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Decision returns the answer that decides the question, or nil while it is open. A rejection takes precedence over an
// approval, and a stricter rejection over another. A passed deadline decides without a quorum.
func (q Question) Decision() *Approval {
	decides := strictestAnswer(q.Answers)
	if decides != nil && decides.Verdict == Approve && !decides.TimedOut() && q.Approvals() < max(q.Quorum, 1) {
		return nil
	}
	return decides
}

// Approvals returns how many people have approved.
func (q Question) Approvals() int {
	identities := map[string]bool{}
	for _, a := range q.Answers {
		if a.Verdict == Approve {
			identities[a.Identity] = true
		}
	}
	return len(identities)
}

// has reports whether the answer is recorded already. A verified identity's approval counts once.
func (q Question) has(a Approval) bool {
	return a.Identity != "" && a.Verdict == Approve && slices.ContainsFunc(q.Answers, func(known Approval) bool {
		return known.Identity == a.Identity && known.Verdict == Approve
	})
}

// Restricted reports whether the question requires verified identities: it has approvers or a quorum.
func (q Question) Restricted() bool { return len(q.Approvers) > 0 || q.Quorum > 1 }

// Admits reports whether an answer to the question counts.
func (q Question) Admits(a Approval) bool {
	switch {
	case !a.isAbout(q):
		return false
	case q.Kind == QuestionGate:
		return a.Author == AuthorEvent || a.Verdict != Approve || a.TimedOut()
	case a.Author == AuthorEvent:
		return false
	case !q.Restricted() || a.TimedOut():
		return true
	case a.Identity == "":
		return false
	}
	return len(q.Approvers) == 0 || slices.Contains(q.Approvers, a.Identity) || lo.Some(q.Approvers, lo.Compact(a.Roles))
}

// strictestAnswer returns the strictest answer: RejectAndEnd, then RejectAndContinue, then the last approval. It
// returns nil when there are no answers.
func strictestAnswer(answers []Approval) *Approval {
	var decides *Approval
	for i := range answers {
		if a := &answers[i]; a.Verdict.final() && (decides == nil || a.Verdict < decides.Verdict || a.Verdict == Approve && decides.Verdict == Approve) {
			decides = a
		}
	}
	if decides == nil {
		return nil
	}
	return new(*decides)
}

// isSameQuestion reports whether two questions differ at most in their time limits and answers.
func (q Question) isSameQuestion(other Question) bool {
	return q.hasAskerOf(other) && q.ID() == other.ID()
}

// hasAskerOf reports whether the same hook asks both questions. They must have the same kind, and both or neither must
// come from a required policy.
func (q Question) hasAskerOf(other Question) bool {
	return q.Kind == other.Kind && q.By == other.By && q.Required == other.Required
}

// answersFrom returns the answers to an earlier question from the same hook that count for this one. A rejection
// counts. An approval counts only if nothing about the question has changed. A deadline's approval counts only if its
// time limit has not changed either.
func (q Question) answersFrom(earlier Question) []Approval {
	same := q.ID() == earlier.ID()
	return lo.Filter(earlier.Answers, func(a Approval, _ int) bool {
		return a.Verdict != Approve || same && (!a.TimedOut() || q.Within == earlier.Within)
	})
}

// Questions are all questions about one call, in the order of the hooks that ask. A Questions value is never modified.
type Questions []Question

// Open returns the questions that are not decided.
func (q Questions) Open() Questions {
	return lo.Filter(q, func(one Question, _ int) bool { return one.Decision() == nil })
}

// Within returns the time for an answer, which is the shortest Within of the questions. Zero means no deadline.
func (q Questions) Within() time.Duration {
	var shortest time.Duration
	for _, one := range q {
		if one.Within > 0 && (shortest == 0 || one.Within < shortest) {
			shortest = one.Within
		}
	}
	return shortest
}

// OnTimeout returns the verdict that counts after the deadline: the strictest OnTimeout of the questions. A hook's
// question without a deadline counts as RejectAndEnd, because the hook never accepted silence as approval. Without
// questions it is RejectAndEnd.
func (q Questions) OnTimeout() ApprovalVerdict {
	if len(q) == 0 {
		return RejectAndEnd
	}
	return lo.Min(lo.Map(q, func(one Question, _ int) ApprovalVerdict {
		if one.Kind == QuestionOrdinary && one.Within <= 0 {
			return RejectAndEnd
		}
		return one.OnTimeout
	}))
}

// Reason returns the reasons of the questions, in order, with semicolons between them.
func (q Questions) Reason() string {
	reasons := lo.FilterMap(q, func(one Question, _ int) (string, bool) { return one.Reason, one.Reason != "" })
	return strings.Join(lo.Uniq(reasons), "; ")
}

// AskedBy returns the names of the hooks that ask, in order, with commas between them.
func (q Questions) AskedBy() string {
	names := lo.FilterMap(q, func(one Question, _ int) (string, bool) { return one.By, one.By != "" })
	return strings.Join(lo.Uniq(names), ", ")
}

// InDoubt reports whether one of the questions is a QuestionDoubt.
func (q Questions) InDoubt() bool {
	return slices.ContainsFunc(q, func(one Question) bool { return one.Kind == QuestionDoubt })
}

// Answers returns all answers to the questions, in order, each once.
func (q Questions) Answers() []Approval {
	var all []Approval
	for _, one := range q {
		for _, a := range one.Answers {
			if !slices.ContainsFunc(all, a.isSameAnswer) {
				all = append(all, a)
			}
		}
	}
	return all
}

// isSameAnswer reports whether two answers are one answer to several questions.
func (a Approval) isSameAnswer(other Approval) bool {
	return a.Verdict == other.Verdict && a.Author == other.Author && a.By == other.By && a.Identity == other.Identity &&
		slices.Equal(a.Covers, other.Covers) && a.At.Equal(other.At)
}

// Decision returns the answer that decides the call, or nil while the call waits. It is the strictest rejection of any
// question, or an approval when every question is approved.
func (q Questions) Decision() *Approval {
	decisions := make([]Approval, 0, len(q))
	open := len(q) == 0
	for _, one := range q {
		if a := one.Decision(); a != nil {
			decisions = append(decisions, *a)
		} else {
			open = true
		}
	}
	if a := strictestAnswer(decisions); a != nil && (!open || a.Verdict != Approve) {
		return a
	}
	return nil
}

// Needs says in words what an answer to the question requires.
func (q Question) Needs() string {
	if q.Kind == QuestionGate {
		return "it waits for a " + q.Gate.Kind
	}
	if !q.Restricted() {
		return "it needs a person"
	}
	text := "it needs an approval"
	if q.Quorum > 1 {
		text = fmt.Sprintf("it needs %d approvals", q.Quorum)
	}
	if len(q.Approvers) > 0 {
		text += " by " + strings.Join(q.Approvers, ", ")
	}
	return text + ", by people whose identity is verified"
}

// Admit reports whether an answer counts for one of the open questions.
func (q Questions) Admit(a Approval) bool {
	return slices.ContainsFunc(q.Open(), func(one Question) bool { return one.Admits(a) })
}

// WithAnswer returns the questions with the answer added to the open ones that admit it.
func (q Questions) WithAnswer(a Approval) Questions {
	a.Questions = nil
	return q.each(func(one *Question) {
		if one.Decision() == nil && one.Admits(a) && !one.has(a) {
			one.Answers = append(slices.Clip(one.Answers), a)
		}
	})
}

// withAnswerToThose returns the questions, with the answer added to each open question that is also in asked. Before it
// come the approvals of the same arguments that were given there.
func (q Questions) withAnswerToThose(asked Questions, a Approval) Questions {
	return q.each(func(one *Question) {
		known, ok := lo.Find(asked, one.isSameQuestion)
		if !ok || one.Decision() != nil {
			return
		}
		same := lo.Filter(known.Answers, func(given Approval, _ int) bool { return given.Verdict == Approve && given.Arguments == a.Arguments })
		for _, given := range append(same, a) {
			if one.Admits(given) && !one.has(given) {
				one.Answers = append(slices.Clip(one.Answers), given)
			}
		}
	})
}

// WithoutAnswers returns the questions without their answers.
func (q Questions) WithoutAnswers() Questions {
	return q.each(func(one *Question) { one.Answers = nil })
}

// asPrepared returns the questions that an executor may ask. There is at least one, none is answered, and none is a
// QuestionDoubt or QuestionInput, which only the loop may ask.
func (q Questions) asPrepared() Questions {
	if len(q) == 0 {
		return Questions{{}}
	}
	return q.each(func(one *Question) {
		one.Answers, one.Input = nil, nil
		if one.Kind != QuestionGate || one.Gate == nil {
			one.Kind, one.Gate = QuestionOrdinary, nil
		}
	})
}

// withAnswersOf returns the questions with the answers from given that count for them.
func (q Questions) withAnswersOf(given Questions) Questions {
	return q.each(func(one *Question) {
		known, ok := lo.Find(given, one.isSameQuestion)
		if !ok {
			known, ok = lo.Find(given, one.hasAskerOf)
		}
		if ok {
			one.Answers = one.answersFrom(known)
		}
	})
}

// keepAdmissible returns the questions without the approvals that count neither as answers nor as one that known has.
func (q Questions) keepAdmissible(known Questions) Questions {
	return q.each(func(one *Question) {
		before, _ := lo.Find(known, one.isSameQuestion)
		one.Answers = lo.Filter(one.Answers, func(a Approval, _ int) bool {
			return a.Verdict != Approve || one.Admits(a) && !a.TimedOut() || slices.ContainsFunc(before.Answers, a.isSameAnswer)
		})
	})
}

// withoutApprovals returns the questions with only the rejections among their answers.
func (q Questions) withoutApprovals() Questions {
	return q.each(func(one *Question) {
		one.Answers = lo.Filter(one.Answers, func(a Approval, _ int) bool { return a.Verdict != Approve })
	})
}

// union returns the questions, followed by the questions in more that q does not have.
func (q Questions) union(more Questions) Questions {
	return append(slices.Clip(q), lo.Filter(more, func(one Question, _ int) bool { return !slices.ContainsFunc(q, one.hasAskerOf) })...)
}

func (q Questions) each(change func(*Question)) Questions {
	changed := slices.Clone(q)
	for i := range changed {
		change(&changed[i])
	}
	return changed
}

// check returns an error when the list is invalid. An intervention has at least one question.
func (q Questions) check() error {
	if len(q) == 0 {
		return formError("", "no questions")
	}
	for i, one := range q {
		switch {
		case one.Kind != QuestionOrdinary && one.Kind != QuestionDoubt && one.Kind != QuestionGate && one.Kind != QuestionInput:
			return formError(fmt.Sprintf("/%d/kind", i), "unknown kind of question %q", one.Kind)
		case (one.Kind == QuestionGate) != (one.Gate != nil):
			return formError(fmt.Sprintf("/%d/gate", i), "a question of kind gate needs a gate, and no other has one")
		case (one.Kind == QuestionInput) != (one.Input != nil):
			return formError(fmt.Sprintf("/%d/input", i), "a question of kind input needs a request, and no other has one")
		case one.Quorum < 0:
			return formError(fmt.Sprintf("/%d/quorum", i), "the quorum is negative")
		case one.Within < 0:
			return formError(fmt.Sprintf("/%d/within_ns", i), "the time for an answer is negative")
		}
	}
	return nil
}
