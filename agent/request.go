package agent

import (
	"iter"
	"maps"
	"slices"

	"github.com/samber/mo"
)

// Request is the request to the model, without the messages. Drivers read it with
// State.Request; a hook at PreInference may rewrite it for one step. It is a plain
// value: changing a copy does not change the original.
type Request struct {
	// Model is the model's name at its service; empty means the driver's default.
	Model string
	// Instructions is the system prompt. It precedes the messages and is not one of
	// them.
	Instructions string
	// Tools are the tools that the model may call.
	Tools Tools
	// ToolChoice says whether the model may, must or must not call tools.
	ToolChoice ToolChoice
	// Output, when set, is the required form of the final answer.
	Output *Output
	// MaxOutputTokens limits one reply; zero means the service's default.
	MaxOutputTokens int
	// Temperature is the sampling temperature; None means the service's default.
	Temperature mo.Option[float64]
	// Options are settings of one model service, under the names that the service uses.
	Options Options
}

// ToolChoice says whether the model may, must or must not call tools. Any value
// other than the constants is the name of the one tool that it must call.
type ToolChoice string

// The tool choices.
const (
	ToolsAuto     ToolChoice = ""
	ToolsRequired ToolChoice = "required"
	ToolsNone     ToolChoice = "none"
)

// ToolSpec describes a tool to the model.
type ToolSpec struct {
	Name        string
	Description string
	// Parameters is the JSON Schema of the arguments, as JSON text. Empty means an
	// object without members.
	Parameters string
	// External marks a tool that another party describes, such as an MCP server: an approval of its call counts only while it has
	// the description and the parameters that the person could see.
	External bool
	// Purpose, unless nil, says what the tool does, for policies; the model is not told. It must not be changed.
	Purpose *Purpose
}

// Purpose says what a tool does, in the words of package policy/tools. What it leaves open is inferred from the tool's
// name, description and parameters.
type Purpose struct {
	// Effects are what the tool does: "reads", "pays", "sends".
	Effects []string
	// Records are what its answers consist of: "payments", "mail".
	Records []string
	// Roles say what its arguments are for, by their names: "payee", "amount", "recipient".
	Roles map[string]string
	// Hint marks what another party says about its own tool, such as an MCP server. A hint cannot make a tool harmless
	// that seems to change something.
	Hint bool
}

// Tools is an immutable list of tool specs. The zero Tools is empty.
type Tools struct {
	specs []ToolSpec
}

// ToolsOf returns a list of the given specs, which are copied.
func ToolsOf(specs ...ToolSpec) Tools { return Tools{slices.Clone(specs)} }

// Len returns the number of tools.
func (t Tools) Len() int { return len(t.specs) }

// All iterates over the tools in order.
func (t Tools) All() iter.Seq2[int, ToolSpec] { return slices.All(t.specs) }

// ByName returns the spec with that name.
func (t Tools) ByName(name string) mo.Option[ToolSpec] {
	for _, spec := range t.specs {
		if spec.Name == name {
			return mo.Some(spec)
		}
	}
	return mo.None[ToolSpec]()
}

// Keep returns the tools for which keep returns true.
func (t Tools) Keep(keep func(ToolSpec) bool) Tools {
	return Tools{slices.DeleteFunc(slices.Clone(t.specs), func(s ToolSpec) bool { return !keep(s) })}
}

// Output is the required form of the final answer.
type Output struct {
	// Name names the form for the model service.
	Name string
	// Schema is the JSON Schema, as JSON text.
	Schema string
	// Check returns an error that says what is wrong with an answer, in words that
	// the model can act on, or nil. It must be safe for concurrent use.
	Check func(answer string) error
	// Attempts is the total number of answers that the model may try; zero means 3.
	Attempts int
}

// Options is an immutable set of named settings. The zero Options is empty.
type Options struct {
	values map[string]any
}

// With returns the options with one more setting. The value must not be modified
// afterwards.
func (o Options) With(name string, value any) Options {
	values := maps.Clone(o.values)
	if values == nil {
		values = map[string]any{}
	}
	values[name] = value
	return Options{values}
}

// Option returns the setting of that name.
func (o Options) Option(name string) (any, bool) {
	v, ok := o.values[name]
	return v, ok
}

// All iterates over the settings in the order of their names.
func (o Options) All() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for _, name := range slices.Sorted(maps.Keys(o.values)) {
			if !yield(name, o.values[name]) {
				return
			}
		}
	}
}
