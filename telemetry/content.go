package telemetry

import (
	"encoding/json"

	"github.com/samber/lo"
	"go.opentelemetry.io/otel/attribute"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/semconv"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// finishReasons maps each finish reason to its attribute. The conventions require a list, with an entry for each
// choice.
var finishReasons = lo.SliceToMap(
	[]agent.FinishReason{agent.FinishStop, agent.FinishLength, agent.FinishToolCalls, agent.FinishFilter, agent.FinishError},
	func(r agent.FinishReason) (agent.FinishReason, attribute.KeyValue) {
		return r, semconv.KeyFinishReasons.StringSlice([]string{string(r)})
	},
)

// message and part are the JSON form of messages in the conventions.
type message struct {
	Role   string `json:"role"`
	Parts  []part `json:"parts"`
	Finish string `json:"finish_reason,omitempty"`
}

type part struct {
	Type      string          `json:"type"`
	Content   *string         `json:"content,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Response  *string         `json:"response,omitempty"`
}

func textPart(text string) part { return part{Type: "text", Content: &text} }

// argumentsOf returns arguments as a JSON object. It returns a string if the text is not an object or is ambiguous.
func argumentsOf(text string) json.RawMessage {
	if strictjson.CheckObject(text) == nil {
		return json.RawMessage(text)
	}
	quoted, _ := json.Marshal(text) //nolint:errchkjson // a text
	return quoted
}

// finishOf returns a finish reason for a message, which requires one.
func finishOf(reason agent.FinishReason) string {
	switch reason {
	case agent.FinishToolCalls:
		return "tool_call"
	case "":
		return string(agent.FinishStop)
	}
	return string(reason)
}

func messageOf(m agent.Message) message {
	out := message{Role: string(m.Role()), Parts: []part{}}
	if m.Role() == agent.RoleTool {
		out.Parts = []part{{Type: "tool_call_response", ID: m.CallID(), Response: new(m.Text())}}
		return out
	}
	for _, p := range m.Content().Parts() {
		if p.Kind == agent.PartText || p.Text != "" {
			out.Parts = append(out.Parts, part{Type: string(p.Kind), Content: &p.Text})
			continue
		}
		out.Parts = append(out.Parts, part{Type: string(p.Kind)}) // images and files are named, not copied
	}
	for _, c := range m.Calls() {
		out.Parts = append(out.Parts, part{Type: "tool_call", ID: c.ID, Name: c.Name, Arguments: argumentsOf(c.Arguments)})
	}
	return out
}

// inputMessages returns the messages that the model is shown.
func inputMessages(s agent.State) string {
	var list []message
	for _, m := range s.Messages() {
		list = append(list, messageOf(m))
	}
	return encodeList(list)
}

// outputOf returns the reply after the hooks.
func outputOf(reply agent.Step) string {
	if reply.Message.Role() == "" { // middleware ended the run instead of calling the model
		return ""
	}
	m := messageOf(reply.Message)
	m.Finish = finishOf(reply.FinishReason)
	return encodeList([]message{m})
}

// outputMessages returns an answer that is only text.
func outputMessages(text string, finish agent.FinishReason) string {
	return encodeList([]message{{string(agent.RoleAssistant), []part{textPart(text)}, finishOf(finish)}})
}

func instructions(text string) string {
	if text == "" {
		return ""
	}
	return encodeList([]part{textPart(text)})
}

func encodeList[T []message | []part](list T) string {
	text, _ := json.Marshal(list) //nolint:errchkjson // structs of strings cannot fail
	return string(text)
}
