package recorded

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// chatForm reads messages in the OpenAI chat API or the Anthropic Messages API, in all common file layouts.
type chatForm struct {
	file
	messages []json.RawMessage // from a list of messages, or from lines with one message each
	begun    int               // the first message's line
}

// chatBody is a request, or an object that contains one.
type chatBody struct {
	ID        string            `json:"id"`
	CustomID  string            `json:"custom_id"`
	Model     string            `json:"model"`
	Role      string            `json:"role"`
	System    json.RawMessage   `json:"system"`
	Messages  []json.RawMessage `json:"messages"`
	Tools     []json.RawMessage `json:"tools"`
	Functions []json.RawMessage `json:"functions"`

	Body     json.RawMessage `json:"body"`
	Params   json.RawMessage `json:"params"`
	Request  json.RawMessage `json:"request"`
	Response json.RawMessage `json:"response"`
}

func (f *chatForm) add(v value) ([]*Run, error) {
	if v.last {
		runs, wrong := f.end()
		return runs, errors.Join(wrong...)
	}
	var b chatBody
	if err := strictjson.Unmarshal(v.text, &b); err != nil {
		return nil, err
	}
	if b.Role != "" && b.Messages == nil {
		if len(f.messages) == 0 {
			f.begun = v.line
		}
		f.messages = append(f.messages, json.RawMessage(append([]byte(nil), v.text...)))
		return nil, nil
	}
	run, err := f.body(v.line, b)
	if err != nil {
		return nil, err
	}
	return []*Run{run}, nil
}

// end returns the run whose messages were read one by one.
func (f *chatForm) end() ([]*Run, []error) {
	if len(f.messages) == 0 {
		return nil, nil
	}
	body := chatBody{Messages: f.messages}
	f.messages = nil
	run, err := f.body(f.begun, body)
	if err != nil {
		return nil, []error{atLine(f.begun, err)}
	}
	return []*Run{run}, nil
}

// body converts a request to a Run.
func (f *chatForm) body(line int, b chatBody) (*Run, error) {
	for _, inner := range []json.RawMessage{b.Body, b.Params, b.Request} {
		if b.Messages != nil || inner == nil {
			continue
		}
		in := chatBody{}
		if err := strictjson.Unmarshal(inner, &in); err != nil {
			return nil, err
		}
		if in.ID == "" {
			in.ID = firstOf(b.CustomID, b.ID)
		}
		in.Response = b.Response
		b = in
	}
	if b.Messages == nil {
		return nil, fmt.Errorf(`%w: it has no "messages"`, replay.ErrNotARun)
	}
	record := replay.Record{ID: firstOf(b.ID, b.CustomID), Model: b.Model, Messages: []replay.Message{}}
	read := f.openAI
	if f.format == Anthropic {
		read = f.anthropic
	}
	if err := read(&record, b); err != nil {
		return nil, err
	}
	return f.run(line, record), nil
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// openAI reads chat API messages.
func (*chatForm) openAI(record *replay.Record, b chatBody) error {
	if b.Response != nil {
		var said struct {
			Body    json.RawMessage `json:"body"` // in a batch
			Choices []struct {
				Message json.RawMessage `json:"message"`
			} `json:"choices"`
		}
		if err := strictjson.Unmarshal(b.Response, &said); err != nil {
			return fmt.Errorf("response: %w", err)
		}
		if said.Body != nil {
			if err := strictjson.Unmarshal(said.Body, &said); err != nil {
				return fmt.Errorf("response: %w", err)
			}
		}
		if len(said.Choices) > 0 {
			b.Messages = append(b.Messages, said.Choices[0].Message)
		}
	}
	for i, raw := range b.Messages {
		var m replay.Message
		if err := strictjson.Unmarshal(raw, &m); err != nil {
			return fmt.Errorf("message %d: %w", i+1, err)
		}
		if err := older(&m, i); err != nil {
			return fmt.Errorf("message %d: %w", i+1, err)
		}
		record.Messages = append(record.Messages, m)
	}
	for i, raw := range b.Tools {
		var tool replay.ToolSchema
		if err := strictjson.Unmarshal(raw, &tool); err != nil {
			return fmt.Errorf("tool %d: %w", i+1, err)
		}
		record.Tools = append(record.Tools, tool)
	}
	for i, raw := range b.Functions {
		var tool replay.ToolSchema
		if err := strictjson.Unmarshal(`{"type":"function","function":`+string(raw)+`}`, &tool); err != nil {
			return fmt.Errorf("function %d: %w", i+1, err)
		}
		record.Tools = append(record.Tools, tool)
	}
	return nil
}

// older converts a message from before tool calls had IDs to the current format.
func older(m *replay.Message, at int) error {
	if m.Role == "function" {
		m.Role = replay.RoleTool
		m.ToolCallID = fmt.Sprintf("function_%d", at-1)
	}
	raw, ok := m.Other["function_call"]
	if !ok || string(raw) == "null" || len(m.ToolCalls) > 0 {
		return nil
	}
	var f replay.FunctionCall
	if err := strictjson.Unmarshal(raw, &f); err != nil {
		return fmt.Errorf("function_call: %w", err)
	}
	delete(m.Other, "function_call")
	m.ToolCalls = []replay.ToolCall{{ID: fmt.Sprintf("function_%d", at), Type: "function", Function: f}}
	return nil
}
