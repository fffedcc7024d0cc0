// Package openai asks models of OpenAI, and of every endpoint that speaks the same: Azure,
// Ollama, vLLM, llama.cpp. New speaks chat completions, which nearly all endpoints know;
// NewResponses speaks the Responses API, which is better for models that reason and has
// tools that the service runs.
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
// a limit on cost ends where the cost is unknown:
//
//	local := openai.Config{
//		Model: "qwen3:8b", BaseURL: "http://localhost:11434/v1",
//		Features: func(f *agent.Features) { f.Provider, f.Images, f.ContextTokens = "ollama", false, 32_768 },
//		Prices:   mo.Some(drivers.NewPrices("2026-11-21", map[string]drivers.Price{"qwen3:8b": {}})),
//	}
//
// # Responses
//
//	driver, err := openai.NewResponses(openai.Config{Model: "gpt-5.1"})
//	if err != nil {
//		return err
//	}
//	request := agent.Request{Options: agent.Options{}.
//		With("reasoning", map[string]any{"effort": "low", "summary": "auto"}).
//		With("server_tools", []any{map[string]any{"type": "web_search"}})}
//	a, err := agent.New(agent.Config{Driver: driver, Request: request}).Get()
//
// The service is asked to store nothing (store: false). A reply's reasoning comes encrypted
// (include: reasoning.encrypted_content) and goes back in its place with the calls that it
// led to, as the service wants it; so do messages with their phase, and what tools of the
// service did. All of it lives in the parts of the message (Part.Opaque): a reply whose
// parts a hook replaced goes back as its text and its calls. Summaries of reasoning, and
// reasoning that open models show, are reasoning parts; the option "reasoning" asks for
// summaries. Models that do not reason (gpt-4, gpt-3.5) are neither asked for reasoning nor
// shown any; for deployments and endpoints whose models' names do not tell, set
// Features.Reasoning to false.
//
// Options are members of the request by their names there. Three of them are more: "server_tools"
// is a list of tools that the service runs, as the API has them (web_search, file_search,
// code_interpreter, mcp), beside those of the agent; "include" is joined with
// what the driver asks for, and an empty list asks for nothing; "text" is joined with the form
// of Request.Output. What a tool of the service does, no hook is asked about and no event
// tells of, and its price is in no list: the cost of such a reply is unknown. Calls
// that wait for an answer of the program (custom, computer, local_shell, apply_patch, approvals of
// MCP) are errors of agent.KindBadRequest. Functions are not strict.
//
// A tool's answer may have images and files here. An image or file that the endpoint does not take
// becomes a sentence.
//
// A status of failed, and events of errors, are errors by the code of the service; an incomplete
// response is a reply with agent.FinishLength or agent.FinishFilter. A stream is whole with its last
// event, response.completed or response.incomplete. The rest of this page holds for both APIs.
//
// # Azure
//
// The v1 API of an Azure OpenAI resource is asked by its base URL, with the name of a deployment
// as the model. Addresses of Azure get the key as api-key, and so do others with Config.Azure. A token of Microsoft Entra ID
// takes its place with Config.Token, which is asked before each request. Addresses with a dated
// api-version have the deployment in them; Config.APIVersion asks there:
//
//	var entraToken drivers.TokenFunc // from azidentity, say
//	byKey := openai.Config{
//		Model: "my-deployment", BaseURL: "https://RESOURCE.openai.azure.com/openai/v1", APIKey: os.Getenv("AZURE_OPENAI_API_KEY"),
//	}
//	byToken := openai.Config{Model: "my-deployment", BaseURL: "https://RESOURCE.openai.azure.com/openai/v1", Token: entraToken}
//	dated := openai.Config{
//		Model: "my-deployment", BaseURL: "https://RESOURCE.openai.azure.com", APIVersion: "2024-10-21", Token: entraToken,
//	}
//
// # Keys
//
// The key of the environment is sent to OpenAI over https, and to the URL that
// OPENAI_BASE_URL names, and nowhere else: to a BaseURL in the Config goes the APIKey
// in the Config, or none. The same holds for OPENAI_ORG_ID and OPENAI_PROJECT_ID. Other
// variables of OpenAI's SDK are not read. Redirects are not followed. No error shows a key or
// a token, also when the service repeats it, nor does a Config or a driver that is printed.
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
// them is not in the Step. Of the Responses API: conversations and responses that the service
// stores, background mode, annotations, generated images (they are kept, and not shown), WebSockets,
// counting tokens.
package openai
