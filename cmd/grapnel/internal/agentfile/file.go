package agentfile

import (
	"fmt"
	"strings"

	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// File is what an agent file says. What it does not say is the zero value.
type File struct {
	Name            string  `key:"name"`
	Model           Model   `key:"model"`
	APIKeyEnv       EnvName `key:"api_key_env"`
	BaseURL         URL     `key:"base_url"`
	Price           *Price  `key:"price"`
	Instructions    string  `key:"instructions"`
	MaxOutputTokens Count   `key:"max_output_tokens"`
	Temperature     *Number `key:"temperature"`
	Options         Options `key:"options"`
	Tools           Tools   `key:"tools"`
	MCP             Servers `key:"mcp"`
	Hooks           Hooks   `key:"hooks"`
	Guards          Guards  `key:"guards"`
	Retry           Retry   `key:"retry"`
	Parallel        Count   `key:"parallel"`
	Output          Output  `key:"output"`
}

// Guards limit a run.
type Guards struct {
	Steps  Count    `key:"steps"`
	Tokens Count    `key:"tokens"`
	Cost   Dollars  `key:"cost"`
	Time   Duration `key:"time"`
}

// Retry is how a model call that failed is made again.
type Retry struct {
	Attempts Count    `key:"attempts"`
	Delay    Duration `key:"delay"`
	Max      Duration `key:"max"`
}

// Load reads the file at a path. What is wrong with its content is an *yamlfile.Error.
func Load(path string) (*File, error) {
	text, err := Read(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, text)
}

// Read is the text of the file at a path, not much more of it than Parse takes.
func Read(path string) ([]byte, error) {
	text, err := yamlfile.Read(path)
	if err != nil {
		return nil, fmt.Errorf("reading the agent file: %w", err)
	}
	return text, nil
}

// Parse reads the text of an agent file. Path is what its errors call it; one that
// ends in .json is read as JSON. What is wrong is an *yamlfile.Error.
func Parse(path string, text []byte) (*File, error) {
	source := yamlfile.Parse(path, text)
	source.Advise = secretAdvice
	file := &File{}
	if root, ok := source.Root(); ok {
		root.Decode(file)
	} else if source.Err() == nil {
		source.At(yamlfile.Position{Line: 1, Column: 1}).Wrong("the file is empty: begin with the line model: openai/gpt-5-mini")
	}
	if err := source.Err(); err != nil {
		return nil, err
	}
	return file, nil
}

// Options are settings of one provider, by their names there.
type Options map[string]any

// secretAdvice says where secrets belong, to somebody who looks for their place in
// the file.
func secretAdvice(key string) string {
	key = strings.ToLower(key)
	for _, word := range []string{"key", "token", "secret", "password", "auth", "header", "credential"} {
		if key != "tokens" && strings.Contains(key, word) {
			return "secrets are never in an agent file: set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY in the environment, " +
				"or variables that api_key_env, or token_env and env of an MCP server, name"
		}
	}
	return ""
}
