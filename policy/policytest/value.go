package policytest

import (
	"bytes"
	"encoding/json"

	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// Value is any value as JSON; numbers keep their digits. Empty means no value.
type Value json.RawMessage //nolint:recvcheck // ReadNode fills it in, all else reads the value

// ReadNode reads any value.
func (v *Value) ReadNode(n yamlfile.Node) {
	if out, err := json.Marshal(n.Value()); err == nil { // of values that JSON supports
		*v = out
	}
}

// MarshalJSON returns the JSON text of the value.
func (v Value) MarshalJSON() ([]byte, error) {
	if len(v) == 0 {
		return []byte("null"), nil
	}
	return v, nil
}

// Arguments are the arguments of a tool call: an object, or the exact text that the model gave.
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

// jsonText returns the arguments as JSON text, exactly as the model gave them.
func (a Arguments) jsonText() string {
	if a == "" {
		return "{}"
	}
	return string(a)
}

// ToolResult is the result of a tool: a text, or a text with a status.
type ToolResult struct { //nolint:recvcheck // ReadNode fills it in, all else reads the value
	Text    string `key:"text"`
	IsError bool   `key:"is_error"`
	// Status is executed, failed, mocked, not_executed or unknown; the default is executed.
	Status string `key:"status"`
	Reason string `key:"reason"`
	// Attempts is how often the tool was started.
	Attempts int `key:"attempts,nonnegative"`
	// Data is the result of a coordinator's run, as JSON.
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

// variableValue converts a value for the variables of a policy: numbers keep their digits.
func variableValue(v Value) any {
	var out any
	in := json.NewDecoder(bytes.NewReader(v))
	in.UseNumber()
	if in.Decode(&out) != nil {
		return nil
	}
	return out
}
