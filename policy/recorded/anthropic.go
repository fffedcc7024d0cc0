package recorded

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// blockMessage is a message in the Messages API.
type blockMessage struct {
	ID      string          `json:"id"`
	Role    string          `json:"role"`
	Model   string          `json:"model"`
	Content json.RawMessage `json:"content"`
}

// block is one of a message's content blocks.
type block struct {
	Type string `json:"type"`
	Text string `json:"text"`

	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`

	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

// anthropic reads Messages API messages.
func (*chatForm) anthropic(record *replay.Record, b chatBody) error {
	if text, err := blockText(b.System); err != nil {
		return fmt.Errorf("system: %w", err)
	} else if text != "" {
		record.Messages = append(record.Messages, newMessage(replay.RoleSystem, text))
	}
	if b.Response != nil {
		b.Messages = append(b.Messages, b.Response)
	}
	for i, raw := range b.Messages {
		var m blockMessage
		err := strictjson.Unmarshal(raw, &m)
		if err == nil {
			var list []replay.Message
			list, err = m.messages()
			record.Messages = append(record.Messages, list...)
		}
		if err != nil {
			return fmt.Errorf("message %d: %w", i+1, err)
		}
		record.Model = firstOf(record.Model, m.Model)
	}
	for i, raw := range b.Tools {
		var tool struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			InputSchema json.RawMessage `json:"input_schema"`
		}
		if err := strictjson.Unmarshal(raw, &tool); err != nil {
			return fmt.Errorf("tool %d: %w", i+1, err)
		}
		if tool.InputSchema == nil {
			continue // a tool that the vendor runs: hooks do not see its calls
		}
		record.Tools = append(record.Tools, replay.ToolSchema{Name: tool.Name, Description: tool.Description, Parameters: tool.InputSchema})
	}
	return nil
}

// messages converts the message for replay: first the tool results, then the text.
func (m blockMessage) messages() ([]replay.Message, error) {
	var out []replay.Message
	said := replay.Message{Role: replay.Role(m.Role)}
	if m.Role != "user" && m.Role != "assistant" && m.Role != "system" {
		return nil, fmt.Errorf("unknown role %q: expected user, assistant or system", m.Role)
	}
	blocks, err := blocksOf(m.Content)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	for _, b := range blocks {
		switch b.Type {
		case "text":
			if text.Len() > 0 {
				text.WriteString("\n")
			}
			text.WriteString(b.Text)
		case "tool_use":
			said.ToolCalls = append(said.ToolCalls, call(b.ID, b.Name, objectText(b.Input)))
		case "tool_result":
			result, err := blockText(b.Content)
			if err != nil {
				return nil, fmt.Errorf("the answer to %q: %w", b.ToolUseID, err)
			}
			out = append(out, newAnswer(b.ToolUseID, "", result, b.IsError))
		}
	}
	if text.Len() > 0 {
		said.Content = replay.Text(text.String())
	}
	if said.Content.Said || len(said.ToolCalls) > 0 || len(blocks) == 0 {
		out = append(out, said)
	}
	return out, nil
}

// blocksOf parses content, which is a string or a list of blocks.
func blocksOf(content json.RawMessage) ([]block, error) {
	if len(content) == 0 || string(content) == "null" {
		return nil, nil
	}
	if content[0] == '"' {
		var text string
		err := strictjson.Unmarshal(content, &text)
		return []block{{Type: "text", Text: text}}, err
	}
	var blocks []block
	err := strictjson.Unmarshal(content, &blocks)
	return blocks, err
}

// blockText returns the joined text blocks in content.
func blockText(content json.RawMessage) (string, error) {
	blocks, err := blocksOf(content)
	if err != nil {
		return "", err
	}
	var texts []string
	for _, b := range blocks {
		if b.Type == "text" {
			texts = append(texts, b.Text)
		}
	}
	return strings.Join(texts, "\n"), nil
}

// objectText returns the text of arguments that were recorded as an object, without insignificant white space.
func objectText(input json.RawMessage) string {
	if len(input) == 0 || string(input) == "null" {
		return "{}"
	}
	var out bytes.Buffer
	if json.Compact(&out, input) != nil {
		return string(input)
	}
	return out.String()
}
