package openai

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

type formatJSON struct {
	Type   string          `json:"type"`
	Schema *jsonSchemaJSON `json:"json_schema"`
}

// jsonSchemaJSON contains raw JSON for the same reason as functionJSON.
type jsonSchemaJSON struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
	Strict bool            `json:"strict"`
}

var notInNames = regexp.MustCompile(`[^a-zA-Z0-9_-]+`)

// outputSchema returns an answer's format for the request. Strict, which the service enforces exactly, is set if the
// schema follows the rules for strict schemas. OpenAI supports only objects. If OpenAI would refuse the schema,
// outputSchema returns nil, and only the loop's own check enforces the schema.
func outputSchema(o agent.Output, vendor bool) (*jsonSchemaJSON, error) {
	var schema any
	if err := json.Unmarshal([]byte(o.Schema), &schema); err != nil {
		return nil, errors.New("the schema of the output is not JSON")
	}
	if root, ok := schema.(map[string]any); vendor && (!ok || root["type"] != "object") {
		return nil, nil
	}
	name := strings.Trim(notInNames.ReplaceAllString(o.Name, "_"), "_")
	name = lo.CoalesceOrEmpty(name[:min(len(name), 64)], "answer")
	return &jsonSchemaJSON{name, json.RawMessage(o.Schema), strictSchema(schema)}, nil
}
