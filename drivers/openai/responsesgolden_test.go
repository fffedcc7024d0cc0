package openai_test

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers/openai"
	"github.com/grapnel-go/grapnel/internal/modeltest"
)

// The replies in testdata/responses have the shapes that OpenAI documents and that public recordings of the service show
// (openai-python, openai-node, Vercel's AI SDK and pydantic-ai have some in their tests), with other words in them.

func TestResponsesReplies(t *testing.T) { testReplies(t, newResponses, "testdata/responses/replies") }

// goodResponse is a reply of plain text.
var goodResponse = responseOf("completed", "null",
	`{"id":"msg_1","type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"ok"}],"role":"assistant"}`)

// TestResponsesGoBack: the next request sends a reply's content in the same order: encrypted reasoning, phases, the
// actions of the service's tools.
func TestResponsesGoBack(t *testing.T) {
	for _, name := range []string{
		"calls", "reasoning-calls", "reasoning-between", "phases", "web-search", "code-interpreter", "mcp", "refusal", "incomplete",
		"azure", "open-model", "encrypted-plain",
	} {
		t.Run(name, func(t *testing.T) {
			endpoint := modeltest.Golden(t, modeltest.ReadReply(t, "testdata/responses/replies/whole-"+name+".http"),
				modeltest.Body(200, "application/json", goodResponse))
			d := newResponses(t, endpoint.URL)
			step, err := d.Next(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
			require.NoError(t, err)
			raw, err := json.Marshal(agent.NewState(agent.UserText("hello"), step.Message))
			require.NoError(t, err)
			var stored agent.State // what is kept survives a store
			require.NoError(t, json.Unmarshal(raw, &stored))
			for _, c := range step.Message.Calls() {
				r := agent.NotExecuted(&c, "", "", "")
				r.Content = agent.TextContent("rain")
				stored = stored.With(agent.ToolAnswer(r))
			}
			_, err = d.Next(t.Context(), stored).Get()
			require.NoError(t, err)
			input, err := json.Marshal(endpoint.Requests()[1].JSON(t)["input"])
			require.NoError(t, err)
			goldenJSON(t, "testdata/responses/requests/back-"+name+".json", input)
		})
	}
}

// TestResponsesEditedReplies: after a hook removes or changes content in a reply, the service still accepts the
// request.
func TestResponsesEditedReplies(t *testing.T) {
	endpoint := modeltest.Golden(t, modeltest.ReadReply(t, "testdata/responses/replies/whole-reasoning-calls.http"),
		modeltest.Body(200, "application/json", goodResponse))
	d := newResponses(t, endpoint.URL)
	step, err := d.Next(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
	require.NoError(t, err)
	var calls []agent.ToolCall
	for _, c := range step.Message.Calls() {
		calls = append(calls, c)
	}
	_, err = d.Next(t.Context(), agent.NewState(agent.UserText("hello"), agent.Assistant("redacted", calls...))).Get()
	require.NoError(t, err)
	input, err := json.Marshal(endpoint.Requests()[1].JSON(t)["input"])
	require.NoError(t, err)
	assert.NotContains(t, string(input), "rs_", "no reasoning")
	assert.NotContains(t, string(input), "fc_", "and no id that would have the service look for it")
	assert.Contains(t, string(input), `"call_id":"call_2"`)
}

// TestResponsesOtherModel: a model that does not reason is not shown reasoning, which the service would refuse.
func TestResponsesOtherModel(t *testing.T) {
	endpoint := modeltest.Golden(t, modeltest.ReadReply(t, "testdata/responses/replies/whole-reasoning-between.http"),
		modeltest.Body(200, "application/json", goodResponse))
	d := newResponses(t, endpoint.URL)
	step, err := d.Next(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
	require.NoError(t, err)
	s := agent.NewState(agent.UserText("hello"), step.Message).WithRequest(agent.Request{Model: "gpt-4.1"})
	_, err = d.Next(t.Context(), s).Get()
	require.NoError(t, err)
	goldenJSON(t, "testdata/responses/requests/back-to-another-model.json", endpoint.Requests()[1].Body)
}

func TestResponsesRequests(t *testing.T) {
	hello := agent.UserText("hello")
	call := agent.ToolCall{ID: "call_1", Name: "weather", Arguments: `{"city":"Zürich & <Bern>"}`}
	answer := func(content agent.Content) agent.Message {
		r := agent.NotExecuted(&call, "", "", "")
		r.Content = content
		return agent.ToolAnswer(r)
	}
	strict := &agent.Output{
		Name:   "the weather!",
		Schema: `{"type":"object","properties":{"rain":{"type":"boolean"}},"required":["rain"],"additionalProperties":false}`,
	}
	search := map[string]any{"type": "web_search", "search_context_size": "low"}
	for name, c := range map[string]struct {
		messages []agent.Message
		request  agent.Request
		change   func(*openai.Config)
	}{
		"text":         {messages: []agent.Message{hello}},
		"instructions": {messages: []agent.Message{hello}, request: agent.Request{Instructions: "Be brief."}},
		"nothing said": {request: agent.Request{Instructions: "Say something."}},
		"conversation": {messages: []agent.Message{
			agent.System("You are in Switzerland."), hello, agent.Assistant("Hello! <3"), agent.UserText("quite \"odd\"\n\u2028 \u0001 text\xff"),
			agent.Assistant(""), agent.UserText("and?"),
		}},
		"calls": {messages: []agent.Message{
			hello,
			agent.AssistantContent(agent.ContentOf(agent.Reasoning("let me see", ""), agent.Text("I look.")), call, agent.ToolCall{ID: "call_2", Name: "now"}),
			answer(agent.TextContent("rain")),
			answer(agent.ContentOf(agent.Text("a map"), agent.Image("image/png", png), agent.ImageURL("https://example.com/a.png"))),
			agent.Assistant("", agent.ToolCall{ID: "call_3", Name: "weather", Arguments: `{"city": "it broke of`}),
		}},
		"images and files": {messages: []agent.Message{agent.User(
			agent.Text("What is this?"), agent.Image("image/png", png), agent.ImageURL("https://example.com/a.png"),
			agent.File("notes.pdf", "application/pdf", []byte("%PDF")), agent.File("", "", []byte("?")),
			agent.FileURL("more.pdf", "https://example.com/more.pdf"),
		), agent.AssistantContent(agent.TextContent(""), call), answer(agent.ContentOf(agent.File("a.pdf", "application/pdf", []byte("%PDF"))))},
			change: func(c *openai.Config) { c.Features = func(f *agent.Features) { f.Files = true } }},
		"no images": {messages: []agent.Message{hello, agent.AssistantContent(agent.TextContent(""), call), answer(agent.ContentOf(
			agent.Text("a map"), agent.Image("image/png", png), agent.File("a.pdf", "application/pdf", []byte("%PDF")),
		))}, change: func(c *openai.Config) { c.Features = func(f *agent.Features) { f.Files, f.Images = true, false } }},
		"tools":                   {messages: []agent.Message{hello}, request: agent.Request{Tools: agent.ToolsOf(weather, agent.ToolSpec{Name: "now"})}},
		"a tool is required":      {messages: []agent.Message{hello}, request: agent.Request{Tools: agent.ToolsOf(weather), ToolChoice: agent.ToolsRequired}},
		"one tool must be called": {messages: []agent.Message{hello}, request: agent.Request{Tools: agent.ToolsOf(weather), ToolChoice: "weather"}},
		"tools of the service": {messages: []agent.Message{hello}, request: agent.Request{
			Tools: agent.ToolsOf(weather),
			Options: agent.Options{}.With("server_tools", []any{search, json.RawMessage(`{"type":"code_interpreter","container":{"type":"auto"}}`)}).
				With("include", []string{"web_search_call.action.sources"}),
		}},
		"tools of the service alone": {messages: []agent.Message{hello}, request: agent.Request{
			ToolChoice: agent.ToolsNone, Options: agent.Options{}.With("server_tools", []any{search}),
		}},
		"settings": {messages: []agent.Message{hello}, request: agent.Request{
			Model: "gpt-5", MaxOutputTokens: 100, Temperature: mo.Some(0.0),
			Options: agent.Options{}.With("top_p", 0.5).With("reasoning", map[string]any{"effort": "low", "summary": "auto"}).
				With("parallel_tool_calls", false).With("prompt_cache_key", "k").With("store", true).With("an option of tomorrow", []int{1}),
		}},
		"a model that does not reason": {messages: []agent.Message{hello}, request: agent.Request{Model: "gpt-4.1-mini"}},
		"nothing included":             {messages: []agent.Message{hello}, request: agent.Request{Options: agent.Options{}.With("include", []string{})}},
		"no reasoning": {messages: []agent.Message{hello}, change: func(c *openai.Config) {
			c.Features = func(f *agent.Features) { f.Reasoning = false }
		}},
		"output, strict": {messages: []agent.Message{hello}, request: agent.Request{
			Output: strict, Options: agent.Options{}.With("text", map[string]any{"verbosity": "low"}),
		}},
		"output, not strict": {messages: []agent.Message{hello}, request: agent.Request{Output: &agent.Output{
			Schema: `{"type":"object","properties":{"rain":{"type":"boolean"}}}`,
		}}},
		"output that the service does not hold": {messages: []agent.Message{hello}, request: agent.Request{Output: strict}, change: func(c *openai.Config) {
			c.Features = func(f *agent.Features) { f.StructuredOutput = false }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			change := c.change
			if change == nil {
				change = func(*openai.Config) {}
			}
			r := asked(t, newResponses, goodResponse, agent.NewState(c.messages...).WithRequest(c.request), change)
			assert.Equal(t, "/v1/responses", r.Path)
			goldenJSON(t, filepath.Join("testdata", "responses", "requests", strings.ReplaceAll(name, " ", "-")+".json"), r.Body)
		})
	}
}

func TestResponsesStreamedRequest(t *testing.T) {
	endpoint := modeltest.Golden(t, modeltest.ReadReply(t, "testdata/responses/replies/stream-text.http"))
	_, err := newResponses(t, endpoint.URL).Stream(t.Context(), agent.NewState(agent.UserText("hello")), func(agent.Delta) {}).Get()
	require.NoError(t, err)
	assert.Equal(t, `{"model":"gpt-5.1","stream":true,"store":false,"include":["reasoning.encrypted_content"],"input":[{"role":"user","content":"hello"}]}`,
		string(endpoint.Requests()[0].Body))
	assert.Equal(t, "text/event-stream", endpoint.Requests()[0].Header.Get("Accept"))
}

// TestResponsesVendor: what is different before the vendor itself.
func TestResponsesVendor(t *testing.T) {
	t.Setenv("OPENAI_BASE_URL", "")
	client := &caught{answer: goodResponse}
	d, err := openai.NewResponses(openai.Config{Model: "gpt-5.1", APIKey: "k", HTTPClient: &http.Client{Transport: client}})
	require.NoError(t, err)
	step, err := d.Next(t.Context(), agent.NewState(agent.UserText("hi")).WithRequest(agent.Request{Output: &agent.Output{Schema: `{"type":"array"}`}})).Get()
	require.NoError(t, err)
	assert.Equal(t, "https://api.openai.com/v1/responses", client.requests[0].URL.String())
	assert.InDelta(t, 9*1.25e-6+3*10e-6, step.Usage.Cost.MustGet(), 1e-12, "the list price")
	want := agent.Features{
		Provider: "openai", Model: "gpt-5.1", Endpoint: "https://api.openai.com/v1", Streaming: true, Tools: true, ParallelCalls: true,
		StructuredOutput: true, Images: true, Files: true, Reasoning: true, Priced: true,
	}
	assert.Equal(t, want, d.Features())
}

// TestResponsesAzure: where the Responses API is at Azure.
func TestResponsesAzure(t *testing.T) {
	for base, want := range map[string]string{
		"https://x.openai.azure.com/openai/v1/": "https://x.openai.azure.com/openai/v1/responses",
		"https://x.openai.azure.com":            "https://x.openai.azure.com/openai/responses?api-version=2025-04-01-preview",
	} {
		c := openai.Config{Model: "my-deployment", APIKey: "k", BaseURL: base}
		if !strings.HasSuffix(base, "/v1/") {
			c.APIVersion = "2025-04-01-preview"
		}
		client := &caught{answer: goodResponse}
		c.HTTPClient = &http.Client{Transport: client}
		d, err := openai.NewResponses(c)
		require.NoError(t, err)
		_, err = d.Next(t.Context(), agent.NewState(agent.UserText("hi"))).Get()
		require.NoError(t, err)
		assert.Equal(t, want, client.requests[0].URL.String())
		assert.Equal(t, "k", client.requests[0].Header.Get("Api-Key"))
		assert.True(t, d.Features().Reasoning)
	}
}

// TestResponsesNotSent: what cannot be asked fails, and the service is not asked.
func TestResponsesNotSent(t *testing.T) {
	options := func(name string, value any) agent.Request {
		return agent.Request{Options: agent.Options{}.With(name, value)}
	}
	for name, c := range map[string]struct {
		request agent.Request
		says    string
	}{
		"input":       {options("input", "x"), `the option "input" cannot be set: the driver sends the messages of the run`},
		"state":       {options("previous_response_id", "resp_1"), `the option "previous_response_id" cannot be set: each request contains the whole conversation`},
		"background":  {options("background", true), `the option "background" cannot be set: a step waits for its reply`},
		"a function":  {options("server_tools", []any{map[string]any{"type": "function", "name": "x"}}), `tool 0 is a function, which the service does not run: set agent.Request.Tools`},
		"no type":     {options("server_tools", []any{map[string]any{"type": "web_search"}, "web_search"}), `tool 1 is not an object with a type`},
		"no list":     {options("server_tools", "web_search"), `the option "server_tools" is not a list`},
		"a custom":    {options("server_tools", []any{map[string]any{"type": "custom"}}), `tool 0 of the type "custom" is not run by the service: make it a function`},
		"include":     {options("include", "all"), `the option "include" is not a list`},
		"text":        {options("text", "x"), `the option "text" is not an object`},
		"two formats": {agent.Request{Output: &agent.Output{Schema: `{"type":"object"}`}, Options: agent.Options{}.With("text", map[string]any{"format": map[string]any{"type": "text"}})}, `the option "text" has a format, and so has agent.Request.Output`},
		"tool choice": {agent.Request{Tools: agent.ToolsOf(weather), ToolChoice: "weather", Options: agent.Options{}.With("tool_choice", "auto")}, `the option "tool_choice" is set by the request already`},
	} {
		t.Run(name, func(t *testing.T) {
			endpoint := modeltest.Golden(t, modeltest.Body(200, "application/json", goodResponse))
			err := newResponses(t, endpoint.URL).Next(t.Context(), agent.NewState(agent.UserText("hello")).WithRequest(c.request)).Error()
			require.ErrorContains(t, err, c.says)
			assert.Equal(t, agent.KindBadRequest, agent.KindOf(err))
			assert.Empty(t, endpoint.Requests())
		})
	}
}

// TestResponsesThatFail: a status of 200, and no reply in it.
func TestResponsesThatFail(t *testing.T) {
	item := func(kind string) string {
		return responseOf("completed", "null", `{"type":"`+kind+`","id":"x_1","name":"x","call_id":"call_1"}`)
	}
	for name, c := range map[string]struct {
		body string
		kind agent.ErrorKind
		says string
	}{
		"failed":               {responseOf("failed", `{"code":"server_error","message":"It broke."}`, ""), agent.KindModel, `the call failed (server_error): It broke.`},
		"too fast":             {responseOf("failed", `{"code":"rate_limit_exceeded","message":"Slow down."}`, ""), agent.KindRateLimit, "Slow down."},
		"no credit":            {responseOf("failed", `{"code":"insufficient_quota","message":"Pay."}`, ""), agent.KindAuth, "see its billing page"},
		"too long":             {responseOf("failed", `{"code":"context_length_exceeded","message":"Too long."}`, ""), agent.KindContextLength, "Too long."},
		"a bad prompt":         {responseOf("failed", `{"code":"invalid_prompt","message":"Not this."}`, ""), agent.KindBadRequest, "Not this."},
		"without a word":       {responseOf("failed", "null", ""), agent.KindModel, "the reply failed, and the service does not say why"},
		"an error alone":       {`{"error":{"message":"Out of memory.","code":502}}`, agent.KindModel, "Out of memory."},
		"cancelled":            {responseOf("cancelled", "null", ""), agent.KindBrokenStream, `its status is "cancelled"`},
		"not yet":              {responseOf("queued", "null", ""), agent.KindBrokenStream, `its status is "queued"`},
		"a chat completion":    {good, agent.KindBrokenStream, "it has no status"},
		"a nameless call":      {responseOf("completed", "null", `{"type":"function_call","id":"fc_1","call_id":"call_1","arguments":"{}"}`), agent.KindBrokenStream, "tool call 0 of the reply has no name"},
		"an item of no type":   {responseOf("completed", "null", `{"id":"fc_1"}`), agent.KindBrokenStream, "an item of the reply has no type"},
		"a call of a custom":   {item("custom_tool_call"), agent.KindBadRequest, `an item of the type "custom_tool_call", which only the program could answer: make the tool a function`},
		"an approval is asked": {item("mcp_approval_request"), agent.KindBadRequest, `set require_approval of the MCP tool to "never"`},
		"another account's": {`{"error":{"message":"The encrypted content could not be verified.","type":"invalid_request_error","code":"invalid_encrypted_content"}}`,
			agent.KindBadRequest, "reasoning in the messages belongs to another account"},
	} {
		t.Run(name, func(t *testing.T) {
			endpoint := modeltest.Golden(t, modeltest.Body(200, "application/json", c.body))
			err := newResponses(t, endpoint.URL).Next(t.Context(), agent.NewState(agent.UserText("hello"))).Error()
			require.ErrorContains(t, err, c.says)
			assert.Equal(t, c.kind, agent.KindOf(err), "%v", err)
		})
	}
}

// TestResponseStreamsThatAreBroken: events that contradict each other.
func TestResponseStreamsThatAreBroken(t *testing.T) {
	added := frame(`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"msg_1"}}`)
	for name, c := range map[string]struct{ body, says string }{
		"nothing":            {"data: [DONE]\n\n", "the stream ended before the reply was complete"},
		"no end":             {added + frame(`{"type":"response.output_text.delta","output_index":0,"delta":"Hi"}`), "the stream ended before the reply was complete"},
		"a piece of nothing": {frame(`{"type":"response.output_text.delta","output_index":3,"delta":"Hi"}`), "received a piece of a message for item 3"},
		"a piece of another": {added + frame(`{"type":"response.function_call_arguments.delta","output_index":0,"delta":"Hi"}`), "received a piece of a function_call for item 0"},
		"two types":          {added + frame(`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning"}}`), "item 0 of the reply has two types"},
		"a piece after its end": {added + frame(`{"type":"response.output_item.done","output_index":0,"item":{"type":"message"}}`) +
			frame(`{"type":"response.output_text.delta","output_index":0,"delta":"Hi"}`), "received a piece of a message for item 0"},
		"a nameless call": {frame(`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"a"}}`) +
			frame(`{"type":"response.completed","response":{"status":"completed"}}`), "tool call 0 of the reply has no name"},
	} {
		t.Run(name, func(t *testing.T) {
			endpoint := modeltest.Golden(t, modeltest.SSE(c.body))
			err := newResponses(t, endpoint.URL).Stream(t.Context(), agent.NewState(agent.UserText("hello")), func(agent.Delta) {}).Error()
			require.ErrorContains(t, err, c.says)
			assert.Equal(t, agent.KindBrokenStream, agent.KindOf(err))
		})
	}
}
