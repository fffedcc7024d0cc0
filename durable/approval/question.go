package approval

import (
	"cmp"
	"context"
	"crypto/subtle"
	"fmt"
	"net/http"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// question is a stored question with its call, run and batch.
type question struct {
	kept  durable.Wait
	asked agent.Intervention
	about durable.Run
	batch []durable.Wait // all of the run, in call order
}

// findQuestion returns the question for a token. It returns ErrNotFound when there is none, or when the run no longer
// waits for its answer. To avoid timing differences, every token is hashed, looked up and compared.
func findQuestion(ctx context.Context, store durable.Store, token string) (*question, error) {
	hash := durable.TokenHash(token)
	q, err := store.WaitByToken(ctx, hash)
	same := subtle.ConstantTimeCompare(hash[:], q.TokenHash[:]) == 1
	if err != nil {
		return nil, err
	}
	if !same {
		return nil, durable.ErrNotFound
	}
	found := &question{kept: q}
	if found.asked, err = durable.InterventionOf(q); err != nil {
		return nil, err
	}
	if found.asked.Call.Hash() != q.Hash {
		return nil, fmt.Errorf("call %s of run %s: the recorded question does not match the call", q.ID, q.Run)
	}
	if found.about, err = store.Run(ctx, q.Run); err != nil {
		return nil, err
	}
	if found.batch, err = store.Waits(ctx, q.Run); err != nil {
		return nil, err
	}
	if q.Answer == nil && found.over() {
		return nil, durable.ErrNotFound
	}
	return found, nil
}

// over reports whether an answer would have no effect: the run has continued, is about to be cancelled, or ends because
// of the decision about another call.
func (q *question) over() bool {
	waits := q.about.Status == durable.StatusWaiting || q.about.Status == durable.StatusReady // the deadline may have passed
	return !waits || q.about.CancelReason != "" ||
		lo.SomeBy(q.batch, func(sibling durable.Wait) bool { return sibling.Answer != nil && sibling.Answer.Ends })
}

// expired reports whether the deadline passed before an answer arrived.
func (q *question) expired(now time.Time) bool {
	return q.kept.Answer == nil && !q.kept.Deadline.IsZero() && !now.Before(q.kept.Deadline)
}

// reply returns the reply that shows the current question; status is used if the question is still open.
func (q *question) reply(status int, message string) reply {
	now := time.Now()
	if q.expired(now) {
		status = http.StatusGone
		message = "The deadline has passed. The answer defined for that case applies: " + verdictNames[q.asked.Questions.OnTimeout()] + "."
	}
	return reply{Status: status, Message: message, Question: q.pageData(now)}
}

// shown is a question in the form shown to people and programs.
type shown struct {
	Run   agent.RunID `json:"run"`
	Agent string      `json:"agent,omitempty"`
	Call  string      `json:"call"`
	Tool  string      `json:"tool"`
	// Hash must be sent with the decision: it proves which question was seen.
	Hash      string            `json:"hash"`
	Questions []MessageQuestion `json:"questions"`
	Asked     time.Time         `json:"asked"`
	Deadline  time.Time         `json:"deadline,omitzero"`
	OnTimeout string            `json:"on_timeout,omitempty"`
	// Original are the arguments that the model sent, Arguments the ones that would run.
	Original  arguments `json:"original"`
	Arguments arguments `json:"arguments"`
	// Begun is set when the call may already have run, so that its arguments cannot be changed.
	Begun bool `json:"begun,omitempty"`
	// State is open, decided or expired.
	State   string   `json:"state"`
	Decided *decided `json:"decided,omitempty"`
	// Others are the other calls of the step that need approval.
	Others []other `json:"others"`

	Timeout agent.ApprovalVerdict `json:"-"`

	now time.Time
}

// The states of a question.
const (
	stateOpen    = "open"
	stateDecided = "decided"
	stateExpired = "expired"
)

// decided is the decision about a call.
type decided struct {
	Verdict   agent.ApprovalVerdict `json:"verdict"`
	By        string                `json:"by,omitempty"`
	Reason    string                `json:"reason,omitempty"`
	Arguments arguments             `json:"arguments,omitempty"`
	At        time.Time             `json:"at"`
}

// other is another call of the step that needs approval.
type other struct {
	Call      string    `json:"call"`
	Tool      string    `json:"tool"`
	Reason    string    `json:"reason,omitempty"`
	Arguments arguments `json:"arguments"`
	Decided   *decided  `json:"decided,omitempty"`
}

func (q *question) pageData(now time.Time) *shown {
	call := q.asked.Call
	s := &shown{
		Run: q.kept.Run, Agent: cmp.Or(q.asked.Child.Agent, q.about.Name), Call: q.kept.ID, Tool: call.Name, Hash: q.kept.Hash,
		Questions: questionsOf(q.asked), Asked: q.kept.Asked, Deadline: q.kept.Deadline,
		Original: arguments(q.asked.Original.Arguments), Arguments: arguments(call.Arguments), Begun: q.asked.Begun,
		State: stateOpen, Decided: decisionOn(q.asked, q.kept), now: now,
		Others: lo.FilterMap(q.batch, func(sibling durable.Wait, _ int) (other, bool) {
			i, err := durable.InterventionOf(sibling)
			return other{
				Call: sibling.ID, Tool: sibling.Tool, Reason: i.Questions.Reason(),
				Arguments: arguments(i.Call.Arguments), Decided: decisionOn(i, sibling),
			}, err == nil && sibling.ID != q.kept.ID
		}),
	}
	if !s.Deadline.IsZero() {
		s.Timeout = q.asked.Questions.OnTimeout()
		s.OnTimeout = s.Timeout.String()
	}
	switch {
	case s.Decided != nil:
		s.State = stateDecided
	case q.expired(now):
		s.State = stateExpired
	}
	return s
}

// decisionOn returns the decision; nil before there is an answer.
func decisionOn(i agent.Intervention, q durable.Wait) *decided {
	answer := i.Answer()
	if answer == nil || q.Answer == nil {
		return nil
	}
	return decidedAt(*answer, q.Answer.At)
}

func decidedAt(a agent.Approval, at time.Time) *decided {
	return &decided{a.Verdict, a.By, a.Reason, arguments(a.Arguments), at}
}
