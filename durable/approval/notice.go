package approval

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// Message is the JSON that Webhook posts and that Command passes to a program. It announces that a run waits. It does not
// contain the arguments of the calls: only the page shows them.
type Message struct {
	// Event is always "approval.requested".
	Event   string          `json:"event"`
	Run     agent.RunID     `json:"run"`
	Session agent.SessionID `json:"session,omitempty"`
	Agent   string          `json:"agent,omitempty"`
	// Calls are the waiting calls, in call order.
	Calls []MessageCall `json:"calls"`
}

// MessageCall is a call that waits for a decision.
type MessageCall struct {
	Call string `json:"call"`
	Tool string `json:"tool"`
	// Questions are all questions about the call; one decision answers all open ones.
	Questions []MessageQuestion `json:"questions"`
	Asked     time.Time         `json:"asked"`
	// Deadline is the time limit, and OnTimeout the verdict that applies when it passes.
	Deadline  time.Time `json:"deadline,omitzero"`
	OnTimeout string    `json:"on_timeout,omitempty"`
	// Wait identifies what is asked.
	Wait string `json:"wait"`
	// Link shows the question and accepts one decision. Everyone who has it can decide.
	Link string `json:"link"`
}

// MessageQuestion is one question about a call.
type MessageQuestion struct {
	// ID identifies the question on its card.
	ID string `json:"id"`
	// Kind is empty for the question of a hook, "doubt" for the question whether to repeat a call that may already
	// have run, "gate" for what an event answers, and "input" for what a tool asks a person.
	Kind string `json:"kind,omitempty"`
	// AskedBy names the asking hook, Rule the policy rule behind it.
	AskedBy string `json:"asked_by,omitempty"`
	Rule    string `json:"rule,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// AnsweredBy names the hook that answered instead of a person.
	AnsweredBy string `json:"answered_by,omitempty"`
	// Approvers are the names and roles of those who may answer; none means anyone. Quorum, above one, is the number of
	// people who must approve, Approvals how many have.
	Approvers []string `json:"approvers,omitempty"`
	Quorum    int      `json:"quorum,omitempty"`
	Approvals int      `json:"approvals,omitempty"`
}

// questionsOf returns the questions about a call in the form shown to people and programs.
func questionsOf(i agent.Intervention) []MessageQuestion {
	return lo.Map(i.Questions, func(q agent.Question, _ int) MessageQuestion {
		m := MessageQuestion{
			ID: q.ID(), Kind: string(q.Kind), AskedBy: q.By, Rule: q.Rule, Reason: q.Reason, AnsweredBy: lo.FromPtr(q.Decision()).By, Approvers: q.Approvers,
		}
		if q.Quorum > 1 {
			m.Quorum, m.Approvals = q.Quorum, q.Approvals()
		}
		return m
	})
}

// newMessage encodes a notice. It returns nil if no call waits for a person.
func newMessage(n durable.Notice, links Links) (body []byte, m Message, err error) {
	m = Message{Event: "approval.requested", Run: n.Run.ID, Session: n.Run.Session, Agent: n.Run.Agent}
	m.Calls = lo.Map(openCalls(n), func(c durable.WaitingCall, _ int) MessageCall {
		call := MessageCall{
			Call: c.CallID(), Tool: c.Call.Name, Questions: questionsOf(c.Intervention),
			Asked: c.Asked, Deadline: c.Deadline, Wait: c.ID, Link: links.To(c.Token),
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
