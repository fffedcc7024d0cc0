package agent

import (
	"iter"
	"maps"
	"slices"

	"github.com/samber/lo"
	"github.com/samber/mo"
)

// Request is the request to the model, without the messages. Drivers read it with State.Request. A hook at PreInference
// may rewrite it for one step. It is a plain value: changing a copy does not change the original.
type Request struct {
	// Model is the model's name at its service. Empty means the driver's default.
	Model string
	// Instructions is the system prompt. It precedes the messages and is not one of them.
	Instructions string
	// Tools are the tools that the model may call.
	Tools Tools
	// ToolChoice says whether the model may, must or must not call tools.
	ToolChoice ToolChoice
	// Output, when set, is the required form of the final answer.
	Output *Output
	// MaxOutputTokens limits one reply. Zero means the service's default.
	MaxOutputTokens int
	// Temperature is the sampling temperature. None means the service's default.
	Temperature mo.Option[float64]
	// Options are settings for one model service, under the service's own names.
	Options Options
}

// ToolChoice says whether the model may, must or must not call tools. Any value other than the constants names the one
// tool that it must call.
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
	// Parameters is the arguments' JSON Schema, as JSON text. Empty means an object without members.
	Parameters string
	// External marks a tool that another party describes, such as an MCP server. An approval of its call counts only
	// while the tool keeps the description and parameters that the person saw.
	External bool
	// Purpose, unless nil, says what the tool does, for policies. The model does not see it. It must not be changed.
	Purpose *Purpose
}

// Purpose describes what the tool does, in the words of package policy/tools. Missing parts are inferred from the
// tool's name, description and parameters.
type Purpose struct {
	// Effects are what the tool does: "reads", "pays", "sends".
	Effects []string
	// Records are the things in its answers: "payments", "mail".
	Records []string
	// Roles say what each argument is for, by argument name: "payee", "amount", "recipient".
	Roles map[string]string
	// Hint marks another party's claim about its own tool, such as an MCP server's. A hint cannot make a tool count as
	// harmless if the tool seems to change something.
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

// ByName returns the spec with that name, if there is one.
func (t Tools) ByName(name string) (ToolSpec, bool) {
	return lo.Find(t.specs, func(spec ToolSpec) bool { return spec.Name == name })
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
	// Check returns an error that tells the model what is wrong with an answer, or nil. It must be safe for concurrent
	// use.
	Check func(answer string) error
	// Attempts is the total number of answers that the model may try. Zero means 3.
	Attempts int
}

// Options is an immutable set of named settings. The zero Options is empty.
type Options struct {
	values map[string]any
}

// With returns the options with one more setting. The value must not be modified afterwards.
func (o Options) With(name string, value any) Options {
	values := maps.Clone(o.values)
	if values == nil {
		values = map[string]any{}
	}
	values[name] = value
	return Options{values}
}

// Option returns the setting with that name.
func (o Options) Option(name string) (any, bool) {
	v, ok := o.values[name]
	return v, ok
}

// All iterates over the settings, sorted by name.
func (o Options) All() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for _, name := range slices.Sorted(maps.Keys(o.values)) {
			if !yield(name, o.values[name]) {
				return
			}
		}
	}
}
