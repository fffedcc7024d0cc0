package policytest

import (
	"bytes"
	"encoding/json"

	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// Value is any value as JSON; numbers keep their digits. Empty means no value.
type Value json.RawMessage //nolint:recvcheck // ReadNode sets the value, other methods read it

// ReadNode reads any value.
func (v *Value) ReadNode(n yamlfile.Node) {
	if out, err := json.Marshal(n.Value()); err == nil { // true for all values that JSON supports
		*v = out
	}
}

// MarshalJSON returns the value's JSON.
func (v Value) MarshalJSON() ([]byte, error) {
	if len(v) == 0 {
		return []byte("null"), nil
	}
	return v, nil
}

// Arguments holds a tool call's arguments: an object, or the model's exact text.
type Arguments string //nolint:recvcheck // ReadNode sets the value, other methods read it

// ReadNode reads an object or a string.
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

// jsonText returns the arguments as JSON, exactly as the model gave them.
func (a Arguments) jsonText() string {
	if a == "" {
		return "{}"
	}
	return string(a)
}

// ToolResult is a tool's result: text, or text with a status.
type ToolResult struct { //nolint:recvcheck // ReadNode sets the fields, other methods read the value
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

// ReadNode reads a string or a mapping.
func (r *ToolResult) ReadNode(n yamlfile.Node) {
	if n.Kind() == yamlfile.TextNode {
		r.Text = n.Raw()
		return
	}
	n.Decode((*toolResult)(r))
}

// variableValue converts a value for a policy's variables: numbers keep their digits.
func variableValue(v Value) any {
	var out any
	in := json.NewDecoder(bytes.NewReader(v))
	in.UseNumber()
	if in.Decode(&out) != nil {
		return nil
	}
	return out
}
