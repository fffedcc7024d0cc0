package agentfile

import (
	"encoding/json"

	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/toolexec"
)

// Schema is a JSON Schema, as JSON text, written into the file as a mapping.
type Schema struct {
	Text string
	At   yamlfile.Place
}

// ReadNode reads a schema.
func (s *Schema) ReadNode(n yamlfile.Node) {
	if n.Kind() != yamlfile.MappingNode {
		n.Wrong("expected a JSON Schema, written as keys with values, got %s", n)
		return
	}
	text, err := json.Marshal(n.Value())
	if err != nil {
		n.Wrong("expected a JSON Schema: %v", err)
		return
	}
	*s = Schema{string(text), n.Place()}
	if _, err := toolexec.CompileSchema(s.Text); err != nil {
		n.Wrong("expected a JSON Schema of an object: %v", err)
	}
}
