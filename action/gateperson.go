package action

import (
	"context"
	"errors"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/callback"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// askPerson asks a person at a point where hooks cannot ask. It asks about the current call, or about a made-up call
// that describes the question.
func (g Gate) askPerson(ctx context.Context, approver agent.Approver, r *Request) (callback.Answer, error) {
	if len(g.Approvers) > 0 || g.Quorum > 1 {
		return callback.Answer{}, newFault(g.Type(), FaultSetup, "approvers and quorum require a gate at PreToolUse, not at %s", r.Point)
	}
	call := agent.ToolCall{ID: r.CallID, Name: r.Tool, Arguments: string(r.Arguments)}
	if r.Tool == "" {
		text, err := strictjson.Marshal(map[string]string{"hook": r.Hook, "point": string(r.Point), "question": g.reason(r)})
		if err != nil {
			return callback.Answer{}, &Error{Type: g.Type(), Fault: FaultSetup, Err: err}
		}
		call = agent.ToolCall{ID: "gate-" + r.Hook, Name: "gate", Arguments: text}
	}
	pending := &agent.Prepared{Original: &call, Call: &call, Disposition: agent.DisposeAsk}
	pending.SetQuestions(agent.Questions{{By: r.Hook, Reason: g.reason(r), Within: g.Timeout}})
	answers, err := callWithin(ctx, g.Type(), maxTimeout, func(ctx context.Context) ([]agent.Approval, error) {
		return approver.Approve(ctx, r.state, []*agent.Prepared{pending})
	})
	if err != nil {
		return callback.Answer{}, err
	}
	if len(answers) != 1 {
		return callback.Answer{}, newFault(g.Type(), FaultAnswer, "the approver returned %d answers to one question", len(answers))
	}
	return g.person(answers[0])
}

// person converts a person's answer.
func (g Gate) person(a agent.Approval) (callback.Answer, error) {
	switch a.Verdict {
	case agent.Approve, agent.RejectAndEnd, agent.RejectAndContinue:
	case agent.Park:
		err := errors.New("the approver postponed the answer: only a gate at PreToolUse can wait for it")
		return callback.Answer{}, &Error{Type: g.Type(), Fault: FaultExit, Err: err}
	default:
		return callback.Answer{}, &Error{Type: g.Type(), Fault: FaultExit, Err: errors.New("no person can be asked")}
	}
	if a.Arguments != "" {
		return callback.Answer{}, &Error{Type: g.Type(), Fault: FaultAnswer, Err: errors.New("the person changed the arguments, which is not supported here")}
	}
	word := "reject"
	if a.Verdict == agent.Approve {
		word = "approve"
	}
	text, err := strictjson.Marshal(map[string]string{"action": word, "message": a.Reason, "by": a.By})
	if err != nil {
		return callback.Answer{}, &Error{Type: g.Type(), Fault: FaultAnswer, Err: err}
	}
	return callback.Answer{Approved: a.Verdict == agent.Approve, Message: a.Reason, Text: text}, nil
}
