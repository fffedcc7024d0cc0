package gemini_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/drivers/gemini"
	"github.com/grapnel-go/grapnel/internal/modeltest"
)

var update = flag.Bool("update", false, "write the golden files again")

// newDriver returns a driver before an endpoint that answers with replies.
func newDriver(t *testing.T, config gemini.Config, replies ...modeltest.Reply) (*gemini.Driver, *modeltest.Endpoint) {
	t.Helper()
	if len(replies) == 0 {
		replies = []modeltest.Reply{modeltest.Body(http.StatusOK, "application/json", service.Whole.Body)}
	}
	e := modeltest.Golden(t, replies...)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	config.BaseURL, config.APIKey, config.HTTPClient = e.URL, modeltest.Key, client
	if config.Model == "" {
		config.Model = "gemini-3.8-flash"
	}
	d, err := gemini.New(config)
	require.NoError(t, err)
	return d, e
}

// answered returns the message that answers a call.
func answered(c agent.ToolCall, r agent.ToolResult) agent.Message {
	return agent.ToolAnswer(r.To(&agent.Prepared{Call: &c, Original: &c}))
}

func said(text string) agent.ToolResult {
	return agent.ToolResult{Content: agent.TextContent(text), Status: agent.ToolExecuted}
}

func failed(text string) agent.ToolResult {
	return agent.ToolResult{Content: agent.TextContent(text), Status: agent.ToolFailed, Reason: agent.ReasonError}
}

var (
	clock = agent.ToolSpec{Name: "clock", Description: "Tells the time <now>."}
	look  = agent.ToolSpec{Name: "look", Parameters: `{
		"$defs": {"place": {"type": "string", "pattern": "^[a-z]+$"}},
		"type": "object", "properties": {"at": {"$ref": "#/$defs/place"}}, "required": ["at"], "additionalProperties": false
	}`}
	city = &agent.Output{Name: "city", Schema: `{"type": "object", "properties": {"name": {"type": "string"}}}`}
	png  = agent.Image("image/png", []byte("\x89PNG"))
)

// requests returns states, and what is asked with them: testdata/requests.
func requests() map[string]agent.State {
	ask := func(r agent.Request, messages ...agent.Message) agent.State {
		return agent.NewState(messages...).WithRequest(r)
	}
	hello := agent.UserText("hello")
	a, b := agent.ToolCall{ID: "fc_1", Name: "look", Arguments: `{"at":"x", "id":12345678901234567890}`}, agent.ToolCall{ID: "fc_2", Name: "clock"}
	own := agent.ToolCall{ID: "grapnel-r1-0-1-0", Name: "clock", Arguments: "{}"}
	shot := agent.ToolResult{Content: agent.ContentOf(agent.Text("here"), png, agent.FileURL("log", "https://example.com/log.txt")), Status: agent.ToolExecuted}
	tools := agent.ToolsOf(clock, look)
	withImages := []agent.Message{hello, agent.Assistant("", a), answered(a, shot)}
	return map[string]agent.State{
		"plain": ask(agent.Request{
			Instructions: "Be brief.", MaxOutputTokens: 100, Temperature: mo.Some(0.0),
		}, hello),
		"tools":          ask(agent.Request{Tools: tools}, hello),
		"tools required": ask(agent.Request{Tools: tools, ToolChoice: agent.ToolsRequired}, hello),
		"tools none":     ask(agent.Request{Tools: tools, ToolChoice: agent.ToolsNone}, hello),
		"tools one":      ask(agent.Request{Tools: tools, ToolChoice: "look"}, hello),
		"system messages": ask(agent.Request{Instructions: "First."},
			agent.System("Second."), agent.System("Third."), hello, agent.System("By the way."), agent.Assistant("Hi."), agent.System("And."), agent.UserText("go on")),
		"calls": ask(agent.Request{Tools: tools}, hello,
			agent.Assistant("Let me see.", a, b), answered(a, said("a <b>")), answered(b, failed("out of paper")),
			agent.Assistant("", own), answered(own, said("noon")), agent.Assistant("Noon.")),
		"user within answers": ask(agent.Request{}, hello,
			agent.Assistant("", a, b), answered(a, said("1")), agent.UserText("hurry"), agent.System("Hook."), answered(b, said("2"))),
		"malformed arguments": ask(agent.Request{}, hello, agent.Assistant("",
			agent.ToolCall{ID: "1", Name: "look", Arguments: `{"at":"it bre`},
			agent.ToolCall{ID: "2", Name: "look", Arguments: `["at"]`},
			agent.ToolCall{ID: "3", Name: "look", Arguments: `{"at":1,"at":2}`})),
		"media": ask(agent.Request{}, agent.User(
			agent.Text("look"), png, agent.ImageURL("https://example.com/a.JPG?x=1"), agent.ImageURL("data:image/gif;base64,R0lG"),
			agent.File("notes.txt", "text/plain; charset=utf-8", []byte("notes")),
			agent.FileURL("film", "https://generativelanguage.googleapis.com/v1beta/files/abc"))),
		"images of a tool":                   ask(agent.Request{}, withImages...),
		"images of a tool at an older model": ask(agent.Request{Model: "models/gemini-2.5-flash"}, withImages...),
		"reply without anything":             ask(agent.Request{}, hello, agent.Assistant(""), agent.UserText("?")),
		"signatures": ask(agent.Request{}, hello, agent.AssistantContent(agent.ContentOf(
			agent.Reasoning("I think", "gemini:"), agent.Reasoning("another's", "anthropic:1:{}"), agent.Reasoning("unsigned", ""),
			agent.Part{Kind: agent.PartText, Text: "Look: ", Opaque: "gemini:AQID"},
			agent.Part{Kind: agent.PartText, Opaque: "gemini:BAUG"},
			agent.Reasoning("", "gemini:call:fc_2:BwgJ"),
		), a, b)),
		"output":                             ask(agent.Request{Output: city}, hello),
		"output and tools":                   ask(agent.Request{Output: city, Tools: agent.ToolsOf(clock)}, hello),
		"output and tools at an older model": ask(agent.Request{Model: "gemini-2.5-pro", Output: city, Tools: agent.ToolsOf(clock)}, hello),
		"options": ask(agent.Request{Options: agent.Options{}.
			With("thinkingConfig", map[string]any{"thinkingLevel": "low", "includeThoughts": true}).
			With("topP", 0.5).With("stopSequences", []string{"END"}).
			With("safetySettings", []any{map[string]string{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}}).
			With("cachedContent", "cachedContents/1")}, hello),
	}
}

