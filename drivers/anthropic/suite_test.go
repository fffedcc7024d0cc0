package anthropic_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/drivers/anthropic"
	"github.com/grapnel-go/grapnel/internal/modeltest"
)

// newDriver returns a driver for an endpoint, with a client of its own that is given up
// at the end of the test. Nothing is known of its model, so that Next does not stream.
func newDriver(t testing.TB, url string, change ...func(*anthropic.Config)) *anthropic.Driver {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	c := anthropic.Config{Model: "claude-test", APIKey: modeltest.Key, BaseURL: url, HTTPClient: client}
	for _, f := range change {
		f(&c)
	}
	d, err := anthropic.New(c)
	require.NoError(t, err)
	return d
}

func onClient(t *testing.T, baseURL string, client *http.Client) agent.Driver {
	t.Helper()
	return newDriver(t, baseURL, func(c *anthropic.Config) { c.HTTPClient = client })
}

func TestMock(t *testing.T) { modeltest.TestMock(t, modeltest.Service{New: onClient}) }

func TestModel(t *testing.T) {
	mock := modeltest.StartMock(t)
	for _, model := range []string{"claude-test", "claude-sonnet-5-5"} {
		t.Run(model, func(t *testing.T) {
			agenttest.TestModel(t, agenttest.Model{
				New: func(t *testing.T, turns ...agent.Step) agent.Driver {
					t.Helper()
					return newDriver(t, mock.Play(t, turns...).URL, func(c *anthropic.Config) { c.Model = model })
				},
				ObjectArguments: true,
			})
		})
	}
}

// event returns a frame of a stream.
func event(data string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(data, `{"type":"`), `"`)
	return "event: " + name + "\ndata: " + data + "\n\n"
}

func events(data ...string) []string {
	return lo.Map(data, func(text string, _ int) string { return event(text) })
}

const (
	start = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-test",` +
		`"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":1}}}`
	stop = `{"type":"message_stop"}`
)

func ends(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `","stop_sequence":null},"usage":{"output_tokens":3}}`
}

func TestFaults(t *testing.T) { modeltest.TestFaults(t, faults(onClient)) }

func TestShapes(t *testing.T) { modeltest.TestShapes(t, faults(onClient)) }

// TestFaultsOfVertex: the token is kept as secret as a key.
func TestFaultsOfVertex(t *testing.T) {
	modeltest.TestFaults(t, faults(func(t *testing.T, baseURL string, client *http.Client) agent.Driver {
		t.Helper()
		return newDriver(t, baseURL, func(c *anthropic.Config) { onVertex(c); c.HTTPClient = client })
	}))
}

// onVertex makes a Config one for Vertex AI, whose token is modeltest.Key.
func onVertex(c *anthropic.Config) {
	c.APIKey, c.Vertex = "", &drivers.Vertex{
		Project: "my-project", Location: "global", Token: func(context.Context) (string, error) { return modeltest.Key, nil },
	}
}

