package openai_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/drivers/openai"
	"github.com/grapnel-go/grapnel/internal/modeltest"
)

// newDriver returns a driver for an endpoint, with a client of its own that is given up
// at the end of the test.
func newDriver(t testing.TB, url string, change ...func(*openai.Config)) *openai.Driver {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	c := openai.Config{Model: "gpt-4o", APIKey: modeltest.Key, BaseURL: url + "/v1", HTTPClient: client}
	for _, f := range change {
		f(&c)
	}
	d, err := openai.New(c)
	require.NoError(t, err)
	return d
}

// onClient returns a driver that sends its requests with client.
func onClient(t *testing.T, baseURL string, client *http.Client) agent.Driver {
	t.Helper()
	return newDriver(t, baseURL, func(c *openai.Config) { c.HTTPClient = client })
}

func TestMock(t *testing.T) { modeltest.TestMock(t, modeltest.Service{New: onClient}) }

func TestModel(t *testing.T) {
	mock := modeltest.StartMock(t)
	agenttest.TestModel(t, agenttest.Model{
		New: func(t *testing.T, turns ...agent.Step) agent.Driver {
			t.Helper()
			return newDriver(t, mock.Play(t, turns...).URL)
		},
	})
}

func TestFaults(t *testing.T) {
	modeltest.TestFaults(t, faults(onClient))
}

func TestShapes(t *testing.T) { modeltest.TestShapes(t, faults(onClient)) }

// TestFaultsOfAzure: a token is kept as secret as a key, and an address with a deployment in it changes nothing else.
func TestFaultsOfAzure(t *testing.T) {
	modeltest.TestFaults(t, faults(func(t *testing.T, baseURL string, client *http.Client) agent.Driver {
		t.Helper()
		d, err := openai.New(openai.Config{
			Model: "gpt-4o", BaseURL: baseURL, APIVersion: "2024-10-21", HTTPClient: client,
			Token: func(context.Context) (string, error) { return modeltest.Key, nil },
		})
		require.NoError(t, err)
		return d
	}))
}

func faults(build func(t *testing.T, baseURL string, client *http.Client) agent.Driver) modeltest.Service {
	failing := func(status int, kind, code string) modeltest.Reply {
		return modeltest.Body(status, "application/json",
			`{"error":{"message":"`+modeltest.Sentence+`","type":"`+kind+`","param":null,"code":`+code+`}}`)
	}
	streamed := func(kind, code string) string {
		return "data: {\"error\":{\"message\":\"" + modeltest.Sentence + "\",\"type\":\"" + kind + "\",\"code\":" + code + "}}\n\n"
	}
	return modeltest.Service{
		New: build,
		Whole: modeltest.Exchange{
			Body: `{"id":"chatcmpl-1","object":"chat.completion","model":"gpt-4o-2024-08-06","choices":[{"index":0,` +
				`"message":{"role":"assistant","content":"Good day!","refusal":null},"finish_reason":"stop"}],` +
				`"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}`,
			Frames: []string{
				`data: {"id":"chatcmpl-1","model":"gpt-4o-2024-08-06","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}` + "\n\n",
				`data: {"id":"chatcmpl-1","model":"gpt-4o-2024-08-06","choices":[{"index":0,"delta":{"content":"Good day!"},"finish_reason":null}],"usage":null}` + "\n\n",
				`data: {"id":"chatcmpl-1","model":"gpt-4o-2024-08-06","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}` + "\n\n",
				`data: {"id":"chatcmpl-1","model":"gpt-4o-2024-08-06","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}` + "\n\n" +
					"data: [DONE]\n\n",
			},
		},
		Text: "Good day!",
		Call: modeltest.Exchange{
			Body: `{"id":"chatcmpl-2","model":"gpt-4o","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[` +
				`{"id":"call_1","type":"function","function":{"name":"echo","arguments":"{\"text\": \"it br"}}]},"finish_reason":"tool_calls"}]}`,
			Frames: []string{
				`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"echo","arguments":""}}]}}]}` + "\n\n",
				`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"text\": \"it"}}]}}]}` + "\n\n",
				`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":" br"}}]},"finish_reason":"tool_calls"}]}` + "\n\n",
				"data: [DONE]\n\n",
			},
		},
		Arguments:  `{"text": "it br`,
		Shapes:     shapes(),
		Unfinished: unfinished(),
		Errors: map[agent.ErrorKind][]modeltest.Reply{
			agent.KindRateLimit: {failing(429, "requests", `"rate_limit_exceeded"`), failing(429, "", "null")},
			agent.KindOverloaded: {
				failing(503, "server_error", `"slow_down"`), failing(529, "overloaded_error", "null"), failing(500, "server_overloaded", "null"),
				failing(429, "engine_overloaded_error", "null"),
			},
			agent.KindAuth: {
				failing(401, "invalid_request_error", `"invalid_api_key"`), failing(403, "", `"unsupported_country_region_territory"`),
				failing(429, "insufficient_quota", `"insufficient_quota"`), failing(402, "unknown_error", `"invalid_request_error"`),
			},
			agent.KindContextLength: {
				failing(400, "invalid_request_error", `"context_length_exceeded"`),
				failing(400, "exceed_context_size_error", "400"), // llama.cpp
				modeltest.Body(400, "application/json", // vLLM
					`{"object":"error","message":"This model's maximum context length is 4096 tokens. `+modeltest.Sentence+`","type":"BadRequestError","param":null,"code":400}`),
				modeltest.Body(429, "application/json",
					`{"error":{"message":"Request too large for gpt-4o: Limit 30000, Requested 90000. `+modeltest.Sentence+`","type":"tokens","code":"rate_limit_exceeded"}}`),
			},
			agent.KindBadRequest: {
				failing(400, "invalid_request_error", "null"), failing(404, "invalid_request_error", `"model_not_found"`), failing(422, "", "null"),
				modeltest.Body(422, "application/json", `{"detail":[{"loc":["body","messages"],"msg":"`+modeltest.Sentence+`"}]}`), // FastAPI
				modeltest.Body(404, "application/json", `{"error":"`+modeltest.Sentence+`"}`),
			},
			agent.KindModel: {failing(500, "server_error", "null"), failing(502, "", "null")},
		},
		StreamErrors: map[agent.ErrorKind][]string{
			agent.KindModel:         {streamed("server_error", "null"), `data: {"error":"` + modeltest.Sentence + "\"}\n\n"},
			agent.KindOverloaded:    {streamed("overloaded_error", "null")},
			agent.KindRateLimit:     {streamed("tokens", `"rate_limit_exceeded"`)},
			agent.KindContextLength: {streamed("invalid_request_error", `"context_length_exceeded"`)},
		},
	}
}
