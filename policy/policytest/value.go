package policytest

import (
	"bytes"
	"encoding/json"

	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// Value is any value as JSON; numbers keep their digits. Empty is none.
type Value json.RawMessage //nolint:recvcheck // ReadNode fills it in, all else reads the value

// ReadNode reads any value.
func (v *Value) ReadNode(n yamlfile.Node) {
	if out, err := json.Marshal(n.Value()); err == nil { // of values that JSON knows
		*v = out
	}
}

// MarshalJSON returns the value as it is.
func (v Value) MarshalJSON() ([]byte, error) {
	if len(v) == 0 {
		return []byte("null"), nil
	}
	return v, nil
}

// Arguments are those of a tool call: an object, or the very text that the model gave.
type Arguments string //nolint:recvcheck // ReadNode fills it in, all else reads the value

// ReadNode reads an object, or a text.
func (a *Arguments) ReadNode(n yamlfile.Node) {
	switch n.Kind() {
	case yamlfile.TextNode:
		*a = Arguments(n.Raw())
	case yamlfile.MappingNode:
		var v Value
		v.ReadNode(n)
		*a = Arguments(v)
	case yamlfile.AbsentNode, yamlfile.NullNode, yamlfile.NumberNode, yamlfile.BoolNode, yamlfile.ListNode:
		n.Wrong("expected the arguments, such as {path: a.txt}, or the text that the model gave, got %s", n)
	}
}

// jsonText returns the arguments as the model gave them.
func (a Arguments) jsonText() string {
	if a == "" {
		return "{}"
	}
	return string(a)
}

// ToolResult is what a tool answered: a text, or the text with how it went.
type ToolResult struct { //nolint:recvcheck // ReadNode fills it in, all else reads the value
	Text    string `key:"text"`
	IsError bool   `key:"is_error"`
	// Status is executed, failed, mocked, not_executed or unknown; executed if left out.
	Status string `key:"status"`
	Reason string `key:"reason"`
	// Attempts is how often the tool was started.
	Attempts int `key:"attempts,nonnegative"`
	// Data is what a run of a coordinator gave, as JSON.
	Data Value `key:"data"`
}

type toolResult ToolResult

// ReadNode reads a text, or a mapping.
func (r *ToolResult) ReadNode(n yamlfile.Node) {
	if n.Kind() == yamlfile.TextNode {
		r.Text = n.Raw()
		return
	}
	n.Decode((*toolResult)(r))
}

// variableValue returns a value as policies have their variables: numbers as they are written.
func variableValue(v Value) any {
	var out any
	in := json.NewDecoder(bytes.NewReader(v))
	in.UseNumber()
	if in.Decode(&out) != nil {
		return nil
	}
	return out
}
