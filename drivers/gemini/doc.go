// Package gemini is the driver of the Gemini API. It calls generateContent, or streamGenerateContent to
// stream a reply.
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
// The driver sends the token instead of a key, and ignores keys and addresses in the environment. Tuned
// models are named by their path, projects/…/locations/…/endpoints/…. The cost of a reply on Vertex AI is
// unknown unless Config.Prices is set.
//
// # Keys
//
// The key comes from Config.APIKey, or from GEMINI_API_KEY, or from GOOGLE_API_KEY. A key from the
// environment is sent only to the vendor or to the URL in GOOGLE_GEMINI_BASE_URL. An endpoint in
// Config.BaseURL gets only Config.APIKey. The driver sends the key in a header, never in a URL, keeps it out
// of errors and does not follow redirects.
//
// # Requests
//
// Request.Options are members of generationConfig, under the API's names, such as topP, seed, stopSequences,
// thinkingConfig, mediaResolution. The options cachedContent, labels, safetySettings, serviceTier and store
// are members of the request. An option that would overwrite a value that the driver sends is an error of
// kind KindBadRequest, and nothing is sent.
//
//	options := agent.Options{}.With("thinkingConfig", map[string]any{"thinkingLevel": "low", "includeThoughts": true})
//
// The service enforces Request.Output (responseJsonSchema). Models before the third generation cannot do that
// for a request with tools: for them, the driver adds the schema to the instructions. The agent checks the
// answer in both cases.
//
// # Messages
//
// Request.Instructions and system messages before all other messages are the systemInstruction. A later
// system message becomes a user message between <system> and </system>. The answers to the calls of one turn
// are one content, directly after the calls; an answer is {"output": text}, or {"error": text} when the call
// failed. Tool schemas are sent unchanged, as parametersJsonSchema. If the stored arguments of a call are not
// one well-formed object, which the API refuses, the driver sends {"_malformed_arguments": text} with the
// original text.
//
// Images and files are sent as bytes, or as an address that the service can read: an address of its Files
// API, or a public one. Images of a tool are inside its answer; for models up to the second generation, which
// ignore images there, they follow the answer.
//
// # Calls
//
// A call without an id gets one that begins with "grapnel-" and is unique in the session. The driver never
// sends such ids; the service then matches answers to calls by name and order. Ids of this service, and ids
// of another service with which a transcript began, are sent unchanged. Arguments are kept as the model wrote
// them, except white space, with all digits of long numbers and the order of members.
//
// # Signatures
//
// Parts and calls come with signatures of the model's reasoning, and the newer models refuse calls without
// them. Part.Opaque keeps the signature of a text or a thought in the part itself, and the signature of a
// call in a reasoning part without text that names the call. Signatures are part of the message, also in the
// JSON of a state, and are sent back unchanged in the same places. If a hook replaces the parts of a reply,
// the reply loses its signatures. Calls that all lack signatures, such as calls of another service's model,
// are sent to models from the third generation on with the marker that Google defines for them. Reasoning of
// other services is not sent.
//
// The service sends the text of a thought only when the option thinkingConfig asks for it.
//
// # Errors
//
// A failed call is a *drivers.Error; when a context ends, the error is the context's error. The driver never
// retries. A blocked prompt and a withheld reply are replies with agent.FinishFilter. A reply that ended
// because the model wrote a malformed call (MALFORMED_FUNCTION_CALL), or an empty reply that the service
// ended for its own reason, is an error that a retry may fix.
//
// # Counting
//
// CountTokens asks the service how long the input of a request would be. capability.UseCompaction uses this
// count.
//
// # Cost
//
// Usage counts thoughts as output and cached input as input. A reply has the price of the model that
// answered, or of the requested model when the model that answered is not in the table.
//
// # Speed
//
// A message is encoded once; later steps copy the encoding. Without the network, a step takes a tenth of a
// millisecond with 10 messages, and two to three milliseconds with 10,000 messages (1.9 MB). Both take 300
// allocations (BenchmarkNext, two shared cores).
package gemini
