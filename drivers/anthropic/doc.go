// Package anthropic asks Claude models: it is the driver of the Messages API, on the
// official SDK, at Anthropic or at any endpoint that speaks the same.
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
// Where Config.Vertex is set, Google Cloud's Vertex AI is asked for the model, by its name there and with a token
// in place of the key. What a reply costs there is not known without Config.Prices.
//
//	var accessToken drivers.TokenFunc // from golang.org/x/oauth2/google, say
//	driver, err := anthropic.New(anthropic.Config{Model: "claude-sonnet-5-5", Vertex: &drivers.Vertex{
//		Project: "my-project", Location: "global", Token: accessToken,
//	}})
//
// # Keys
//
// The key is Config.APIKey, or ANTHROPIC_API_KEY. The one from the environment goes
// to Anthropic and to the URL in ANTHROPIC_BASE_URL, and nowhere else: a
// Config.BaseURL gets the key that stands beside it, or none. Redirects are not
// followed. No error, and nothing that the driver says of itself, has the key in it.
//
// # Requests
//
// Request.Instructions is the system prompt; system messages that stand before all
// others are added to it. The other members of agent.Request have their counterparts.
// The service wants to know how long a reply may be: where Request.MaxOutputTokens
// is zero that is 32,000 tokens for models that are known here, and 8,192 for others.
//
// Request.Options are members of the request's body by their names there, such as
// "thinking", "top_p", "stop_sequences", "metadata", "service_tier"; those that the
// SDK does not know are sent just so. Two are special: "betas" is a list of names for
// the header anthropic-beta, and "output_config" is joined with the format of
// Request.Output. A name that agent.Request has a member for is an error.
//
//	agent.Options{}.With("thinking", map[string]any{"type": "adaptive"})
//
// Request.Output is held by the service for models that are known to do so, with the
// schema simplified to what the service understands; Output.Check still sees the
// answer. Other models are asked in words, behind the instructions.
//
// # Messages
//
// Turns of the user and the assistant alternate at the service, so messages in a row
// are joined, and of those between two replies the answers to calls come first. What
// the service would refuse is sent in another form:
//
//   - A system message that stands later is said by the user, as <system>…</system>:
//     most models know no such role within a conversation.
//   - Arguments of a call that are not one JSON object are the object
//     {"_malformed_arguments": "the text as it was"}; no arguments are {}.
//   - An id of a call with characters that the service does not take is id_ and the
//     id in base64.
//   - Blank texts are left out, and so is a reply with nothing in it. A user who says
//     nothing says "(empty)", a tool that fails without a word says so.
//   - A file is application/pdf, or text; a URL of a file must be a PDF's. An address
//     that begins with data: is sent as the data that it holds.
//
// Each message is encoded when it is first sent, and remembered.
//
// # Counting
//
// CountTokens asks the service how long the input of a request would be, which is what
// capability.UseCompaction goes by. It sends of the request what the service counts.
//
// # Replies
//
// Thinking is a reasoning part, with its signature in Part.Opaque, and goes back with
// the message in the place where it came, also where it is redacted or its text is
// withheld. So does every block that has no part of its own. Reasoning of other
// services is left out. What the model writes as arguments is kept letter by letter,
// also where it is no JSON.
//
// The finish reasons are stop (end_turn, stop_sequence), tool_calls, length
// (max_tokens, model_context_window_exceeded) and content_filter (refusal); others,
// as pause_turn, keep the service's name.
//
// Next streams, too, where a reply may be longer than 21,333 tokens, which is what
// ten minutes are enough for: the service wants such replies streamed.
// A stream that says nothing more is waited for until the context ends.
//
// # Errors
//
// Every failed call is a *drivers.Error, but one whose context ended: that is the
// context's own error. Requests are sent once; trying again is up to processor.Retry.
// Too little credit, and what a key may not do, are agent.KindAuth; a body of too many
// bytes is agent.KindContextLength, as too many tokens are; what cannot be asked is
// agent.KindBadRequest, and nothing is sent. An error within a stream has the kind that
// the service's word for it stands for.
//
// # Cost
//
// ListPrices has what Anthropic asks, and is used for api.anthropic.com alone. Cost
// is unknown for models that it lacks, in fast mode, where the service searched the
// web, and where it does not say what was used.
package anthropic
