package agent

import "github.com/samber/mo"

// Features is what a driver says of itself: whom it asks and what may be asked. A
// driver that is asked for something else answers with an error of kind
// KindBadRequest and sends nothing.
type Features struct {
	// Provider is the service, as gen_ai.provider.name of the OpenTelemetry
	// conventions for generative AI has it: "openai", "anthropic", "gcp.gemini".
	Provider string
	// Model is the model that is asked when Request.Model is empty.
	Model string
	// Endpoint is the base URL of the service, without credentials; empty for a
	// driver that asks no service.
	Endpoint string
	// Streaming: replies can arrive in pieces.
	Streaming bool
	// Tools: the model can be offered tools. ParallelCalls: it may ask for several
	// of them in one reply.
	Tools, ParallelCalls bool
	// StructuredOutput: the service holds the answer to Request.Output itself. A
	// driver that has it not still accepts Request.Output, which is checked here.
	StructuredOutput bool
	// Images and Files: messages may have parts of these kinds.
	Images, Files bool
	// Reasoning: replies may have reasoning parts.
	Reasoning bool
	// ContextTokens is how much the model reads at most, MaxOutputTokens how much it
	// writes; zero where that is unknown.
	ContextTokens, MaxOutputTokens int64
	// Priced: what a reply costs is known, so that a limit on cost can be kept.
	Priced bool
}

// Describer is a Driver that says what it can do, the same each time. Middleware
// around a driver passes the question on. The zero Features says nothing.
type Describer interface {
	Driver
	Features() Features
}

// FeaturesOf returns what a driver says of itself; None when it says nothing.
func FeaturesOf(d Driver) mo.Option[Features] {
	if d, ok := d.(Describer); ok {
		return mo.EmptyableToOption(d.Features())
	}
	return mo.None[Features]()
}

// Features returns what the agent's driver says of itself; None when it says nothing.
func (a *Agent) Features() mo.Option[Features] { return a.features }
