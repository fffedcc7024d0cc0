package anthropic_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers/anthropic"
	"github.com/grapnel-go/grapnel/internal/modeltest"
)

var update = flag.Bool("update", false, "write the golden files again")

// golden compares a JSON text with a file, or writes it there.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	var text bytes.Buffer
	require.NoError(t, json.Indent(&text, got, "", "\t"), "%s", got)
	text.WriteByte('\n')
	if *update {
		require.NoError(t, os.WriteFile(path, text.Bytes(), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update")
	assert.Equal(t, string(want), text.String())
}

const good = `{"id":"msg_1","type":"message","role":"assistant","model":"claude-test","content":[{"type":"text","text":"ok"}],` +
	`"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":3}}`

// asked returns the driver's request for s.
func asked(t testing.TB, s agent.State, change ...func(*anthropic.Config)) modeltest.Request {
	t.Helper()
	endpoint := modeltest.Golden(t, modeltest.Body(200, "application/json", good))
	_, err := newDriver(t, endpoint.URL, change...).Next(t.Context(), s).Get()
	require.NoError(t, err)
	require.Len(t, endpoint.Requests(), 1)
	return endpoint.Requests()[0]
}

var weather = agent.ToolSpec{
	Name: "weather", Description: "Says how the weather is, for <b>one</b> city.",
	Parameters: `{"type":"object","properties":{"zone":{"type":"integer","maximum":12345678901234567890},"city":{"type":"string"}},"required":["city"]}`,
}

// png is the shortest thing that begins as an image of that kind does.
var png = []byte("\x89PNG\r\n\x1a\n")

// answer returns the message that answers a call.
func answer(c agent.ToolCall, reason agent.ReasonCode, parts ...agent.Part) agent.Message {
	r := agent.NotExecuted(&c, reason, "", "")
	r.Content = agent.ContentOf(parts...)
	return agent.ToolAnswer(r)
}

func TestRequests(t *testing.T) {
	hello := agent.UserText("hello")
	rain := agent.ToolCall{ID: "toolu_1", Name: "weather", Arguments: `{"city":"Zürich & <Bern>", "zone": 12345678901234567890}`}
	now := agent.ToolCall{ID: "functions.now:0", Name: "now"}
	model := func(name string) func(*anthropic.Config) { return func(c *anthropic.Config) { c.Model = name } }
	features := func(f func(*agent.Features)) func(*anthropic.Config) {
		return func(c *anthropic.Config) { c.Features = f }
	}
	for name, c := range map[string]struct {
		messages []agent.Message
		request  agent.Request
		change   func(*anthropic.Config)
	}{
		"text":               {messages: []agent.Message{hello}},
		"instructions":       {[]agent.Message{agent.System("You are in Switzerland."), agent.System(" "), hello}, agent.Request{Instructions: "Be brief."}, nil},
		"instructions alone": {nil, agent.Request{Instructions: "Say something."}, nil},
		"conversation": {messages: []agent.Message{
			hello, agent.Assistant("Hello! <3"), agent.UserText("quite \"odd\"\n\u2028 \u0001 text\xff"), agent.UserText("and more"),
			agent.Assistant(" \n"), agent.UserText(""), agent.System("Mind the time."), agent.Assistant("It is late."),
		}},
		"the assistant begins": {messages: []agent.Message{agent.Assistant("How can I help?"), hello}},
		"calls": {messages: []agent.Message{
			hello,
			agent.AssistantContent(agent.ContentOf(agent.Reasoning("of another service", "c2ln"), agent.Text("I look.")), rain, now),
			answer(rain, "", agent.Text("rain")),
			agent.UserText("said by a hook between two answers"),
			answer(now, agent.ReasonDenied),
			agent.System("It is denied for good."),
		}},
		"results": {messages: []agent.Message{
			hello, agent.Assistant("", rain, now),
			answer(rain, "", agent.Text("a map"), agent.Image("image/png", png), agent.ImageURL("https://example.com/a.png"),
				agent.File("notes.pdf", "application/pdf", []byte("%PDF")), agent.Text("\n")),
			answer(now, ""),
		}},
		"malformed arguments": {messages: []agent.Message{
			hello, agent.Assistant("", agent.ToolCall{ID: "a", Name: "weather", Arguments: `{"city": "it br`},
				agent.ToolCall{ID: "b", Name: "weather", Arguments: `["Bern"]`}, agent.ToolCall{ID: "c", Name: "weather", Arguments: `{"a":1,"a":2}`}),
		}},
		"images and files": {messages: []agent.Message{agent.User(
			agent.Text("What is this?"), agent.Image("image/png", png), agent.ImageURL("https://example.com/a.png"),
			agent.ImageURL("data:image/png;base64,iVBORw0KGgo="), agent.File("notes.pdf", "application/pdf", []byte("%PDF")),
			agent.FileURL("more.pdf", "https://example.com/more.pdf"), agent.File("a.csv", "text/csv; charset=utf-8", []byte("a,b\n")),
		)}},
		"tools":                   {[]agent.Message{hello}, agent.Request{Tools: agent.ToolsOf(weather, agent.ToolSpec{Name: "now"})}, nil},
		"a tool is required":      {[]agent.Message{hello}, agent.Request{Tools: agent.ToolsOf(weather), ToolChoice: agent.ToolsRequired}, nil},
		"one tool must be called": {[]agent.Message{hello}, agent.Request{Tools: agent.ToolsOf(weather), ToolChoice: "weather"}, nil},
		"no tool may be called":   {[]agent.Message{hello}, agent.Request{Tools: agent.ToolsOf(weather), ToolChoice: agent.ToolsNone}, nil},
		"one call at a time": {[]agent.Message{hello}, agent.Request{Tools: agent.ToolsOf(weather)}, features(func(f *agent.Features) {
			f.ParallelCalls = false
		})},
		"settings": {[]agent.Message{hello}, agent.Request{
			Model: "claude-haiku-4-5", MaxOutputTokens: 100, Temperature: mo.Some(0.0),
			Options: agent.Options{}.With("top_p", 0.5).With("thinking", map[string]any{"type": "enabled", "budget_tokens": 1024}).
				With("an option of tomorrow", map[string]any{"a.b": []int{1}}).With("stop_sequences", []string{"<end>"}),
		}, nil},
		"output of a model that is known": {[]agent.Message{hello}, agent.Request{
			Output: &agent.Output{Name: "weather", Schema: `{"type":"object","properties":{"rain":{"type":"number","minimum":0}},"required":["rain"]}`},
			// A short reply: a longer one would be streamed.
			MaxOutputTokens: 100, Options: agent.Options{}.With("output_config", map[string]any{"effort": "low"}),
		}, model("claude-haiku-4-5-20251001")},
		"output of one that is not": {[]agent.Message{hello}, agent.Request{
			Instructions: "Be brief.", Output: &agent.Output{Schema: `{"type":"object"}`},
		}, nil},
		"cache": {[]agent.Message{hello}, agent.Request{Instructions: "Be brief.", Tools: agent.ToolsOf(weather)}, func(c *anthropic.Config) {
			c.Cache = anthropic.CacheShort
		}},
		"cache of tools": {[]agent.Message{hello}, agent.Request{Tools: agent.ToolsOf(agent.ToolSpec{Name: "now"}, weather)}, func(c *anthropic.Config) {
			c.Cache = anthropic.CacheLong
		}},
	} {
		t.Run(name, func(t *testing.T) {
			change := c.change
			if change == nil {
				change = func(*anthropic.Config) {}
			}
			r := asked(t, agent.NewState(c.messages...).WithRequest(c.request), change)
			assert.Equal(t, "/v1/messages", r.Path)
			assert.Equal(t, "2023-06-01", r.Header.Get("Anthropic-Version"))
			assert.Equal(t, modeltest.Key, r.Header.Get("X-Api-Key"))
			golden(t, filepath.Join("testdata", "requests", strings.ReplaceAll(name, " ", "-")+".json"), r.Body)
		})
	}
}

// TestReplies reads what the service answered, whole and streamed, from files.
func TestReplies(t *testing.T) {
	files, err := filepath.Glob("testdata/replies/*.http")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			d := newDriver(t, modeltest.Golden(t, modeltest.ReadReply(t, file)).URL, func(c *anthropic.Config) {
				c.Prices = new(anthropic.ListPrices())
			})
			var told []agent.Delta
			ask := func() (agent.Step, error) { return d.Next(t.Context(), agent.NewState(agent.UserText("hello"))).Get() }
			if strings.HasPrefix(filepath.Base(file), "stream-") {
				ask = func() (agent.Step, error) {
					return d.Stream(t.Context(), agent.NewState(agent.UserText("hello")), func(d agent.Delta) { told = append(told, d) }).Get()
				}
			}
			step, err := ask()
			require.NoError(t, err)
			got, err := json.Marshal(struct {
				Message         agent.Message
				FinishReason    agent.FinishReason
				Usage           agent.Usage
				Model, ID, Text string
				Deltas          []agent.Delta `json:",omitempty"`
			}{step.Message, step.FinishReason, step.Usage, step.Model, step.ID, step.Message.Text(), told})
			require.NoError(t, err)
			golden(t, strings.TrimSuffix(file, ".http")+".json", got)
		})
	}
}

