package agent

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// messageJSON is the JSON form of a message. Its content is text or parts.
type messageJSON struct {
	Role   Role       `json:"role"`
	Text   string     `json:"text,omitempty"`
	Parts  []Part     `json:"parts,omitempty"`
	Calls  []ToolCall `json:"calls,omitempty"`
	Source string     `json:"source,omitempty"`
	CallID string     `json:"call_id,omitempty"`
	Tool   string     `json:"tool,omitempty"`
	Status ToolStatus `json:"status,omitempty"`
	Reason ReasonCode `json:"reason,omitempty"`
}

// MarshalJSON writes the whole message. Invalid UTF-8 in a text is replaced by U+FFFD, so bytes belong in Part.Data.
// MarshalJSON returns an error for a message that UnmarshalJSON would refuse, such as a message without a role.
func (m Message) MarshalJSON() ([]byte, error) {
	form := m.form()
	if err := form.check(); err != nil {
		return nil, fmt.Errorf("writing a message: %w", err)
	}
	return compactJSON(form)
}

// UnmarshalJSON reads the JSON that MarshalJSON writes. It returns an error with the location for an unknown member,
// role, status or kind of part, and for a member that the role does not have.
func (m *Message) UnmarshalJSON(data []byte) error {
	var form messageJSON
	err := strictjson.UnmarshalStrict(data, &form)
	if err == nil {
		err = form.check()
	}
	if err != nil {
		return fmt.Errorf("reading a message: %w", err)
	}
	*m = form.toMessage()
	return nil
}

func (m Message) form() messageJSON {
	content := m.Content()
	return messageJSON{
		Role: m.Role(), Text: content.text, Parts: content.list(), Calls: m.list(), Source: m.Source(),
		CallID: m.CallID(), Tool: m.Tool(), Status: m.Status(), Reason: m.Reason(),
	}
}

func (f *messageJSON) toMessage() Message {
	content := TextContent(f.Text)
	if len(f.Parts) > 0 {
		content = ContentOf(f.Parts...)
	}
	if f.Role != RoleTool {
		what := speech{speaker: speakerOf(f.Role), content: content, source: sourceRef(f.Source)}
		what.calls = numberCalls(f.Calls)
		return newSpeech(what)
	}
	call := &ToolCall{ID: f.CallID, Name: f.Tool}
	return Message{&messageBody{result: &ToolResult{
		call: call, original: call, Content: content, Status: f.Status, Reason: f.Reason, DecidedBy: f.Source,
	}}}
}

// check returns an error when the form is not a valid message.
func (f *messageJSON) check() error {
	switch f.Role {
	case RoleSystem, RoleUser, RoleAssistant, RoleTool:
	case "":
		return formError("/role", "the message has no role")
	default:
		return formError("/role", "unknown role %q", f.Role)
	}
	switch {
	case f.Text != "" && len(f.Parts) > 0:
		return formError("/parts", "a message cannot have both text and parts")
	case len(f.Calls) > 0 && f.Role != RoleAssistant:
		return formError("/calls", "a message of role %q cannot have calls", f.Role)
	case f.Role != RoleTool && (f.CallID != "" || f.Tool != "" || f.Status != "" || f.Reason != ""):
		return formError("", "a message of role %q cannot have call_id, tool, status or reason", f.Role)
	case f.Status != "" && !f.Status.isDefined():
		return formError("/status", "unknown status %q", f.Status)
	}
	for i, p := range f.Parts {
		switch p.Kind {
		case PartText, PartImage, PartFile, PartReasoning:
		default:
			return formError(fmt.Sprintf("/parts/%d/kind", i), "unknown kind %q", p.Kind)
		}
	}
	return nil
}

// MarshalText returns b in base64.
func (b Bytes) MarshalText() ([]byte, error) {
	return base64.StdEncoding.AppendEncode(nil, []byte(b)), nil
}

// UnmarshalText reads base64 as MarshalText writes it, without line breaks.
func (b *Bytes) UnmarshalText(text []byte) error {
	raw := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Strict().Decode(raw, text)
	if err != nil || bytes.ContainsAny(text, "\r\n") {
		return fmt.Errorf("reading base64: %w", cmp.Or(err, errors.New("it contains a line break")))
	}
	*b = Bytes(raw[:n])
	return nil
}

// formError returns an error in a JSON form, with its location: a JSON pointer.
func formError(pointer, format string, args ...any) error {
	return &strictjson.Error{Pointer: pointer, Message: fmt.Sprintf(format, args...)}
}

// compactJSON encodes v without HTML escapes.
func compactJSON(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
