package approval

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// Message is what Webhook posts and what Command gives a program, as JSON: that a run
// waits. The arguments are left to the page, which everyone with the link may see.
type Message struct {
	// Event is always "approval.requested".
	Event   string          `json:"event"`
	Run     agent.RunID     `json:"run"`
	Session agent.SessionID `json:"session,omitempty"`
	Agent   string          `json:"agent,omitempty"`
	// Calls are the calls that wait, in call order.
	Calls []MessageCall `json:"calls"`
}

// MessageCall is a call that waits for a person.
type MessageCall struct {
	Call string `json:"call"`
	Tool string `json:"tool"`
	// Questions is all that is asked about the call; one decision answers those that are
	// open.
	Questions []MessageQuestion `json:"questions"`
	Asked     time.Time         `json:"asked"`
	// Deadline is when the time is over, and OnTimeout what counts as said then.
	Deadline  time.Time `json:"deadline,omitzero"`
	OnTimeout string    `json:"on_timeout,omitempty"`
	// Hash names the call with its arguments.
	Hash string `json:"hash"`
	// Link shows the question and takes the decision, once. Everyone who has it can decide.
	Link string `json:"link"`
}

// MessageQuestion is one question about a call.
type MessageQuestion struct {
	// Kind is empty for the question of a hook, and "doubt" for whether a call that may
	// have happened may be repeated.
	Kind string `json:"kind,omitempty"`
	// AskedBy names the hook that asks, Rule the rule of a policy that it stands for.
	AskedBy string `json:"asked_by,omitempty"`
	Rule    string `json:"rule,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// AnsweredBy names the hook that has answered in a person's place.
	AnsweredBy string `json:"answered_by,omitempty"`
}

// questionsOf returns the questions about a call as people and programs are shown them.
func questionsOf(i agent.Intervention) []MessageQuestion {
	return lo.Map(i.Questions, func(q agent.Question, _ int) MessageQuestion {
		return MessageQuestion{string(q.Kind), q.By, q.Rule, q.Reason, lo.FromPtr(q.Decision()).By}
	})
}

// newMessage returns a notice in the form that is sent; nil when no person is to be asked.
func newMessage(n durable.Notice, links Links) (body []byte, m Message, err error) {
	m = Message{Event: "approval.requested", Run: n.Run.ID, Session: n.Run.Session, Agent: n.Run.Agent}
	m.Calls = lo.Map(openCalls(n), func(c durable.WaitingCall, _ int) MessageCall {
		call := MessageCall{
			Call: c.CallID(), Tool: c.Call.Name, Questions: questionsOf(c.Intervention),
			Asked: c.Asked, Deadline: c.Deadline, Hash: c.Call.Hash(), Link: links.To(c.Token),
		}
		if !c.Deadline.IsZero() {
			call.OnTimeout = c.Questions.OnTimeout().String()
		}
		return call
	})
	if len(m.Calls) == 0 {
		return nil, m, nil
	}
	if body, err = json.Marshal(m); err != nil {
		err = fmt.Errorf("writing the notice that run %s waits: %w", n.Run.ID, err)
	}
	return body, m, err
}
