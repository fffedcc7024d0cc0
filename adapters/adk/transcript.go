package adkguard

import (
	"encoding/json"
	"slices"
	"strings"

	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool/toolconfirmation"
	"google.golang.org/genai"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/guard"
)

// source marks texts that are not the user's.
const source = "adk"

// transcript converts the stored session's events. The user's words are those that begin an invocation: the runner puts
// them there, while an agent can write later events in the user's name. Answers of earlier invocations' tools are strangers' texts.
func (r *run) transcript() (out []agent.Message) {
	if r.stored == nil {
		return nil
	}
	began := map[string]bool{r.id: r.silent}
	calls := map[string]agent.ToolCall{}
	for e := range r.stored.Events().All() {
		first := !began[e.InvocationID]
		began[e.InvocationID] = true
		if e.Partial || e.Content == nil {
			continue
		}
		byUser := e.Author == genai.RoleUser
		if text := textOf(e.Content); text != "" {
			switch {
			case byUser && first && e.CustomMetadata[mark] == nil:
				out = append(out, agent.UserText(text))
			case byUser:
				out = append(out, agent.UserText(text).WithSource(source))
			default:
				out = append(out, agent.Assistant(text))
			}
		}
		for _, part := range e.Content.Parts {
			switch {
			case part == nil:
			case part.FunctionCall != nil:
				arguments, _ := encode(part.FunctionCall.Args) // it came as JSON
				calls[part.FunctionCall.ID] = agent.ToolCall{ID: part.FunctionCall.ID, Name: part.FunctionCall.Name, Arguments: arguments}
			case part.FunctionResponse != nil && !r.isOurs(e, part.FunctionResponse):
				out = append(out, answerIn(calls, part.FunctionResponse, byUser || e.InvocationID != r.id))
				if byUser && e.InvocationID == r.id && e.CustomMetadata[mark] == nil { // the client answers a call that takes long
					out = append(out, answerIn(calls, part.FunctionResponse, false))
				}
			}
		}
	}
	return out
}

// isOurs reports whether an answer is no tool's: a question, a person's answer to it, or a refusal.
func (r *run) isOurs(e *session.Event, answer *genai.FunctionResponse) bool {
	_, asks := e.Actions.RequestedToolConfirmations[answer.ID]
	return asks || answer.Name == toolconfirmation.FunctionCallName || r.has(r.refused, answer.ID)
}

// answerIn converts a tool's answer. Elsewhere means that no call of this invocation has brought it.
func answerIn(calls map[string]agent.ToolCall, answer *genai.FunctionResponse, elsewhere bool) agent.Message {
	text, err := encode(answer.Response)
	if err != nil {
		text = err.Error()
	}
	if elsewhere {
		return agent.UserText(text).WithSource(source + ":" + answer.Name)
	}
	call, ok := calls[answer.ID]
	if !ok || call.Name != answer.Name {
		call = agent.ToolCall{ID: answer.ID, Name: answer.Name, Arguments: "{}"}
	}
	return guard.Foreign(call, text)
}

// tokenField is the field of a question's payload that holds its token.
const tokenField = "grapnel_question" //nolint:gosec // a name

// beganBefore reports whether the guard has allowed a task's call, maybe in another process.
func beganBefore(stored session.Session, callID string) bool {
	for e := range stored.Events().All() {
		if e.Author == genai.RoleUser || e.CustomMetadata[mark] == nil {
			continue
		}
		if slices.ContainsFunc(callsIn(e.Content), func(c *genai.FunctionCall) bool { return c.ID == callID }) {
			return true
		}
	}
	return false
}

func hasAnswers(c *genai.Content) bool {
	return c != nil && slices.ContainsFunc(c.Parts, func(p *genai.Part) bool { return p != nil && p.FunctionResponse != nil })
}

func callsIn(c *genai.Content) (out []*genai.FunctionCall) {
	if c == nil {
		return nil
	}
	for _, part := range c.Parts {
		if part != nil && part.FunctionCall != nil {
			out = append(out, part.FunctionCall)
		}
	}
	return out
}

// tokenOf returns the token of the question about a call that the user has answered last. It is in the question as it is
// stored: what the client sends back proves nothing. Answers to several questions about the call count as none, because
// adk does not say which one it means.
func tokenOf(callID string, stored session.Session) string {
	answered := lastAnswers(stored.Events())
	var tokens []string
	for e := range stored.Events().All() {
		if e.Author == genai.RoleUser {
			continue
		}
		for _, question := range callsIn(e.Content) {
			if question.Name != toolconfirmation.FunctionCallName || !answered[question.ID] {
				continue
			}
			if call, err := toolconfirmation.OriginalCallFrom(question); err == nil && call.ID == callID {
				tokens = append(tokens, tokenIn(question.Args["toolConfirmation"]))
			}
		}
	}
	if len(tokens) != 1 {
		return ""
	}
	return tokens[0]
}

// lastAnswers returns the IDs of the calls that the user's last event answers.
func lastAnswers(events session.Events) map[string]bool {
	out := map[string]bool{}
	for i := events.Len() - 1; i >= 0; i-- {
		e := events.At(i)
		if e.Author != genai.RoleUser || e.Content == nil {
			continue
		}
		for _, part := range e.Content.Parts {
			if part != nil && part.FunctionResponse != nil {
				out[part.FunctionResponse.ID] = true
			}
		}
		break
	}
	return out
}

func tokenIn(question any) string {
	var q struct {
		Payload map[string]any `json:"payload"`
	}
	if text, err := encode(question); err != nil || json.Unmarshal([]byte(text), &q) != nil {
		return ""
	}
	text, _ := q.Payload[tokenField].(string)
	return text
}

// words converts what the model of an agent that a tool starts is shown. None of it is the user's, and the guard has its
// tools' answers.
func words(contents []*genai.Content) (out []agent.Message) {
	for _, c := range contents {
		text := textOf(c)
		switch {
		case text == "":
		case c.Role == genai.RoleModel:
			out = append(out, agent.Assistant(text))
		default:
			out = append(out, agent.UserText(text).WithSource(source))
		}
	}
	return out
}

func textOf(c *genai.Content) string {
	if c == nil {
		return ""
	}
	var text strings.Builder
	for _, p := range c.Parts {
		if p != nil && !p.Thought {
			text.WriteString(p.Text)
		}
	}
	return text.String()
}
