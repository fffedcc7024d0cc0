package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// ToolSchema describes one tool for a model, in OpenAI chat format:
//
//	{"type": "function", "function": {"name": …, "description": …, "parameters": …}}
type ToolSchema struct {
	Name        string
	Description string
	// Parameters is the arguments' JSON Schema, as written. It is an object, or nil when the tool declares none.
	Parameters json.RawMessage
}

// toolEntry is the JSON form of a tool in a file.
type toolEntry struct {
	Type     string       `json:"type"`
	Function toolFunction `json:"function"`
}

type toolFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitzero"`
	Parameters  json.RawMessage `json:"parameters,omitzero"`
}

// LoadTools reads a file of tool schemas, as ParseTools does.
func LoadTools(file string) ([]ToolSchema, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("load tools: %w", err)
	}
	tools, err := ParseTools(text)
	if err != nil {
		return nil, fmt.Errorf("load tools %q: %w", file, err)
	}
	return tools, nil
}

// FindTools reads the tool schemas that a recording names by ref, its ToolsRef. The file is in dir, the recording's
// folder, or in the folder tools below it.
func FindTools(dir fs.FS, ref string) ([]ToolSchema, error) {
	text, err := fs.ReadFile(dir, ref)
	if errors.Is(err, fs.ErrNotExist) {
		if inTools, failed := fs.ReadFile(dir, "tools/"+ref); failed == nil {
			text, err = inTools, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("load tools: %w", err)
	}
	tools, err := ParseTools(text)
	if err != nil {
		return nil, fmt.Errorf("load tools %q: %w", ref, err)
	}
	return tools, nil
}

// ParseTools reads a JSON list of tool schemas, in the order in which the model saw them. It returns an error when a
// tool has no name, has an earlier tool's name, or has parameters that are not an object. It does not check that the
// parameters are a valid JSON Schema.
func ParseTools(text []byte) ([]ToolSchema, error) {
	var tools []ToolSchema
	if err := strictjson.Unmarshal(text, &tools); err != nil {
		return nil, err
	}
	if tools == nil {
		return nil, errors.New("expected a list of tools, got null")
	}
	first := map[string]int{}
	for i, tool := range tools {
		if other, taken := first[tool.Name]; taken {
			return nil, fmt.Errorf("tools %d and %d are both called %q", other+1, i+1, tool.Name)
		}
		first[tool.Name] = i
	}
	return tools, nil
}

// UnmarshalJSON reads a tool in OpenAI chat format. It ignores members without a field in ToolSchema.
func (t *ToolSchema) UnmarshalJSON(data []byte) error {
	var entry toolEntry
	if err := strictjson.Unmarshal(data, &entry); err != nil {
		return err
	}
	f := entry.Function
	switch {
	case entry.Type != "function":
		return fmt.Errorf(`expected a tool of type "function", got %q`, entry.Type)
	case f.Name == "":
		return errors.New("the tool has no name")
	case string(f.Parameters) == "null":
		f.Parameters = nil
	case f.Parameters != nil && f.Parameters[0] != '{':
		return fmt.Errorf("parameters of tool %q: expected a JSON Schema object, got %.20s", f.Name, f.Parameters)
	}
	*t = ToolSchema(f)
	return nil
}

// MarshalJSON writes the tool in OpenAI chat format.
func (t ToolSchema) MarshalJSON() ([]byte, error) {
	text, err := strictjson.Marshal(toolEntry{Type: "function", Function: toolFunction(t)})
	return []byte(text), err
}
