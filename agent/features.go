package agent

// Features describes a driver: its service and the features that the service supports. A driver that receives an
// unsupported request returns an error with KindBadRequest and sends nothing.
type Features struct {
	// Provider names the service as gen_ai.provider.name does in the OpenTelemetry conventions for generative AI:
	// "openai", "anthropic", "gcp.gemini".
	Provider string
	// Model is the model that is used when Request.Model is empty.
	Model string
	// Endpoint is the service's base URL, without credentials. It is empty for a driver without a service.
	Endpoint string
	// Streaming: replies can arrive in pieces.
	Streaming bool
	// Tools: the model can be offered tools. ParallelCalls: it may request several tool calls in one reply.
	Tools, ParallelCalls bool
	// StructuredOutput: the service enforces Request.Output itself. Any other driver still accepts Request.Output,
	// which the agent then checks.
	StructuredOutput bool
	// Images and Files: messages may have parts of these kinds.
	Images, Files bool
	// Reasoning: replies may have reasoning parts.
	Reasoning bool
	// ContextTokens and MaxOutputTokens limit how much the model can read and write. Zero means unknown.
	ContextTokens, MaxOutputTokens int64
	// Priced: the cost of a reply is known, so that a cost limit can be enforced.
	Priced bool
}

// A Describer is a Driver that describes itself. Features always returns the same value. Middleware around a driver
// returns the Features of the driver below it. The zero Features means that nothing is known.
type Describer interface {
	Driver
	Features() Features
}

// FeaturesOf returns the driver's Features, or the zero Features when it has no description.
func FeaturesOf(d Driver) Features {
	if d, ok := d.(Describer); ok {
		return d.Features()
	}
	return Features{}
}

// Features returns the Features of the agent's driver, or the zero Features when it has no description.
func (a *Agent) Features() Features { return a.features }
