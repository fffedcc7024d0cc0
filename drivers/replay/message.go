package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Role is the author of a message.
type Role string

// The roles in the chat format. developer is a newer name for system. A recording can contain other roles.
const (
	RoleSystem    Role = "system"
	RoleDeveloper Role = "developer"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one message in OpenAI chat format, as recorded.
type Message struct {
	Role    Role    `json:"role"`
	Content Content `json:"content"`

	// ToolCalls are the calls that the assistant made, in order.
	ToolCalls []ToolCall `json:"tool_calls,omitzero"`

	// ToolCallID is the ID of the call that a tool message answers. Names are not always recorded with the answer, and
	// a later step may use the same ID for another call.
	ToolCallID string `json:"tool_call_id,omitzero"`
	// Name is a tool message's tool; "" when it was not recorded.
	Name string `json:"name,omitzero"`

	// Error reports that the tool failed.
	Error bool `json:"x_error,omitzero"`
	// Injected reports that this tool's answer contains an attacker's text.
	Injected bool `json:"x_injected,omitzero"`

	// Other holds the members that have no field here, as written.
	Other map[string]json.RawMessage `json:",embed"`
}

// ToolCall is one call that an assistant made.
type ToolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"` // "function"
	Function FunctionCall `json:"function"`

	// Malformed reports that the recorder could not read the arguments as a JSON object.
	Malformed bool `json:"x_malformed,omitzero"`

	// Other holds the members that have no field here, as written.
	Other map[string]json.RawMessage `json:",embed"`
}

// FunctionCall is the name of the called tool and the arguments that the model wrote.
type FunctionCall struct {
	// Name is the name that the model wrote. A tool with this name need not exist.
	Name string `json:"name"`
	// Arguments is the model's text byte for byte. It is normally a JSON object, but the model can write any text.
	Arguments string `json:"arguments"`

	// Other holds the members that have no field here, as written.
	Other map[string]json.RawMessage `json:",embed"`
}

// Content is a message's content. The zero Content is null or absent, which differs from empty text: see Said.
type Content struct {
	// Text is the text. For a list of parts it is the joined text parts.
	Text string
	// Said is false when the content was null or absent.
	Said bool
	// Parts are the parts as written, when the content was a list. They are nil when it was a string.
	Parts []json.RawMessage
}

// Text returns a Content with the text, which may be empty.
func Text(text string) Content { return Content{Text: text, Said: true} }

// UnmarshalJSON reads null, a string, or a list of parts. A part that is not text, such as an image, is kept
// in Parts and adds nothing to Text.
func (c *Content) UnmarshalJSON(data []byte) error {
	*c = Content{}
	data = bytes.TrimSpace(data)
	switch {
	case string(data) == "null":
		return nil
	case bytes.HasPrefix(data, []byte(`"`)):
		c.Said = true
		return strictjson.Unmarshal(data, &c.Text)
	case bytes.HasPrefix(data, []byte("[")):
		var err error
		*c, err = readParts(data)
		return err
	}
	return fmt.Errorf("expected a string, null or a list of parts, got %.20s", data)
}

func readParts(data []byte) (Content, error) {
	content := Content{Said: true}
	if err := strictjson.Unmarshal(data, &content.Parts); err != nil {
		return Content{}, err
	}
	var text strings.Builder
	for i, raw := range content.Parts {
		var part struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		if err := strictjson.Unmarshal(raw, &part); err != nil {
			return Content{}, fmt.Errorf("part %d: %w", i, err)
		}
		if part.Type == "text" {
			text.WriteString(part.Text)
		}
	}
	content.Text = text.String()
	return content, nil
}

// MarshalJSON writes the content as it was read.
func (c Content) MarshalJSON() ([]byte, error) {
	var text string
	var err error
	switch {
	case !c.Said:
		return []byte("null"), nil
	case c.Parts != nil:
		text, err = strictjson.Marshal(c.Parts)
	default:
		text, err = strictjson.Marshal(c.Text)
	}
	return []byte(text), err
}
