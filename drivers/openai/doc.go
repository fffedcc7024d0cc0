// Package openai is the driver for OpenAI's APIs and every compatible endpoint: Azure, Ollama, vLLM, llama.cpp. New
// uses chat completions, which nearly all endpoints support. NewResponses uses the Responses API, which is better for
// reasoning models and offers tools that run at the service.
//
//	driver, err := openai.New(openai.Config{Model: "gpt-6.1-sol"}) // with OPENAI_API_KEY
//	if err != nil {
//		return err
//	}
//	a, err := builder.New().WithDriver(driver).With(capability.UseTools(tools...)).Build().Get()
//
// To use your own server, set BaseURL to the part of its address before /chat/completions. It needs no key:
//
//	ollama := openai.Config{Model: "qwen3:8b", BaseURL: "http://localhost:11434/v1"}
//	vllm := openai.Config{Model: "Qwen/Qwen3-8B", BaseURL: "http://localhost:8000/v1"}
//	llamacpp := openai.Config{Model: "any", BaseURL: "http://localhost:8080/v1"}
//
// Config.Features declares what such a server can and cannot do, Config.Dialect how its format differs, and
// Config.Prices what it costs. Set the prices if a run has a cost limit, because such a run ends when the cost is
// unknown:
//
//	local := openai.Config{
//		Model: "qwen3:8b", BaseURL: "http://localhost:11434/v1",
//		Features: func(f *agent.Features) { f.Provider, f.Images, f.ContextTokens = "ollama", false, 32_768 },
//		Prices:   new(drivers.NewPrices("2026-11-21", map[string]drivers.Price{"qwen3:8b": {}})),
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
// The driver asks the service to store nothing (store: false). A reply's reasoning comes encrypted (include:
// reasoning.encrypted_content) and is sent back before the calls that it led to, as the service requires. The driver
// also sends back messages with their phase, and results from the service's tools. The message parts contain this data
// (Part.Opaque). If a hook replaced a reply's parts, only its text and calls are sent back. Reasoning summaries, and
// the reasoning that open models show, are reasoning parts. The option "reasoning" requests summaries. For models that
// do not reason (gpt-4, gpt-3.5), the driver neither requests nor sends reasoning. For deployments and endpoints whose
// model names do not show it, set Features.Reasoning to false.
//
// Options are members of the request, under the API's names. Three are special. "server_tools" is a list of tools that
// the service runs in addition to the agent's tools, in the API's format (web_search, file_search, code_interpreter,
// mcp). "include" is added to the driver's own list, and an empty list requests nothing. "text" is joined with
// Request.Output's format. Tools that the service runs cause no hooks and no events. Price lists do not contain these
// tools, so the cost of such a reply is unknown. Calls that the program would have to answer (custom, computer,
// local_shell, apply_patch, MCP approvals) are errors of agent.KindBadRequest. Functions are not strict.
//
// In this API, a tool's answer can contain images and files. If the endpoint does not accept an image or a
// file, the driver sends a sentence instead.
//
// The service's code determines the error kind of a failed response or an error event. An incomplete response is a
// reply with agent.FinishLength or agent.FinishFilter. A stream is complete with its last event, response.completed or
// response.incomplete. The rest of this page applies to both APIs.
//
// # Azure
//
// For an Azure OpenAI resource's v1 API, set BaseURL, and set Model to a deployment's name. The driver sends the key as
// api-key to Azure addresses, and to other addresses if Config.Azure is set. Config.Token replaces the key with a
// Microsoft Entra ID token and is called before each request. Set Config.APIVersion for the API with a dated
// api-version, where the address contains the deployment:
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
// A key from the environment is sent only to OpenAI over https, and to the URL in OPENAI_BASE_URL. An
// endpoint in Config.BaseURL gets Config.APIKey, or no key. The same rules apply to OPENAI_ORG_ID and
// OPENAI_PROJECT_ID. Other variables of OpenAI's SDK are not read. Redirects are not followed. Errors do not
// contain a key or a token, even if the service repeats it. Neither does a printed Config or driver.
//
// # Requests
//
// All members of agent.Request are sent. Options are members of the request, under the API's names, known or unknown:
// reasoning_effort, top_p, service_tier, seed, parallel_tool_calls. An option that the driver sets itself, or for which
// agent.Request has a member, is an error. But the options tool_choice and response_format are allowed while the
// corresponding members are empty. A request that the endpoint does not support is an error of agent.KindBadRequest,
// and nothing is sent.
//
// The answer's format is sent as a JSON schema. It is strict if the schema follows the rules for strict schemas: all
// members are required, and other members are not allowed.
//
// # Messages
//
// In chat completions, a tool's answer can only be text. The driver replaces an image or a file with a sentence that
// describes it. Users' files are sent as bytes, because the format does not support their addresses. If an earlier
// call's arguments are not one JSON object, the driver sends {"_malformed_arguments": "the original text"}, because
// some servers refuse a conversation with other arguments.
//
// Messages and tool lists are encoded when they are first sent. Later steps copy the bytes.
//
// # Replies
//
// Reasoning that compatible servers return (reasoning_content, reasoning) becomes a reasoning part. It is sent back
// only under the name in Dialect.Reasoning. Other services' reasoning, which is more than text, is not sent. OpenAI
// counts its reasoning tokens but does not return the reasoning. A refusal is the answer's text, with
// agent.FinishFilter. Other services' finish reasons are translated.
//
// The driver reads many services' formats for calls, content and reasoning: calls without an index or an ID, or with
// changing ones; repeated names and calls; content as a list of parts; a whole reply instead of a stream, and the
// reverse.
//
// A streamed reply is complete when the service sends [DONE], or a finish reason and then the usage. A stream
// that ends earlier is an error of agent.KindBrokenStream, regardless of the pieces that arrived.
//
// # Errors
//
// Every failed call is a *drivers.Error, except when the context ended: then it is the context's error. Requests are
// sent once; processor.Retry repeats them, depending on the kind:
//
//   - agent.KindAuth: 401, 403, and an account without credit (402, insufficient_quota), which the service
//     reports as a rate limit, although waiting does not help
//   - agent.KindRateLimit: any other 429, with the time that the service asks callers to wait
//   - agent.KindContextLength: the messages are too long for the model, or for the tokens that the account
//     may send per minute
//   - agent.KindOverloaded: 503, 529, and services that report that they are overloaded
//   - agent.KindTimeout: 408, 504, and a timeout of the client
//   - agent.KindBadRequest: 400, 404, 422 and similar statuses, and requests that the driver does not send
//   - agent.KindBrokenStream: a reply that broke off or breaks the protocol
//   - agent.KindModel: everything else, such as 500 or a failed connection
//
// # Cost
//
// ListPrices has OpenAI's prices for the standard tier, and is used only for api.openai.com. The cost is unknown for
// models that are not in it, in other tiers, and when the service does not report the usage, for example in a stream
// without stream_options.
//
// # Not mapped
//
// Audio in and out, several choices (n), log probabilities, annotations of web search, predicted outputs, tools that
// are not functions (custom tools, whose input is text), files by their ID, image detail, encrypted reasoning
// (reasoning_details), and participants' names. Options can request some of these; the Step does not contain the
// results. In the Responses API: conversations and responses that the service stores, background mode, annotations,
// generated images (kept, but not shown), WebSockets, counting tokens.
package openai