func TestRequests(t *testing.T) {
	for name, s := range requests() {
		t.Run(name, func(t *testing.T) {
			d, e := newDriver(t, gemini.Config{}, modeltest.Body(200, "application/json", service.Whole.Body), modeltest.SSE(service.Whole.Frames...))
			_, err := d.Next(t.Context(), s).Get()
			require.NoError(t, err)
			_, err = d.Stream(t.Context(), s, func(agent.Delta) {}).Get()
			require.NoError(t, err)
			asked := e.Requests()
			require.Len(t, asked, 2)
			assert.Equal(t, string(asked[0].Body), string(asked[1].Body), "a stream is asked for with the same body")

			model := "gemini-3.8-flash"
			if other := s.Request().Model; other != "" {
				model = filepath.Base(other)
			}
			for i, want := range []string{":generateContent?", ":streamGenerateContent?alt=sse"} {
				assert.Equal(t, "/v1beta/models/"+model+want, asked[i].Path+"?"+asked[i].Query)
				assert.Equal(t, http.MethodPost, asked[i].Method)
				assert.Equal(t, modeltest.Key, asked[i].Header.Get("X-Goog-Api-Key"))
			}
			golden(t, filepath.Join("testdata", "requests", strings.ReplaceAll(name, " ", "_")+".json"), asked[0].Body)
		})
	}
}

// golden compares JSON with a file, byte by byte once both are indented.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	var text bytes.Buffer
	require.NoError(t, json.Indent(&text, got, "", "  "))
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, text.Bytes(), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "run the test with -update to write it")
	assert.Equal(t, string(want), text.String())
}

