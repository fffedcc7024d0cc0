// Package gemini is the driver for the Gemini API. It calls generateContent, or streamGenerateContent to stream a
// reply.
//
//	driver, err := gemini.New(gemini.Config{Model: "gemini-3.8-flash"})
//	if err != nil {
//		return err
//	}
//	a, err := builder.New().WithDriver(driver).With(capability.UseTools(tools...)).Build().Get()
//
// # Vertex AI
//
// Config.Vertex selects Vertex AI, regardless of GOOGLE_GENAI_USE_VERTEXAI:
//
//	var accessToken drivers.TokenFunc // from golang.org/x/oauth2/google, say
//	driver, err := gemini.New(gemini.Config{Model: "gemini-3.8-flash", Vertex: &drivers.Vertex{
//		Project: "my-project", Location: "europe-west4", Token: accessToken,
//	}})
//
// The driver sends the token instead of a key, and ignores keys and addresses in the environment. A tuned model's name
// is its path, projects/…/locations/…/endpoints/…. A reply's cost on Vertex AI is unknown unless Config.Prices is set.
//
// # Keys
//
// The key comes from Config.APIKey, or from GEMINI_API_KEY, or from GOOGLE_API_KEY. A key from the environment is sent
// only to the vendor or to the URL in GOOGLE_GEMINI_BASE_URL. An endpoint in Config.BaseURL gets only Config.APIKey.
// The driver sends the key in a header, never in a URL. It keeps the key out of errors and does not follow redirects.
//
// # Requests
//
// Request.Options are members of generationConfig, under the API's names, such as topP, seed, stopSequences,
// thinkingConfig, mediaResolution. The options cachedContent, labels, safetySettings, serviceTier and store are members
// of the request. An option must not overwrite a value that the driver sends. Otherwise the driver returns an error of
// kind KindBadRequest, and sends nothing.
//
//	options := agent.Options{}.With("thinkingConfig", map[string]any{"thinkingLevel": "low", "includeThoughts": true})
//
// The service enforces Request.Output (responseJsonSchema). Models before the third generation cannot do that for a
// request with tools. For them, the driver adds the schema to the instructions. The agent checks the answer in both
// cases.
//
// # Messages
//
// Request.Instructions and system messages before all other messages are the systemInstruction. A later system message
// becomes a user message between <system> and </system>. The answers to one turn's calls are one content, directly
// after the calls. An answer is {"output": text}, or {"error": text} when the call failed. Tool schemas are sent
// unchanged, as parametersJsonSchema. If a call's stored arguments are not one well-formed object, which the API
// refuses, the driver sends {"_malformed_arguments": text} with the original text.
//
// Images and files are sent as bytes, or as an address that the service can read: a Files API address, or a public one.
// A tool's images are inside its answer. Models up to the second generation ignore images there, so for them the images
// follow the answer.
//
// # Calls
//
// A call without an ID gets one that begins with "grapnel-" and is unique in the session. The driver never sends such
// IDs. The service then matches answers to calls by name and order. IDs from this service, or from another service
// where a transcript began, are sent unchanged. Arguments are kept as the model wrote them, except white space, with
// all digits of long numbers and in member order.
//
// # Signatures
//
// Parts and calls come with signatures for the model's reasoning, and newer models refuse calls without them.
// Part.Opaque keeps the signature. For text or a thought, it is in the part itself. For a call, it is in a reasoning
// part without text that names the call. Signatures are part of the message, also in the JSON of a state, and are sent
// back unchanged in the same places. If a hook replaces a reply's parts, the reply loses its signatures. If all calls
// lack signatures, such as calls from another service's model, models from the third generation on receive them with
// the marker that Google defines. Other services' reasoning is not sent.
//
// The service sends a thought's text only when the option thinkingConfig asks for it.
//
// # Errors
//
// A failed call is a *drivers.Error. When a context ends, the error is the context's error. The driver never retries. A
// blocked prompt and a withheld reply are replies with agent.FinishFilter. If the model wrote a malformed call
// (MALFORMED_FUNCTION_CALL), or the service ended an empty reply for its own reason, the reply is an error that a retry
// may fix.
//
// # Counting
//
// CountTokens asks the service for a request's input length. capability.UseCompaction uses this count.
//
// # Cost
//
// Usage counts thoughts as output and cached input as input. A reply has the price of the answering model. If that
// model is not in the table, it has the requested model's price.
//
// # Speed
//
// A message is encoded once. Later steps copy the encoding. Without the network, a step takes a tenth of a millisecond
// with 10 messages, and two to three milliseconds with 10,000 messages (1.9 MB). Both take 300 allocations
// (BenchmarkNext, two shared cores).
package gemini