// TestWhatIsRefused: what the driver cannot ask is an error, and nothing is sent.
func TestWhatIsRefused(t *testing.T) {
	hello := agent.NewState(agent.UserText("hello"))
	option := func(name string, value any) agent.State {
		return hello.WithRequest(agent.Request{Options: agent.Options{}.With(name, value)})
	}
	none := func(c *anthropic.Config) { c.Features = func(f *agent.Features) { *f = agent.Features{} } }
	for want, c := range map[string]struct {
		state  agent.State
		change func(*anthropic.Config)
	}{
		`option "messages" would overwrite`:          {state: option("messages", nil)},
		`option "tools" would overwrite`:             {state: option("tools", nil)},
		`option "model" would overwrite`:             {state: option("model", "claude-9")},
		`option "stream" would overwrite`:            {state: option("stream", true)},
		`option "max_tokens" would overwrite`:        {state: option("max_tokens", 1)},
		`option "betas" must be a list of names`:     {state: option("betas", 7)},
		`option "top_p"`:                             {state: option("top_p", func() {})},
		`option "tool_choice" would overwrite`:       {state: hello.WithRequest(agent.Request{Tools: agent.ToolsOf(weather), ToolChoice: "weather", Options: agent.Options{}.With("tool_choice", 1)})},
		`the tool choice "fly" is not a tool`:        {state: hello.WithRequest(agent.Request{Tools: agent.ToolsOf(weather), ToolChoice: "fly"})},
		`the parameters of tool "a" are not a JSON`:  {state: hello.WithRequest(agent.Request{Tools: agent.ToolsOf(agent.ToolSpec{Name: "a", Parameters: "{"})})},
		`message 0: an image has the media type`:     {state: agent.NewState(agent.User(agent.Image("", png)))},
		`message 0: file "a.zip" has the media`:      {state: agent.NewState(agent.User(agent.File("a.zip", "application/zip", png)))},
		`the schema of Request.Output is not a JSON`: {state: hello.WithRequest(agent.Request{Model: "claude-opus-5", Output: &agent.Output{Schema: `7`}}), change: func(c *anthropic.Config) { c.Model = "claude-opus-5" }},
		`has a format, and so has Request.Output`: {state: hello.WithRequest(agent.Request{
			Output:  &agent.Output{Schema: `{"type":"object"}`},
			Options: agent.Options{}.With("output_config", map[string]any{"format": 1}),
		}), change: func(c *anthropic.Config) { c.Model = "claude-opus-5" }},
		`the model does not support tools`: {state: hello.WithRequest(agent.Request{Tools: agent.ToolsOf(weather)}), change: none},
		`the model does not accept images`: {state: agent.NewState(agent.User(agent.ImageURL("https://example.com/a.png"))), change: none},
		`file "a": the model`:              {state: agent.NewState(agent.User(agent.FileURL("a", "https://example.com/a.pdf"))), change: none},
	} {
		t.Run(want, func(t *testing.T) {
			endpoint := modeltest.Golden(t, modeltest.Body(200, "application/json", good))
			change := c.change
			if change == nil {
				change = func(*anthropic.Config) {}
			}
			d := newDriver(t, endpoint.URL, change)
			for _, err := range []error{d.Next(t.Context(), c.state).Error(), d.Stream(t.Context(), c.state, func(agent.Delta) {}).Error()} {
				assert.ErrorContains(t, err, want)
				assert.Equal(t, agent.KindBadRequest, agent.KindOf(err))
			}
			assert.Empty(t, endpoint.Requests())
		})
	}
}

