package durable

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/grapnel-go/grapnel/agent"
)

// Notifier notifies people that a run waits for one of them. The run is already stored
// and waits even if the notification fails; an error is reported to the agent's observer
// as a NotifyFailed. A Notifier must be safe for concurrent use.
type Notifier interface {
	Notify(ctx context.Context, n Notice) error
}

// NotifierFunc adapts a func to a Notifier.
type NotifierFunc func(ctx context.Context, n Notice) error

// Notify calls f.
func (f NotifierFunc) Notify(ctx context.Context, n Notice) error { return f(ctx, n) }

// Notice describes a run that waits for a person.
type Notice struct {
	Run   agent.Run
	Calls []WaitingCall
}

// WaitingCall is a call that waits for a person.
type WaitingCall struct {
	agent.Intervention

	// Token is the right to answer about this call, once: random, in letters that need
	// no escaping in a URL. The store has only its hash. Keep it out of logs.
	Token string
}

// NotifyFailed is the event for the agent's observer when a Notifier fails.
type NotifyFailed struct {
	Run agent.Run
	Err error
}

// EventName returns "notify.failed".
func (NotifyFailed) EventName() string { return "notify.failed" }

// noticeOf returns the notice of a parked run, with a new token for each call that waits.
func noticeOf(s agent.State, tokens bool) Notice {
	n := Notice{Run: s.Run()}
	for _, i := range s.Interventions() {
		call := WaitingCall{Intervention: i}
		if tokens && i.Answer() == nil {
			call.Token = newToken()
		}
		n.Calls = append(n.Calls, call)
	}
	return n
}

// newToken returns 32 random bytes as text.
func newToken() string {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(raw[:])
}

// TokenHash returns the hash of a token, which a store keeps instead of the token.
func TokenHash(token string) [32]byte { return sha256.Sum256([]byte(token)) }

// storedQuestions returns the questions of the notice in their stored form.
func (n Notice) storedQuestions() ([]Question, error) {
	out := make([]Question, 0, len(n.Calls))
	for _, c := range n.Calls {
		data, err := json.Marshal(c.Intervention)
		if err != nil {
			return nil, fmt.Errorf("recording the question about call %s: %w", c.CallID(), err)
		}
		q := Question{
			Run: n.Run.ID, Call: c.CallID(), Hash: c.Call.Hash(), Tool: c.Call.Name,
			Asked: c.Asked, Deadline: c.Deadline, Data: data,
		}
		if c.Token != "" {
			q.TokenHash = TokenHash(c.Token)
		}
		if decision := c.Answer(); decision != nil {
			answer, err := AnswerOf(c.Intervention, *decision)
			if err != nil {
				return nil, err
			}
			answer.At = c.Asked
			q.Answer = &answer
		}
		out = append(out, q)
	}
	return out, nil
}

// AnswerOf returns an approval in its stored form.
func AnswerOf(i agent.Intervention, a agent.Approval) (Answer, error) {
	data, err := json.Marshal(a)
	if err != nil {
		return Answer{}, fmt.Errorf("recording the answer about call %s: %w", i.CallID(), err)
	}
	return Answer{Call: i.CallID(), Hash: i.Call.Hash(), Ends: a.Verdict == agent.RejectAndEnd, Data: data}, nil
}

// InterventionOf returns the part of a question that a person sees.
func InterventionOf(q Question) (agent.Intervention, error) {
	var i agent.Intervention
	if err := json.Unmarshal(q.Data, &i); err != nil {
		return i, fmt.Errorf("reading the question about call %s of run %s: %w", q.Call, q.Run, err)
	}
	answer, err := approvalOf(q)
	if answer != nil {
		i = i.WithAnswer(*answer)
	}
	return i, err
}

// approvalOf returns the recorded answer to a question; nil while there is none.
func approvalOf(q Question) (*agent.Approval, error) {
	if q.Answer == nil {
		return nil, nil //nolint:nilnil // no answer is no error
	}
	answer := new(agent.Approval)
	if err := json.Unmarshal(q.Answer.Data, answer); err != nil {
		return nil, fmt.Errorf("reading the answer about call %s of run %s: %w", q.Call, q.Run, err)
	}
	return answer, nil
}
