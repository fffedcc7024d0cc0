package openai_test

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
	"github.com/grapnel-go/grapnel/drivers/openai"
	"github.com/grapnel-go/grapnel/internal/modeltest"
)

var update = flag.Bool("update", false, "write the golden files again")

// golden compares text with a file, or writes it there.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update")
	assert.Equal(t, string(want), got)
}

// goldenJSON compares JSON with a file, or writes it there, one member a line.
func goldenJSON(t *testing.T, path string, got []byte) {
	t.Helper()
	var text bytes.Buffer
	require.NoError(t, json.Indent(&text, got, "", "\t"), "%s", got)
	golden(t, path, text.String()+"\n")
}

const good = `{"id":"chatcmpl-1","model":"gpt-4o-2024-08-06","choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}],
	"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}`

// maker makes a driver for an endpoint.
type maker func(t testing.TB, url string, change ...func(*openai.Config)) *openai.Driver

// asked returns the driver's request for s. The service answers with reply.
func asked(t testing.TB, build maker, reply string, s agent.State, change ...func(*openai.Config)) modeltest.Request {
	t.Helper()
	endpoint := modeltest.Golden(t, modeltest.Body(200, "application/json", reply))
	_, err := build(t, endpoint.URL, change...).Next(t.Context(), s).Get()
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

func TestRequests(t *testing.T) {
	hello := agent.UserText("hello")
	compatible := func(c *openai.Config) {}
	call := agent.ToolCall{ID: "call_1", Name: "weather", Arguments: `{"city":"Zürich & <Bern>"}`}
	answer := func(content agent.Content) agent.Message {
		r := agent.NotExecuted(&call, "", "", "")
		r.Content = content
		return agent.ToolAnswer(r)
	}
	for name, c := range map[string]struct {
		messages []agent.Message
		request  agent.Request
		change   func(*openai.Config)
	}{
		"text":         {messages: []agent.Message{hello}},
		"instructions": {[]agent.Message{hello}, agent.Request{Instructions: "Be brief."}, compatible},
		"instructions of a developer": {[]agent.Message{hello}, agent.Request{Instructions: "Be brief."}, func(c *openai.Config) {
			c.Dialect.Instructions = "developer"
		}},
		"instructions alone": {nil, agent.Request{Instructions: "Say something."}, compatible},
		"conversation": {messages: []agent.Message{
			agent.System("You are in Switzerland."), hello, agent.Assistant("Hello! <3"), agent.UserText("quite \"odd\"\n\u2028 \u0001 text\xff"),
			agent.Assistant(""),
		}},
		"calls": {messages: []agent.Message{
			hello,
			agent.AssistantContent(agent.ContentOf(agent.Reasoning("let me see", ""), agent.Text("I look.")), call, agent.ToolCall{ID: "call_2", Name: "now"}),
			answer(agent.TextContent("rain")),
			answer(agent.ContentOf(agent.Text("a map"), agent.Image("image/png", png), agent.ImageURL("https://example.com/a.png"),
				agent.File("notes.pdf", "application/pdf", []byte("%PDF")))),
			agent.Assistant("", agent.ToolCall{ID: "call_3", Name: "weather", Arguments: `{"city": "it broke of`}),
		}},
		"reasoning goes back": {messages: []agent.Message{
			hello, agent.AssistantContent(agent.ContentOf(agent.Reasoning("let me see", "")), call), answer(agent.TextContent("rain")),
		}, change: func(c *openai.Config) { c.Dialect.Reasoning = "reasoning_content" }},
		"images": {messages: []agent.Message{agent.User(
			agent.Text("What is this?"), agent.Image("image/png", png), agent.ImageURL("https://example.com/a.png"),
		)}},
		"files": {messages: []agent.Message{agent.User(
			agent.Text("What is this?"), agent.File("notes.pdf", "application/pdf", []byte("%PDF")), agent.File("", "", []byte("?")),
			agent.FileURL("more.pdf", "data:application/pdf;base64,JVBERg=="),
		)}, change: func(c *openai.Config) { c.Features = func(f *agent.Features) { f.Files = true } }},
		"tools": {[]agent.Message{hello}, agent.Request{Tools: agent.ToolsOf(weather, agent.ToolSpec{Name: "now"})}, compatible},
		"a tool is required": {[]agent.Message{hello}, agent.Request{
			Tools: agent.ToolsOf(weather), ToolChoice: agent.ToolsRequired,
		}, compatible},
		"one tool must be called": {[]agent.Message{hello}, agent.Request{Tools: agent.ToolsOf(weather), ToolChoice: "weather"}, compatible},
		"no tool may be called":   {[]agent.Message{hello}, agent.Request{Tools: agent.ToolsOf(weather), ToolChoice: agent.ToolsNone}, compatible},
		"settings": {[]agent.Message{hello}, agent.Request{
			Model: "gpt-5", MaxOutputTokens: 100, Temperature: mo.Some(0.0),
			Options: agent.Options{}.With("top_p", 0.5).With("reasoning_effort", "low").With("an option of tomorrow", map[string]any{"a": []int{1}}),
		}, compatible},
		"other name for the limit": {[]agent.Message{hello}, agent.Request{MaxOutputTokens: 100}, func(c *openai.Config) {
			c.Dialect.MaxTokens = "max_completion_tokens"
		}},
		"output, strict": {[]agent.Message{hello}, agent.Request{Output: &agent.Output{
			Name:   "the weather!",
			Schema: `{"type":"object","properties":{"rain":{"type":"boolean"}},"required":["rain"],"additionalProperties":false}`,
		}}, compatible},
		"output, not strict": {[]agent.Message{hello}, agent.Request{Output: &agent.Output{
			Schema: `{"type":"object","properties":{"rain":{"type":"boolean"}}}`,
		}}, compatible},
		"output that the service does not hold": {[]agent.Message{hello}, agent.Request{Output: &agent.Output{Schema: `{}`}}, func(c *openai.Config) {
			c.Features = func(f *agent.Features) { f.StructuredOutput = false }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			change := c.change
			if change == nil {
				change = compatible
			}
			r := asked(t, newDriver, good, agent.NewState(c.messages...).WithRequest(c.request), change)
			assert.Equal(t, "/v1/chat/completions", r.Path)
			goldenJSON(t, filepath.Join("testdata", "requests", strings.ReplaceAll(name, " ", "-")+".json"), r.Body)
		})
	}
}

// TestStreamedRequest: a streamed reply is asked for with its usage.
func TestStreamedRequest(t *testing.T) {
	for name, c := range map[string]struct {
		dialect openai.Dialect
		want    string
	}{
		"usual":     {openai.Dialect{}, `{"model":"gpt-4o","stream":true,"stream_options":{"include_usage":true},"messages":[{"content":"hello","role":"user"}]}`},
		"uncounted": {openai.Dialect{NoStreamUsage: true}, `{"model":"gpt-4o","stream":true,"messages":[{"content":"hello","role":"user"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			endpoint := modeltest.Golden(t, modeltest.ReadReply(t, "testdata/replies/stream-openai.http"))
			d := newDriver(t, endpoint.URL, func(o *openai.Config) { o.Dialect = c.dialect })
			_, err := d.Stream(t.Context(), agent.NewState(agent.UserText("hello")), func(agent.Delta) {}).Get()
			require.NoError(t, err)
			assert.Equal(t, c.want, string(endpoint.Requests()[0].Body))
			assert.Equal(t, "text/event-stream", endpoint.Requests()[0].Header.Get("Accept"))
		})
	}
}

// seen holds the parts of a step that a test compares.
type seen struct {
	Parts        []agent.Part
	Calls        []agent.ToolCall
	FinishReason agent.FinishReason
	Usage        agent.Usage
	Model, ID    string
}

func seenOf(step agent.Step) seen {
	s := seen{FinishReason: step.FinishReason, Usage: step.Usage, Model: step.Model, ID: step.ID}
	for _, p := range step.Message.Content().Parts() {
		s.Parts = append(s.Parts, p)
	}
	for _, c := range step.Message.Calls() {
		s.Calls = append(s.Calls, c)
	}
	return s
}

// TestReplies: replies as services gave them, whole and streamed.
func TestReplies(t *testing.T) { testReplies(t, newDriver, "testdata/replies") }

func testReplies(t *testing.T, build maker, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.http"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".http"), func(t *testing.T) {
			endpoint := modeltest.Golden(t, modeltest.ReadReply(t, file))
			d := build(t, endpoint.URL, func(c *openai.Config) { c.Prices = new(openai.ListPrices()) })
			s := agent.NewState(agent.UserText("hello"))
			var step agent.Step
			var err error
			var got pieces
			if strings.HasPrefix(filepath.Base(file), "stream") {
				step, err = d.Stream(t.Context(), s, got.add).Get()
			} else {
				step, err = d.Next(t.Context(), s).Get()
			}
			require.NoError(t, err)
			text, err := json.MarshalIndent(seenOf(step), "", "\t")
			require.NoError(t, err)
			golden(t, strings.TrimSuffix(file, ".http")+".json", string(text)+"\n")
			if strings.HasPrefix(filepath.Base(file), "stream") {
				got.check(t, step)
			}
		})
	}
}

// pieces is what was told of a streamed reply.
type pieces struct {
	text, reasoning string
	calls           []agent.ToolCall
}

func (p *pieces) add(d agent.Delta) {
	p.text += d.Text
	p.reasoning += d.Reasoning
	if d.Call == (agent.ToolCall{}) {
		return
	}
	for d.CallIndex >= len(p.calls) {
		p.calls = append(p.calls, agent.ToolCall{Index: len(p.calls)})
	}
	c := &p.calls[d.CallIndex]
	c.ID, c.Name, c.Arguments = c.ID+d.Call.ID, c.Name+d.Call.Name, c.Arguments+d.Call.Arguments
}

// check compares the pieces with the whole.
func (p *pieces) check(t *testing.T, step agent.Step) {
	t.Helper()
	want := seenOf(step)
	assert.Equal(t, step.Message.Text(), p.text, "the pieces of text")
	assert.Equal(t, want.Calls, p.calls, "the pieces of calls")
	var thought string
	for _, part := range want.Parts {
		if part.Kind == agent.PartReasoning {
			thought += part.Text
		}
	}
	assert.Equal(t, thought, p.reasoning, "the pieces of reasoning")
}