// What the driver cannot ask is refused, and nothing is sent.
func TestRequestsThatAreNotSent(t *testing.T) {
	hello := agent.UserText("hello")
	option := func(name string) agent.Request { return agent.Request{Options: agent.Options{}.With(name, 1)} }
	for want, s := range map[string]agent.State{
		`option "contents" would overwrite`:              agent.NewState(hello).WithRequest(option("contents")),
		`option "tools" would overwrite`:                 agent.NewState(hello).WithRequest(option("tools")),
		`option "toolConfig" would overwrite`:            agent.NewState(hello).WithRequest(option("toolConfig")),
		`option "systemInstruction" would overwrite`:     agent.NewState(hello).WithRequest(option("systemInstruction")),
		`option "generationConfig" would overwrite`:      agent.NewState(hello).WithRequest(option("generationConfig")),
		`option "candidateCount" would overwrite`:        agent.NewState(hello).WithRequest(option("candidateCount")),
		`option "temperature" would overwrite`:           agent.NewState(hello).WithRequest(option("temperature")),
		`option "responseMimeType" is set by`:            agent.NewState(hello).WithRequest(agent.Request{Output: city, Options: agent.Options{}.With("responseMimeType", "text/x.enum")}),
		`option "topP" cannot be encoded as JSON`:        agent.NewState(hello).WithRequest(agent.Request{Options: agent.Options{}.With("topP", func() {})}),
		`the tool choice "nod" is not a tool`:            agent.NewState(hello).WithRequest(agent.Request{Tools: agent.ToolsOf(clock), ToolChoice: "nod"}),
		`the tool choice is "required", but the request`: agent.NewState(hello).WithRequest(agent.Request{ToolChoice: agent.ToolsRequired}),
		`parameters of tool "bad" are not a JSON object`: agent.NewState(hello).WithRequest(agent.Request{Tools: agent.ToolsOf(agent.ToolSpec{Name: "bad", Parameters: `{"type":`})}),
		`schema of agent.Request.Output is not JSON`:     agent.NewState(hello).WithRequest(agent.Request{Output: &agent.Output{Schema: "{"}}),
		`"../../x" is not a model name`:                  agent.NewState(hello).WithRequest(agent.Request{Model: "../../x"}),
		`message 1: the image "" has neither`:            agent.NewState(hello, agent.User(agent.Image("image/png", nil))),
		`message 0: the file "x" has the media type`:     agent.NewState(agent.User(agent.File("x", "", []byte("x")))),
	} {
		t.Run(want, func(t *testing.T) {
			d, e := newDriver(t, gemini.Config{})
			_, err := d.Next(t.Context(), s).Get()
			require.ErrorContains(t, err, want)
			assert.Equal(t, agent.KindBadRequest, agent.KindOf(err))
			_, err = d.Stream(t.Context(), s, func(agent.Delta) {}).Get()
			require.ErrorContains(t, err, want)
			assert.Empty(t, e.Requests())
		})
	}
}

// What Config.Features takes away is not asked for.
func TestFeaturesCorrected(t *testing.T) {
	none := func(f *agent.Features) {
		*f = agent.Features{Provider: "gateway", Model: "other", Endpoint: "elsewhere", ContextTokens: 7, Priced: true}
	}
	d, e := newDriver(t, gemini.Config{Features: none})
	assert.Equal(t, agent.Features{
		Provider: "gateway", Model: "gemini-3.8-flash", Endpoint: e.URL, ContextTokens: 7,
	}, d.Features(), "model, endpoint and whether it is priced stay as they are")

	for want, s := range map[string]agent.State{
		"does not accept images":           agent.NewState(agent.User(png)),
		"file \"x\"":                       agent.NewState(agent.User(agent.FileURL("x", "https://example.com"))),
		"gemini-3.8-flash does not accept": agent.NewState(agent.UserText("x")).WithRequest(agent.Request{Tools: agent.ToolsOf(clock)}),
	} {
		_, err := d.Next(t.Context(), s).Get()
		require.ErrorContains(t, err, want)
	}
	require.Empty(t, e.Requests())

	var told []agent.Delta
	s := agent.NewState(agent.UserText("x")).WithRequest(agent.Request{Output: city})
	step, err := d.Stream(t.Context(), s, func(delta agent.Delta) { told = append(told, delta) }).Get()
	require.NoError(t, err)
	assert.Equal(t, []agent.Delta{{Text: step.Message.Text()}}, told, "the whole at once")
	require.Len(t, e.Requests(), 1)
	assert.Contains(t, e.Requests()[0].Path, ":generateContent")
	body := e.Requests()[0].JSON(t)
	assert.NotContains(t, body, "generationConfig")
	assert.Contains(t, string(e.Requests()[0].Body), "Give your final answer as JSON alone")
}

func TestPricesOfTheTable(t *testing.T) {
	prices := gemini.ListPrices()
	million := agent.Usage{InputTokens: 1_000_000, OutputTokens: 1_000_000}
	for model, want := range map[string]mo.Option[float64]{
		"gemini-2.5-flash":                  mo.Some(2.80),
		"gemini-2.5-flash-001":              mo.Some(2.80),
		"gemini-2.5-pro":                    mo.Some(17.5), // all of it at the price for long prompts
		"gemini-3.1-pro-preview":            mo.Some(22.0),
		"gemini-2.5-flash-image":            mo.None[float64](),
		"gemini-9-flash":                    mo.None[float64](),
		"gemini-2.5-flash-preview-tts-9000": mo.None[float64](),
	} {
		assert.Equal(t, want, prices.Cost(model, million), model)
	}
	short := agent.Usage{InputTokens: 200_000, CacheReadTokens: 100_000, OutputTokens: 1000}
	assert.InDelta(t, 0.125+0.0125+0.01, prices.Cost("gemini-2.5-pro", short).MustGet(), 1e-9)
	assert.NotEmpty(t, prices.AsOf())
	_, listed := drivers.Prices{}.Of("gemini-2.5-pro")
	assert.False(t, listed)
}
