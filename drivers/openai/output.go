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

// jsonSchemaJSON is written here for the reason that functionJSON is.
type jsonSchemaJSON struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
	Strict bool            `json:"strict"`
}

var notInNames = regexp.MustCompile(`[^a-zA-Z0-9_-]+`)

// outputSchema asks for an answer in a form. Strict, which the service holds to
// the letter, is asked for where the schema keeps to what strict schemas may say.
// Nil where OpenAI would not take the schema at all, as it only answers with objects:
// then only the loop's own check holds the answer to it.
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
