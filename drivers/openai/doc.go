// Package openai is a driver for chat completions: at OpenAI, and at every endpoint
// that speaks them, such as Ollama, vLLM and llama.cpp.
//
//	driver, err := openai.New(openai.Config{Model: "gpt-6.1-sol"}) // with OPENAI_API_KEY
//	if err != nil {
//		return err
//	}
//	a, err := builder.New().WithDriver(driver).With(capability.UseTools(tools...)).Build().Get()
//
// A server of one's own is asked by its base URL, which is all that stands before
// /chat/completions. It needs no key:
//
//	ollama := openai.Config{Model: "qwen3:8b", BaseURL: "http://localhost:11434/v1"}
//	vllm := openai.Config{Model: "Qwen/Qwen3-8B", BaseURL: "http://localhost:8000/v1"}
//	llamacpp := openai.Config{Model: "any", BaseURL: "http://localhost:8080/v1"}
//
// What such a server can do besides, or cannot, is said in Config.Features; how its
// format differs, in Config.Dialect; and what it costs, in Config.Prices, as a run with
// a limit on cost ends where nobody knows the cost:
//
//	local := openai.Config{
//		Model: "qwen3:8b", BaseURL: "http://localhost:11434/v1",
//		Features: func(f *agent.Features) { f.Provider, f.Images, f.ContextTokens = "ollama", false, 32_768 },
//		Prices:   mo.Some(drivers.NewPrices("2026-11-21", map[string]drivers.Price{"qwen3:8b": {}})),
//	}
//
// # Keys
//
// The key of the environment is sent to OpenAI over https, and to the URL that
// OPENAI_BASE_URL names, and nowhere else: to a BaseURL in the Config goes the APIKey
// in the Config, or none. The same holds for OPENAI_ORG_ID and OPENAI_PROJECT_ID. Other
// variables of OpenAI's SDK are not read. Redirects are not followed. No error shows a key,
// also when the service repeats it, nor does a Config or a driver that is printed.
//
// # Requests
//
// Of agent.Request all is sent. Options go into the request by their names there, known
// or not: reasoning_effort, top_p, service_tier, seed, parallel_tool_calls. One that
// the driver sets itself, or that agent.Request has a member for, is an error;
// tool_choice and response_format may say what those members cannot, where these are
// left empty. What the endpoint cannot do is an error of agent.KindBadRequest, and
// nothing is sent.
//
// A form for the answer is asked for as a JSON schema, and strictly where the schema
// keeps to the rules of strict ones: all members required, no others allowed.
//
// # Messages
//
// The answer of a tool can only be text here. An image or a file in it becomes a
// sentence that says what there was to see. Files from users are sent by their bytes;
// the format has no room for their addresses. Arguments of an earlier call that are not
// one JSON object are sent back as {"_malformed_arguments": "the text as it was"}, as
// some servers refuse a conversation that has others in it.
//
// A message is encoded when it is first sent, and a list of tools too; later steps copy
// the bytes.
//
// # Replies
//
// Reasoning that compatible servers tell of (reasoning_content, reasoning) becomes a
// reasoning part, and is sent back under the name in Dialect.Reasoning only; that of
// other services, which have more to it than text, is not. OpenAI
// counts the tokens of its reasoning and shows none of it. A refusal is the text of
// the answer, with agent.FinishFilter. Finish reasons that OpenAI does not have are
// passed on as they are.
//
// A streamed reply is whole when the service says [DONE], or has given its reason to
// finish and then the usage. One that ends earlier is agent.KindBrokenStream, whatever
// was told of it.
//
// # Errors
//
// Every failed call is a *drivers.Error, but one whose context ended: that is the
// context's own error. Requests are sent once; trying again is up to processor.Retry,
// which reads the kind:
//
//   - agent.KindAuth: 401, 403, and an account without credit (402, insufficient_quota),
//     which the service reports as a rate limit, though no waiting helps
//   - agent.KindRateLimit: any other 429, with how long the service wants to be left alone
//   - agent.KindContextLength: the messages are too long for the model, or for what the
//     account may send in a minute
//   - agent.KindOverloaded: 503, 529, and services that say they are overloaded
//   - agent.KindTimeout: 408, 504, and a client that waited long enough
//   - agent.KindBadRequest: 400, 404, 422 and the like, and what is not sent
//   - agent.KindBrokenStream: a reply that broke off or is not what the protocol says
//   - agent.KindModel: everything else, such as 500 or no connection
//
// # Cost
//
// ListPrices has what OpenAI asks in its standard tier, and is used for api.openai.com
// alone. Cost is unknown for models that it lacks, in other tiers, and where the service
// does not count what was used, as a stream without stream_options does not.
//
// # Not mapped
//
// Audio in and out, several choices (n), log probabilities, annotations of web search,
// predicted outputs, tools that are not functions (custom tools, which are written in
// text), files by their id, the detail of images, encrypted reasoning (reasoning_details),
// and the names of participants. Options can ask for some of them; what comes back of
// them is not in the Step. The Responses API is another one, which this package does not
// speak.
package openai
