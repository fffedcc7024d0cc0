package action

import (
	"context"
	"errors"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// askPerson asks a person where no hook can: about the call at hand, or about a call of the gate's own that says what is
// asked.
func (g Gate) askPerson(ctx context.Context, approver agent.Approver, r *Request) (said, error) {
	call := agent.ToolCall{ID: r.CallID, Name: r.Tool, Arguments: string(r.Arguments)}
	if r.Tool == "" {
		text, err := strictjson.Marshal(map[string]string{"hook": r.Hook, "point": string(r.Point), "question": g.reason(r)})
		if err != nil {
			return said{}, &Error{g.Type(), FaultSetup, err}
		}
		call = agent.ToolCall{ID: "gate-" + r.Hook, Name: "gate", Arguments: text}
	}
	pending := &agent.Prepared{Original: &call, Call: &call, Disposition: agent.DisposeAsk}
	pending.SetQuestions(agent.Questions{{By: r.Hook, Reason: g.reason(r), Within: g.Timeout}})
	answers, err := callWithin(ctx, g.Type(), maxTimeout, func(ctx context.Context) ([]agent.Approval, error) {
		return approver.Approve(ctx, r.state, []*agent.Prepared{pending}).Get()
	})
	if err != nil {
		return said{}, err
	}
	if len(answers) != 1 {
		return said{}, newFault(g.Type(), FaultAnswer, "the approver gave %d answers to one question", len(answers))
	}
	return g.person(answers[0])
}

// person returns what a person said.
func (g Gate) person(a agent.Approval) (said, error) {
	switch a.Verdict {
	case agent.Approve, agent.RejectAndEnd, agent.RejectAndContinue:
	case agent.Park:
		return said{}, &Error{g.Type(), FaultExit, errors.New("the answer comes later, and only a hook at PreToolUse can wait for one that does")}
	default:
		return said{}, &Error{g.Type(), FaultExit, errors.New("there is no person to ask")}
	}
	if a.Arguments != "" {
		return said{}, &Error{g.Type(), FaultAnswer, errors.New("the person gave other arguments, which nothing can be done with here")}
	}
	word := "reject"
	if a.Verdict == agent.Approve {
		word = "approve"
	}
	text, err := strictjson.Marshal(map[string]string{"action": word, "message": a.Reason, "by": a.By})
	if err != nil {
		return said{}, &Error{g.Type(), FaultAnswer, err}
	}
	return said{yes: a.Verdict == agent.Approve, message: a.Reason, text: text}, nil
}