// TestBetas: names in the option "betas" are a header, in addition to the configured names.
func TestBetas(t *testing.T) {
	s := agent.NewState(agent.UserText("hello")).WithRequest(agent.Request{Options: agent.Options{}.With("betas", []string{"one", "two"})})
	r := asked(t, s, func(c *anthropic.Config) { c.Header = map[string][]string{"Anthropic-Beta": {"zero"}} })
	assert.Equal(t, []string{"zero", "one", "two"}, r.Header.Values("Anthropic-Beta"))
	assert.NotContains(t, r.JSON(t), "betas")
}

// TestPrices: an hour in the cache costs twice the input, a request that stays in the
// country a tenth more, and what is not charged by tokens alone has no known cost.
func TestPrices(t *testing.T) {
	for usage, want := range map[string]mo.Option[float64]{
		`{"input_tokens":1000000,"output_tokens":100000}`:                                                mo.Some(3.0),
		`{"input_tokens":0,"cache_read_input_tokens":1000000,"output_tokens":0}`:                         mo.Some(0.1),
		`{"input_tokens":0,"cache_creation_input_tokens":1000000,"output_tokens":0}`:                     mo.Some(2.5),
		`{"cache_creation_input_tokens":1000000,"cache_creation":{"ephemeral_1h_input_tokens":1000000}}`: mo.Some(4.0),
		`{"input_tokens":1000000,"inference_geo":"us"}`:                                                  mo.Some(2.2),
		`{}`: mo.None[float64](),
		`{"input_tokens":1000000,"speed":"fast"}`:                              mo.None[float64](),
		`{"input_tokens":1000000,"server_tool_use":{"web_search_requests":1}}`: mo.None[float64](),
	} {
		body := strings.Replace(strings.Replace(good, `{"input_tokens":9,"output_tokens":3}`, usage, 1), "claude-test", "claude-sonnet-5-5", 1)
		d := newDriver(t, modeltest.Golden(t, modeltest.Body(200, "application/json", body)).URL, func(c *anthropic.Config) {
			c.Prices = new(anthropic.ListPrices())
		})
		step, err := d.Next(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
		require.NoError(t, err)
		assert.Equal(t, want.IsPresent(), step.Usage.Cost.IsPresent(), usage)
		assert.InDelta(t, want.OrEmpty(), step.Usage.Cost.OrEmpty(), 1e-9, usage)
	}
	list := anthropic.ListPrices()
	assert.InDelta(t, 0.01, list.Cost("claude-haiku-5-5", agent.Usage{InputTokens: 100_000}).MustGet(), 1e-9)
	assert.InDelta(t, 0.1, list.Cost("claude-haiku-5-5", agent.Usage{InputTokens: 200_000}).MustGet(), 1e-9)
	assert.NotEmpty(t, list.AsOf())
}
