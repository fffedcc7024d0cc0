package mcpcall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/guard"
)

// Call is a tool call as the client has sent it.
type Call struct {
	// Tool is the tool's name for the rules, and Arguments the JSON of its arguments. Empty means {}.
	Tool, Arguments string
	// State is the request's requestState.
	State string
	// Answer is the client's response to the input request named ApprovalInput. Nil means none.
	Answer json.RawMessage
}

// ApprovalInput is the name of the guard's own input request.
const ApprovalInput = "grapnel.approval"

// Client is how the client's user can be asked.
type Client struct {
	// TakesInputRequests says that the client's protocol has input requests in results.
	TakesInputRequests bool
	// Elicit sends params of an elicitation to a client of an older protocol, and returns its result.
	Elicit func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)
	// Identity is who the client's user is, as far as it was verified.
	Identity string
}

// Request is what the tool gets.
type Request struct {
	Arguments string
	// State is the requestState that the tool itself has given.
	State string
	// DropsInput says that the client's input responses were for the guard, and not for the tool.
	DropsInput bool
}

// The guard's request state is statePrefix, the token, a point, approved once the user has approved, a point, and the
// tool's own state. A client that lies about its user's approval could as well lie in its answer.
const (
	statePrefix = "grapnel:"
	approved    = "approved"
)

// errInput marks a tool's own request for input.
var errInput = errors.New("the tool asks for input")

// Answer returns the tool's result, or a result that asks the client's user. Next sends the call to the tool. Its error
// is returned as it is, unless a filter changed it.
func Answer(
	ctx context.Context, s *guard.Session, call Call, client Client, next func(context.Context, Request) (json.RawMessage, error),
) (json.RawMessage, error) {
	c := guard.Call{Tool: call.Tool, Arguments: call.Arguments}
	request, given := Request{State: call.State}, call.Answer
	if sealed, ours := strings.CutPrefix(call.State, statePrefix); ours {
		token, rest, _ := strings.Cut(sealed, ".")
		before, own, _ := strings.Cut(rest, ".")
		c.Token, request.State = token, own
		if before == approved {
			given = json.RawMessage(`{"action":"accept","content":{"decision":"approve"}}`)
		} else {
			request.DropsInput = true
		}
	}
	if given != nil {
		c.Answers = answersIn(given, client.Identity)
	}
	var asks json.RawMessage
	run := func(ctx context.Context, arguments string) (json.RawMessage, error) {
		own := request
		own.Arguments = arguments
		result, err := next(ctx, own)
		if err != nil {
			return nil, err
		}
		question, err := isQuestion(result)
		if err != nil {
			return nil, err
		}
		if question {
			asks = result
			return nil, guard.Pause(errInput)
		}
		return result, nil
	}
	for round := 0; ; round++ {
		result, err := guard.Do(ctx, s, c, run, NewShape())
		if asks != nil && errors.Is(err, errInput) {
			return withState(asks, c.Token)
		}
		if stop, ok := errors.AsType[*guard.StopError](err); ok {
			if result == nil {
				result = Refusal(stop.Text)
			}
			return result, nil
		}
		ask, ok := errors.AsType[*guard.AskError](err)
		switch {
		case !ok && err != nil:
			return nil, err
		case !ok:
			return result, nil
		case client.TakesInputRequests:
			return askByResult(ask), nil
		case round > 0: // the answer did not count
			return Refusal(fmt.Sprintf("tool %q: not executed: the answer does not suffice: %s", c.Tool, ask.Questions.Reason())), nil
		}
		answer, err := json.RawMessage(nil), errCannotAsk
		if client.Elicit != nil {
			answer, err = client.Elicit(ctx, elicitation(ask))
		}
		if err != nil {
			return Refusal(fmt.Sprintf("tool %q: denied: it needs approval (%s), and the client cannot ask: %v", c.Tool, ask.Questions.Reason(), err)), nil
		}
		c.Token, c.Answers = ask.Token, answersIn(answer, client.Identity)
	}
}

var errCannotAsk = errors.New("it does not declare elicitation")

// isQuestion reports whether the result asks for input. One that also has content is an error, because a question passes
// no filter.
func isQuestion(result json.RawMessage) (bool, error) {
	o, err := ReadObject(result)
	if err != nil {
		return false, nil //nolint:nilerr // it will be withheld
	}
	kind, _ := o.Text("resultType")
	requests := o.Get("inputRequests")
	if kind != "input_required" && (requests == nil || string(requests) == "null") {
		return false, nil
	}
	for _, m := range o {
		isEmpty := string(m.Value) == "[]" || string(m.Value) == "null"
		if !isEmpty && (strings.EqualFold(m.Name, "content") || strings.EqualFold(m.Name, structuredPart)) {
			return false, fmt.Errorf("the tool's result has both %s and input requests", m.Name)
		}
	}
	return true, nil
}

// withState returns a tool's question whose state has the token of the approved call. It is unchanged without a token,
// unless its own state looks like the guard's.
func withState(asks json.RawMessage, token string) (json.RawMessage, error) {
	o, err := ReadObject(asks)
	if err != nil {
		return nil, err
	}
	own, _ := o.Text("requestState")
	if token == "" && !strings.HasPrefix(own, statePrefix) {
		return asks, nil
	}
	return o.With("requestState", JSONOf(statePrefix+token+"."+approved+"."+own)).JSON(), nil
}

// askByResult returns a result that asks the client's user.
func askByResult(ask *guard.AskError) json.RawMessage {
	return JSONOf(map[string]any{
		"content": []any{}, "resultType": "input_required", "requestState": statePrefix + ask.Token + "..",
		"inputRequests": map[string]any{ApprovalInput: map[string]any{"method": "elicitation/create", "params": elicitation(ask)}},
	})
}

// elicitation returns the form that asks the client's user.
func elicitation(ask *guard.AskError) json.RawMessage {
	return JSONOf(map[string]any{
		"mode":    "form",
		"message": fmt.Sprintf("Approve this call of %s? %s\n%s", ask.Call.Name, ask.Questions.Reason(), ask.Call.Arguments),
		"requestedSchema": map[string]any{
			"type": "object", "required": []string{"decision"},
			"properties": map[string]any{
				"decision": map[string]any{"type": "string", "enum": []string{"approve", "reject"}},
				"reason":   map[string]any{"type": "string", "description": "Why not? The model is told."},
			},
		},
	})
}

// answersIn returns the user's answer. Whatever is not clearly an approval rejects.
func answersIn(given json.RawMessage, identity string) []agent.Approval {
	a := agent.Approval{Verdict: agent.RejectAndContinue, By: "the client's user", Identity: identity}
	if o, err := ReadObject(given); err == nil && string(plainJSON(o.Get("action"))) == `"accept"` {
		content, _ := ReadObject(o.Get("content"))
		if decision, _ := content.Text("decision"); decision == "approve" {
			a.Verdict = agent.Approve
		}
		a.Reason, _ = content.Text("reason")
	}
	return []agent.Approval{a}
}