// TestVertex: where Vertex AI is asked, and for what.
func TestVertex(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "env")
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
	whole := faults(onClient).Whole
	endpoint := modeltest.Golden(t, modeltest.Body(200, "application/json", whole.Body), modeltest.SSE(whole.Frames...),
		modeltest.Body(200, "application/json", `{"input_tokens":7}`))
	d := newDriver(t, endpoint.URL, onVertex, func(c *anthropic.Config) { c.Model = "claude-test@20250929" })
	s := agent.NewState(agent.UserText("hello")).WithRequest(agent.Request{MaxOutputTokens: 100})
	_, err := d.Next(t.Context(), s).Get()
	require.NoError(t, err)
	_, err = d.Stream(t.Context(), s, func(agent.Delta) {}).Get()
	require.NoError(t, err)
	tokens, err := d.CountTokens(t.Context(), s)
	require.NoError(t, err)
	assert.Equal(t, int64(7), tokens)
	const models = "/v1/projects/my-project/locations/global/publishers/anthropic/models/"
	const messages = `"messages":[{"role":"user","content":[{"text":"hello","type":"text"}]}],"anthropic_version":"vertex-2023-10-16"`
	for i, want := range []struct{ path, body string }{
		{models + "claude-test@20250929:rawPredict", `{"max_tokens":100,"stream":false,` + messages + `}`},
		{models + "claude-test@20250929:streamRawPredict", `{"max_tokens":100,"stream":true,` + messages + `}`},
		{models + "count-tokens:rawPredict", `{"model":"claude-test@20250929",` + messages + `}`},
	} {
		r := endpoint.Requests()[i]
		assert.Equal(t, want.path, r.Path)
		assert.JSONEq(t, want.body, string(r.Body))
		assert.Equal(t, "Bearer "+modeltest.Key, r.Header.Get("Authorization"))
		assert.Empty(t, r.Header.Get("X-Api-Key"))
	}
	assert.Equal(t, "gcp.vertex_ai", d.Features().Provider)
	known, err := anthropic.New(anthropic.Config{Model: "claude-sonnet-4-5@20250929", Vertex: &drivers.Vertex{Project: "p", Location: "eu", Token: func(context.Context) (string, error) { return "", nil }}})
	require.NoError(t, err)
	assert.Equal(t, int64(200_000), known.Features().ContextTokens, "the model has another name there")
	assert.Equal(t, "https://aiplatform.eu.rep.googleapis.com", known.Features().Endpoint)

	_, err = anthropic.New(anthropic.Config{Model: "m", Vertex: &drivers.Vertex{Location: "eu"}})
	require.ErrorContains(t, err, "no token: set Vertex.Token")
	err = d.Next(t.Context(), s.WithRequest(agent.Request{Options: agent.Options{}.With("anthropic_version", "x")})).Error()
	require.ErrorContains(t, err, `option "anthropic_version" would overwrite what the driver sends`)
}

func faults(build func(t *testing.T, baseURL string, client *http.Client) agent.Driver) modeltest.Service {
	saying := func(kind string, message ...string) string {
		return `{"type":"error","error":{"type":"` + kind + `","message":"` + strings.Join(append(message, modeltest.Sentence), ": ") +
			`"},"request_id":"req_1"}`
	}
	failing := func(status int, kind string, message ...string) modeltest.Reply {
		return modeltest.Body(status, "application/json", saying(kind, message...))
	}
	return modeltest.Service{
		New: build,
		Whole: modeltest.Exchange{
			Body: `{"id":"msg_1","type":"message","role":"assistant","model":"claude-test","content":[{"type":"text","text":"Good day!"}],` +
				`"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":3}}`,
			Frames: events(start, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Good day!"}}`,
				`{"type":"content_block_stop","index":0}`, ends("end_turn"), stop),
		},
		Text: "Good day!",
		Call: modeltest.Exchange{
			Frames: events(start,
				`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"echo","input":{}}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":""}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"text\": \"it"}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":" br"}}`,
				`{"type":"content_block_stop","index":0}`, ends("tool_use"), stop),
		},
		Arguments:  `{"text": "it br`,
		Shapes:     shapes(),
		Unfinished: unfinished(),
		Errors: map[agent.ErrorKind][]modeltest.Reply{
			agent.KindRateLimit:  {failing(429, "rate_limit_error")},
			agent.KindOverloaded: {failing(529, "overloaded_error"), failing(500, "overloaded_error"), failing(503, "")},
			agent.KindAuth: {
				failing(401, "authentication_error", "invalid x-api-key"), failing(403, "permission_error"), failing(402, "billing_error"),
				failing(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API"),
			},
			agent.KindContextLength: {
				failing(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
				failing(400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000"),
				failing(413, "request_too_large"), failing(413, ""),
			},
			agent.KindBadRequest: {
				failing(400, "invalid_request_error", "messages: at least one message is required"), failing(404, "not_found_error", "model: claude-9"),
			},
			agent.KindModel:   {failing(500, "api_error"), failing(500, "what_is_this")},
			agent.KindTimeout: {failing(504, "timeout_error")},
		},
		StreamErrors: map[agent.ErrorKind][]string{
			agent.KindModel:         {event(saying("api_error")), event(saying("what_is_this"))},
			agent.KindOverloaded:    {event(saying("overloaded_error"))},
			agent.KindRateLimit:     {event(saying("rate_limit_error"))},
			agent.KindContextLength: {event(saying("invalid_request_error", "prompt is too long"))},
		},
	}
}
