package registry

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/toolexec"
)

// Definition describes an agent, with names instead of Go values. It is plain data. Missing values are zero, and a
// definition that was written and read again is equal. After reading, numbers in maps are json.Number.
type Definition struct {
	// Name names the agent. Description tells other agents when to use it as a sub-agent.
	Name        string `key:"name"`
	Description string `key:"description"`
	// Model is the model's name after its driver's prefix: openai/gpt-5-mini.
	Model string `key:"model"`
	// APIKeyEnv names the environment variable with the key. BaseURL is the service's address, if it is not the
	// vendor's. Price is the model's price, if it is not known. The driver gets all three.
	APIKeyEnv EnvName `key:"api_key_env"`
	BaseURL   URL     `key:"base_url"`
	Price     *Price  `key:"price"`
	// Instructions is the system prompt.
	Instructions    string         `key:"instructions"`
	MaxOutputTokens int            `key:"max_output_tokens,positive"`
	Temperature     *float64       `key:"temperature,nonnegative"`
	Options         map[string]any `key:"options"`
	Tools           Tools          `key:"tools"`
	MCP             Servers        `key:"mcp"`
	// PreHooks are called before the run, and PostHooks after it, however it ends. Hooks are all others. See the
	// package documentation.
	PreHooks  Hooks `key:"preHooks"`
	Hooks     Hooks `key:"hooks"`
	PostHooks Hooks `key:"postHooks"`
	// Policies name files with rules, which Registry.Policies reads.
	Policies Names `key:"policies"`
	// Capabilities are further capabilities. Agents are the sub-agents' names.
	Capabilities Capabilities `key:"capabilities"`
	Agents       Names        `key:"agents"`
	Guards       Guards       `key:"guards"`
	Retry        Retry        `key:"retry"`
	// Parallel is how many of a step's tool calls run at once. Zero means one.
	Parallel int    `key:"parallel,positive"`
	Output   Output `key:"output"`
}

// Price is a model's price, in US dollars per million tokens.
type Price struct {
	Input  float64 `key:"input,required,nonnegative"`
	Output float64 `key:"output,required,nonnegative"`
}

// Guards limit a run and the runs that it starts. Zero means no limit.
type Guards struct {
	Steps  int           `key:"steps,limit"` // zero means 100, -1 no limit
	Tokens int64         `key:"tokens,positive"`
	Cost   float64       `key:"cost,positive"` // in US dollars
	Time   time.Duration `key:"time,positive"`
}

// Retry configures how failed model calls are repeated. The zero Retry does not repeat them.
type Retry struct {
	Attempts int           `key:"attempts,positive"`
	Delay    time.Duration `key:"delay,positive"`
	Max      time.Duration `key:"max,positive"`
}

// Output is the form of the final answer.
type Output struct {
	// Name is the form's name. Empty means "answer".
	Name   string `key:"name"`
	Schema Schema `key:"schema,required"`
}

// Schema is an object's JSON Schema, as JSON text. A file contains it as a mapping.
type Schema string //nolint:recvcheck // decoding needs a pointer, encoding a value

// ReadNode reads a schema.
func (s *Schema) ReadNode(n yamlfile.Node) {
	if n.Kind() != yamlfile.MappingNode {
		n.Wrong("expected a JSON Schema, written as keys with values, got %s", n)
		return
	}
	text, err := json.Marshal(n.Value())
	if err != nil {
		n.Wrong("expected a JSON Schema: %w", err)
		return
	}
	*s = Schema(text)
	if _, err := toolexec.CompileSchema(string(text)); err != nil {
		n.Wrong("expected a JSON Schema of an object: %w", err)
	}
}

// YAMLValue returns the schema as a mapping.
func (s Schema) YAMLValue() any {
	root, ok := yamlfile.Parse("schema.json", []byte(s)).Root()
	if !ok {
		return string(s) // reading it reports the error
	}
	return root.Value()
}

// Names is a list of names without duplicates.
type Names []string

// ReadNode reads a list of names.
func (l *Names) ReadNode(n yamlfile.Node) {
	for _, item := range n.Items() {
		if name, ok := item.Text(); ok {
			*l = append(*l, name)
		}
	}
}

// YAML returns the definition as YAML.
func (d Definition) YAML() ([]byte, error) { return d.encode("definition.yaml") }

// MarshalJSON returns the definition as JSON.
func (d Definition) MarshalJSON() ([]byte, error) { return d.encode("definition.json") }

func (d Definition) encode(name string) ([]byte, error) {
	text, err := yamlfile.Encode(name, d)
	if err != nil {
		return nil, fmt.Errorf("writing the definition of agent %q: %w", d.Name, err)
	}
	return text, nil
}

// UnmarshalJSON reads a definition as strictly as Read does.
func (d *Definition) UnmarshalJSON(text []byte) error {
	read, err := Read("definition.json", text)
	if err != nil {
		return err
	}
	*d = read
	return nil
}
