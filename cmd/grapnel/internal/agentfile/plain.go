package agentfile

import (
	"encoding/json"
	"strconv"

	"go.yaml.in/yaml/v4"

	"github.com/grapnel-go/grapnel/toolexec"
)

// plain is a tree as the values that JSON knows. Numbers keep their digits.
func (d *decoder) plain(n *yaml.Node) any {
	switch n.Kind { //nolint:exhaustive // the others are told of already
	case yaml.MappingNode:
		out := map[string]any{}
		for _, e := range d.entries(n) {
			out[e.key.Value] = d.plain(e.value)
		}
		return out
	case yaml.SequenceNode:
		out := make([]any, len(n.Content))
		for i, item := range n.Content {
			out[i] = d.plain(item)
		}
		return out
	}
	switch n.Tag {
	case "!!null":
		return nil
	case "!!bool":
		if b, err := strconv.ParseBool(n.Value); err == nil {
			return b
		}
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return json.Number(n.Value)
		}
		d.wrong(n, "expected a number as JSON writes it, got %s: put it in quotes if it is text", n.Value)
		return nil
	}
	return n.Value
}

// Schema is a JSON Schema, as JSON text, written into the file as a mapping.
type Schema struct {
	Text string
	At   Position
}

func (s *Schema) read(d *decoder, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		d.wrong(n, "expected a JSON Schema, written as keys with values, got %s", shown(n))
		return
	}
	text, err := json.Marshal(d.plain(n))
	if err != nil {
		d.wrong(n, "expected a JSON Schema: %v", err)
		return
	}
	*s = Schema{string(text), place(n)}
	if _, err := toolexec.CompileSchema(s.Text); err != nil {
		d.wrong(n, "expected a JSON Schema of an object: %v", err)
	}
}
