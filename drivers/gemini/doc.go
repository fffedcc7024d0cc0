// Package gemini asks Gemini models over the Gemini API: generateContent, and streamGenerateContent where a reply
// is streamed.
//
//	driver, err := gemini.New(gemini.Config{Model: "gemini-3.8-flash"})
//	if err != nil {
//		return err
//	}
//	a, err := builder.New().WithDriver(driver).With(capability.UseTools(tools...)).Build().Get()
//
// # Vertex AI
//
// Vertex AI is asked where Config.Vertex says so, whatever GOOGLE_GENAI_USE_VERTEXAI says:
//
//	var accessToken drivers.TokenFunc // from golang.org/x/oauth2/google, say
//	driver, err := gemini.New(gemini.Config{Model: "gemini-3.8-flash", Vertex: &drivers.Vertex{
//		Project: "my-project", Location: "europe-west4", Token: accessToken,
//	}})
//
// The token goes where the key would; neither keys nor addresses in the environment count then. Tuned
// models are named by their path, projects/…/locations/…/endpoints/…. What a reply costs there is not known
// without Config.Prices.
//
// # Keys
//
// The key comes from Config.APIKey, or from GEMINI_API_KEY, or from GOOGLE_API_KEY.
// What comes from the environment goes to the vendor, or to the URL that
// GOOGLE_GEMINI_BASE_URL names, and nowhere else: a Config.BaseURL of one's own gets
// the key that stands in the Config. The key travels in a header, never in a URL, and
// is in no error. Redirects are not followed.
//
// # Requests
//
// Request.Options are members of generationConfig by their names there, such as topP,
// seed, stopSequences, thinkingConfig, mediaResolution; cachedContent, labels,
// safetySettings, serviceTier and store are members of the request. Options that would
// overwrite what the driver sends itself are an error of kind KindBadRequest; nothing
// is sent then.
//
//	options := agent.Options{}.With("thinkingConfig", map[string]any{"thinkingLevel": "low", "includeThoughts": true})
//
// Request.Output is held by the service (responseJsonSchema). Models before the third
// generation cannot do that while there are tools: they are told the schema in the
// instructions instead. The agent checks the answer in both cases.
//
// # Messages
//
// Request.Instructions and the system messages that stand first are the
// systemInstruction. A system message further on is what a user says, between <system>
// and </system>, in its place. The answers to the calls of one turn are one content,
// right behind the calls; an answer is {"output": text}, or {"error": text} when it
// tells of something that did not work. Tool schemas go out whole, as
// parametersJsonSchema. A call whose stored arguments are not one well-formed object,
// which this API cannot be sent, has
// {"_malformed_arguments": text} with the text as it was.
//
// Images and files go by their bytes, or by an address that the service can read: one
// of its Files API, or a public one. A tool's images stand in its answer; for models
// up to the second generation, which do not look there, behind it.
//
// # Calls
//
// A call that comes without an id gets one that begins with "grapnel-" and that no
// other call of the session has; such ids are never sent, and the service matches
// answers to calls by name and order, as it does where it gives no ids. Ids of the
// service, and those of other services in a transcript that began there, go back as
// they are. Arguments are kept as the model wrote them, white space aside: the digits
// of long numbers, the order of members.
//
// # Signatures
//
// Parts and calls come with signatures of what the model thought, and the newer models
// refuse calls that come back without. Part.Opaque keeps them: that of a text or a
// thought with the part itself, that of a call in a reasoning part without text, which
// names the call. So they live as long as the message does, through the JSON of a
// state as well, and go back unchanged, each where it was. A reply whose parts a hook
// replaced has lost them; calls of which none has a signature, as those of another
// service's model, go to models from the third generation on with the marker that
// Google has for such calls. Reasoning of other services is not sent.
//
// The text of a thought is only there when the model is asked for it, with the option
// thinkingConfig.
//
// # Errors
//
// A failed call is a *drivers.Error; a context that ends is the context's error. The
// driver never asks twice. A prompt that was blocked, and a reply that was held back,
// are replies with agent.FinishFilter. A reply that ended because the model wrote a malformed call
// (MALFORMED_FUNCTION_CALL), or with nothing in it for a reason of the
// service's own, is an error that another attempt may mend.
//
// # Counting
//
// CountTokens asks the service how long the input of a request would be, which is what
// capability.UseCompaction goes by.
//
// # Cost
//
// Usage counts thoughts as output and what a cache had as input. A reply is priced as
// the model that answered, or as the one that was asked when the table has no such line.
//
// # Speed
//
// A message is written once, however many steps send it. What is left is to
// copy them. Before the network, a step takes a tenth of a millisecond with 10
// messages and two to three with 10,000 (1.9 MB), with the same 300 allocations
// (BenchmarkNext, two shared cores).
package gemini
