package adkguard

import (
	"encoding/json"
	"maps"
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

// transcript converts the stored session's events. The user's words are the message that begins an invocation: the runner puts
// them there, while an agent can write later events in the user's name. Answers of earlier invocations' tools are strangers' texts.
func (r *run) transcript() (out []agent.Message) {
	if r.stored == nil {
		return nil
	}
	began := map[string]bool{r.id: r.silent}
	calls := map[string]agent.ToolCall{} // of this invocation
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
			case part.FunctionCall != nil && e.InvocationID == r.id && !byUser:
				note(calls, part.FunctionCall)
			case part.FunctionResponse != nil:
				out = append(out, r.answers(e, part.FunctionResponse, calls)...)
			}
		}
	}
	return out
}

// note keeps a call. A question does not take the place of a tool's call with its ID.
func note(calls map[string]agent.ToolCall, call *genai.FunctionCall) {
	if old, known := calls[call.ID]; known && !isQuestion(old.Name) {
		return
	}
	arguments, _ := encode(call.Args) // it came as JSON
	calls[call.ID] = agent.ToolCall{ID: call.ID, Name: call.Name, Arguments: arguments}
}

// isQuestion reports whether adk itself makes the calls with this name, to ask the client.
func isQuestion(name string) bool { return strings.HasPrefix(name, "adk_request_") }

// answers converts an answer. An answer of this invocation's tool is one, while others are strangers' texts, and so is what
// the client answers for a call that takes long, which is a call all the same. A question, a person's answer to it and a
// refusal are nothing. What a call is about, its answer does not say.
func (r *run) answers(e *session.Event, answer *genai.FunctionResponse, calls map[string]agent.ToolCall) (out []agent.Message) {
	call, known := calls[answer.ID]
	if !known {
		call = agent.ToolCall{ID: answer.ID, Name: answer.Name, Arguments: "{}"}
	}
	_, asks := e.Actions.RequestedToolConfirmations[answer.ID]
	own, byUser := e.InvocationID == r.id, e.Author == genai.RoleUser
	if asks || r.has(r.refused, answer.ID) || call.Name == toolconfirmation.FunctionCallName && (known || !own) {
		return nil
	}
	text, err := encode(answer.Response)
	if err != nil {
		text = err.Error()
	}
	if byUser || !own {
		out = append(out, agent.UserText(text).WithSource(source+":"+call.Name))
	}
	if own && (!byUser || e.CustomMetadata[mark] == nil && !isQuestion(call.Name)) {
		out = append(out, guard.Foreign(call, text))
	}
	return out
}

// unanswered returns the calls of the invocation that have no answer, because the client has left or they take long.
func (r *run) unanswered() (out []agent.Message) {
	calls := map[string]agent.ToolCall{}
	for e := range r.stored.Events().All() {
		if e.InvocationID != r.id {
			continue
		}
		if e.Author != genai.RoleUser {
			for _, call := range callsIn(e.Content) {
				note(calls, call)
			}
		}
		for _, answer := range answersIn(e.Content) {
			delete(calls, answer.ID)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(calls)) {
		if !isQuestion(calls[id].Name) {
			out = append(out, guard.Foreign(calls[id], "the outcome is unknown"))
		}
	}
	return out
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

func answersIn(c *genai.Content) (out []*genai.FunctionResponse) {
	if c == nil {
		return nil
	}
	for _, part := range c.Parts {
		if part != nil && part.FunctionResponse != nil {
			out = append(out, part.FunctionResponse)
		}
	}
	return out
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
		for _, answer := range answersIn(e.Content) {
			out[answer.ID] = true
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
