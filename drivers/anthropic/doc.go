// Package anthropic is the driver for Claude models over the Messages API. It uses the official SDK, and works with
// Anthropic and any compatible endpoint.
//
//	driver, err := anthropic.New(anthropic.Config{Model: "claude-sonnet-5-5", Cache: anthropic.CacheShort})
//	if err != nil {
//		return err
//	}
//	a, err := agent.New(agent.Config{Name: "helper", Driver: driver}).Get()
//	if err != nil {
//		return err
//	}
//	final, err := a.Run(ctx, agent.NewState(), agent.UserText("hello")).Get()
//
// # Vertex AI
//
// Config.Vertex selects Google Cloud's Vertex AI. The model has its Vertex AI name, and a token replaces the key. A
// reply's cost on Vertex AI is unknown unless Config.Prices is set.
//
//	var accessToken drivers.TokenFunc // from golang.org/x/oauth2/google, say
//	driver, err := anthropic.New(anthropic.Config{Model: "claude-sonnet-5-5", Vertex: &drivers.Vertex{
//		Project: "my-project", Location: "global", Token: accessToken,
//	}})
//
// # Keys
//
// The key is Config.APIKey, or ANTHROPIC_API_KEY. The key from the environment is only sent to Anthropic and
// to the URL in ANTHROPIC_BASE_URL. An endpoint in Config.BaseURL gets Config.APIKey, or no key. Redirects
// are not followed. Errors and a printed Config or driver do not contain the key.
//
// # Requests
//
// Request.Instructions is the system prompt. System messages before all other messages are added to it. The other
// members of agent.Request have counterparts in the API. The service requires a maximum reply length. If
// Request.MaxOutputTokens is zero, the driver sends 32,000 tokens for models that the package knows, and 8,192 for
// other models.
//
// Request.Options are members of the request's body, under the API's names, such as "thinking", "top_p",
// "stop_sequences", "metadata", "service_tier". Options that the SDK does not know are sent unchanged. Two are special:
// "betas" is a list of names for the header anthropic-beta, and "output_config" is joined with Request.Output's format.
// An option for which agent.Request has a member is an error.
//
//	agent.Options{}.With("thinking", map[string]any{"type": "adaptive"})
//
// For models that are known to support it, the service enforces Request.Output. The driver simplifies the schema to the
// supported keywords. Output.Check still checks the answer against the whole schema. For other models, the driver adds
// the schema to the instructions.
//
// # Messages
//
// The service requires user and assistant turns to alternate. The driver therefore joins consecutive messages with the
// same role, and puts answers to calls before other user messages. Content that the service would refuse is sent in
// another form:
//
//   - A later system message is sent as a user message, <system>…</system>, because most models do not support system
//     messages within a conversation.
//   - If a call's arguments are not one JSON object, they are sent as the object {"_malformed_arguments": "the original
//     text"}. Empty arguments are sent as {}.
//   - If a call ID contains characters that the service refuses, it is sent as id_ and the ID in base64.
//   - Blank text and empty replies are omitted. An empty user message is sent as "(empty)", and a tool that fails
//     without a message gets one.
//   - A file is application/pdf, or text. A file's URL must be a PDF's. For an address that begins with data:, its data
//     is sent.
//
// Each message is encoded when it is first sent; later steps copy the encoding.
//
// # Counting
//
// CountTokens asks the service for a request's input length. capability.UseCompaction uses this count. The driver sends
// only the parts that the service counts.
//
// # Replies
//
// Thinking is a reasoning part, with its signature in Part.Opaque. It is sent back in its original place, also when it
// is redacted or its text is withheld. So is every block without a part of its own. Other services' reasoning is
// omitted. Call arguments are kept byte for byte, also when they are not JSON.
//
// The finish reasons are stop (end_turn, stop_sequence), tool_calls, length (max_tokens,
// model_context_window_exceeded), content_filter (refusal) and pause_turn, after which the run sends the reply
// back and continues. Thinking at the end of a reply is not sent back, because the service refuses it.
//
// Next also streams when a reply may be longer than 21,333 tokens, because the service requires it. A model writes as
// much in ten minutes. The driver waits for a silent stream until the context ends.
//
// # Errors
//
// Every failed call is a *drivers.Error, except when the context ended: then it is the context's error. Requests are
// sent once; processor.Retry repeats them. The kind is agent.KindAuth for too little credit and for a key without the
// permission. It is agent.KindContextLength for too many tokens or bytes, and agent.KindBadRequest for a request that
// the driver cannot send. The kind of an error inside a stream depends on the service's error type.
//
// # Cost
//
// ListPrices has Anthropic's prices, and is used only for api.anthropic.com. The cost is unknown for models
// that are not in it, in fast mode, when the service searched the web, and when the service does not report
// the usage.
package anthropic
