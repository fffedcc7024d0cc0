package anthropic_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/drivers/anthropic"
	"github.com/grapnel-go/grapnel/internal/modeltest"
)

// newDriver is a driver for an endpoint, with a client of its own that is given up
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

// event is a frame of a stream.
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

func TestFaults(t *testing.T) {
	saying := func(kind string, message ...string) string {
		return `{"type":"error","error":{"type":"` + kind + `","message":"` + strings.Join(append(message, modeltest.Sentence), ": ") +
			`"},"request_id":"req_1"}`
	}
	failing := func(status int, kind string, message ...string) modeltest.Reply {
		return modeltest.Body(status, "application/json", saying(kind, message...))
	}
	modeltest.TestFaults(t, modeltest.Service{
		New: onClient,
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
		Arguments: `{"text": "it br`,
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
	})
}
