// Package anthropic is the driver of the Messages API for Claude models. It uses the official SDK, and works
// with Anthropic and any endpoint that is compatible.
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
// Config.Vertex selects Google Cloud's Vertex AI. The model has its Vertex AI name, and a token replaces the
// key. The cost of a reply on Vertex AI is unknown unless Config.Prices is set.
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
// Request.Instructions is the system prompt; system messages before all other messages are added to it. The
// other members of agent.Request have counterparts in the API. The service requires a maximum length of the
// reply: if Request.MaxOutputTokens is zero, the driver sends 32,000 tokens for models that the package
// knows, and 8,192 for other models.
//
// Request.Options are members of the request's body, under the API's names, such as "thinking", "top_p",
// "stop_sequences", "metadata", "service_tier"; options that the SDK does not know are sent unchanged. Two
// are special: "betas" is a list of names for the header anthropic-beta, and "output_config" is joined with
// the format of Request.Output. An option for which agent.Request has a member is an error.
//
//	agent.Options{}.With("thinking", map[string]any{"type": "adaptive"})
//
// For models that are known to support it, the service enforces Request.Output, with the schema simplified to
// what the service understands; Output.Check still checks the answer against the whole schema. For other
// models, the driver adds the schema to the instructions.
//
// # Messages
//
// The service requires turns of the user and the assistant to alternate, so the driver joins consecutive
// messages of a role, and puts answers to calls before other user messages. Content that the service would
// refuse is sent in another form:
//
//   - A later system message is sent as a user message, <system>…</system>: most models do not support system
//     messages within a conversation.
//   - If the arguments of a call are not one JSON object, they are sent as the object
//     {"_malformed_arguments": "the original text"}; empty arguments are sent as {}.
//   - If the id of a call contains characters that the service refuses, it is sent as id_ and the id in
//     base64.
//   - Blank texts and empty replies are omitted. An empty user message is sent as "(empty)", and a tool that
//     fails without a message gets one.
//   - A file is application/pdf, or text; the URL of a file must be a PDF's. An address that begins with
//     data: is sent as the data in it.
//
// Each message is encoded when it is first sent; later steps copy the encoding.
//
// # Counting
//
// CountTokens asks the service how long the input of a request would be. capability.UseCompaction uses this
// count. The driver sends only the parts of the request that the service counts.
//
// # Replies
//
// Thinking is a reasoning part, with its signature in Part.Opaque. It is sent back in its original place,
// also when it is redacted or its text is withheld. So is every block that is not represented by a part.
// Reasoning of other services is omitted. The arguments of calls are kept byte for byte, also when they are
// not JSON.
//
// The finish reasons are stop (end_turn, stop_sequence), tool_calls, length (max_tokens,
// model_context_window_exceeded), content_filter (refusal) and pause_turn, after which the run sends the reply
// back and continues. Thinking at the end of a reply is not sent back, because the service refuses it.
//
// Next also streams when a reply may be longer than 21,333 tokens, which is as much as a model writes in ten
// minutes: the service requires such replies to be streamed. The driver waits for a silent stream until the
// context ends.
//
// # Errors
//
// Every failed call is a *drivers.Error, except when the context ended: then it is the error of the context.
// Requests are sent once; processor.Retry repeats them. The kind is agent.KindAuth for too little credit and
// for missing permissions of a key, agent.KindContextLength for too many tokens and for a body with too many
// bytes, and agent.KindBadRequest for a request that the driver cannot send. The kind of an error inside a
// stream depends on the service's error type.
//
// # Cost
//
// ListPrices has Anthropic's prices, and is used only for api.anthropic.com. The cost is unknown for models
// that are not in it, in fast mode, when the service searched the web, and when the service does not report
// the usage.
package anthropic
