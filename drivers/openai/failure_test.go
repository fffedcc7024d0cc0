package openai_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/drivers/openai"
	"github.com/grapnel-go/grapnel/internal/modeltest"
)

// TestErrorTexts: what an error says as a whole. The kinds are held by TestFaults.
func TestErrorTexts(t *testing.T) {
	keyless := func(c *openai.Config) { c.APIKey = "" }
	as := func(status int, body string) modeltest.Reply {
		return modeltest.Body(status, "application/json", body).With("X-Request-Id", "req_1")
	}
	for name, c := range map[string]struct {
		reply  modeltest.Reply
		change func(*openai.Config)
		want   string
	}{
		"wrong key": {
			as(401, `{"error":{"message":"Incorrect API key provided: `+modeltest.Key+`.","type":"invalid_request_error","code":"invalid_api_key"}}`), nil,
			`asking openai model "gpt-4o": not authorized (401 invalid_api_key): Incorrect API key provided: [redacted].; ` +
				`check that the key belongs to this service and is still valid [request req_1]`,
		},
		"no key": {
			as(401, `{"detail":"Unauthorized"}`), keyless,
			`asking openai model "gpt-4o": not authorized (401): Unauthorized; no key was sent: set Config.APIKey, or api_key_env in the agent file [request req_1]`,
		},
		"no credit": {
			as(429, `{"error":{"message":"You exceeded your current quota.","type":"insufficient_quota","code":"insufficient_quota"}}`), nil,
			`asking openai model "gpt-4o": not authorized (429 insufficient_quota): You exceeded your current quota.; ` +
				`the account has no credit left or has reached its limit: see its billing page [request req_1]`,
		},
		"rate limit": {
			as(429, `{"error":{"message":"Slow down.","code":"rate_limit_exceeded"}}`).With("Retry-After-Ms", "1500").With("Retry-After", "2"), nil,
			`asking openai model "gpt-4o": too many requests (429 rate_limit_exceeded): Slow down.; retry after 1.5s [request req_1]`,
		},
		"unknown model": {
			as(404, `{"error":{"message":"model \"x\" not found","type":"api_error","param":null,"code":null}}`), nil,
			`asking openai model "gpt-4o": the request was not accepted (404 api_error): model "x" not found; ` +
				`check the model's name, and that the base URL is the part of the address before /chat/completions [request req_1]`,
		},
		"too long": {
			as(400, `{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`), nil,
			`asking openai model "gpt-4o": the messages are too long for the model (400 context_length_exceeded): ` +
				`This model's maximum context length is 8192 tokens.; send less, or use a model with a larger context [request req_1]`,
		},
		"a number for a code": {
			as(400, `{"object":"error","message":"temperature must be non-negative","type":"BadRequestError","code":400}`), nil,
			`asking openai model "gpt-4o": the request was not accepted (400 400): temperature must be non-negative [request req_1]`,
		},
		"a page": {
			modeltest.Body(502, "text/html", "<html>\n<h1>502 Bad Gateway</h1>\n"+strings.Repeat("x", 5000)), nil,
			`asking openai model "gpt-4o": the call failed (502): <html> <h1>502 Bad Gateway</h1> ` + strings.Repeat("x", 1000-len("<html> <h1>502 Bad Gateway</h1> ")) + "…",
		},
		"not a status": {
			modeltest.Reply{Status: 304}, nil,
			`asking openai model "gpt-4o": the request was not accepted (304)`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			change := c.change
			if change == nil {
				change = func(*openai.Config) {}
			}
			endpoint := modeltest.Golden(t, c.reply)
			err := newDriver(t, endpoint.URL, change).Next(t.Context(), agent.NewState(agent.UserText("hello"))).Error()
			require.EqualError(t, err, c.want)
			assert.Len(t, endpoint.Requests(), 1)
		})
	}
}

// TestNoAnswer: who is not there, and who takes too long to answer.
func TestNoAnswer(t *testing.T) {
	d, err := openai.New(openai.Config{Model: "m", BaseURL: "http://user:secret-password@127.0.0.1:1/v1"})
	require.NoError(t, err)
	err = d.Next(t.Context(), agent.NewState(agent.UserText("hello"))).Error()
	failure, ok := errors.AsType[*drivers.Error](err)
	require.True(t, ok)
	assert.Equal(t, agent.KindModel, failure.Kind)
	assert.Contains(t, err.Error(), `asking openai model "m": the call failed: dial tcp 127.0.0.1:1`)
	assert.NotContains(t, err.Error(), "secret")

	slow := modeltest.Golden(t, modeltest.Reply{Wait: make(chan struct{})})
	client := &http.Client{Transport: &http.Transport{ResponseHeaderTimeout: time.Millisecond}}
	t.Cleanup(client.CloseIdleConnections)
	err = newDriver(t, slow.URL, func(c *openai.Config) { c.HTTPClient = client }).Next(t.Context(), agent.NewState(agent.UserText("hello"))).Error()
	assert.Equal(t, agent.KindTimeout, agent.KindOf(err), "%v", err)
}

// TestContentThatIsNotText: what cannot be read is not taken for nothing.
func TestContentThatIsNotText(t *testing.T) {
	body := strings.Replace(good, `"ok"`, `7`, 1)
	endpoint := modeltest.Golden(t, modeltest.Body(200, "application/json", body))
	err := newDriver(t, endpoint.URL).Next(t.Context(), agent.NewState(agent.UserText("hello"))).Error()
	require.ErrorContains(t, err, "the reply's content is not text")
	assert.Equal(t, agent.KindBrokenStream, agent.KindOf(err))
}

// TestStreamsThatAreNone: a stream has missing or extra data.
func TestStreamsThatAreNone(t *testing.T) {
	for name, c := range map[string]struct{ body, says string }{
		"nothing":          {"data: [DONE]\n\n", "the stream was empty"},
		"no end":           {"data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n", "the stream ended before the reply was complete"},
		"a number":         {"data: {\"choices\":[{\"delta\":{\"content\":7}}]}\n\n", "the reply's content is not text"},
		"a nameless call":  {"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"arguments\":\"{}\"}}]}}]}\n\ndata: [DONE]\n\n", "tool call 0 of the reply has no name"},
		"another choice":   {"data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: [DONE]\n\n", "the stream was empty"},
		"an error as text": {"data: {\"error\":\"out of memory\"}\n\n", "the call failed: out of memory"},
	} {
		t.Run(name, func(t *testing.T) {
			endpoint := modeltest.Golden(t, modeltest.SSE(c.body))
			err := newDriver(t, endpoint.URL).Stream(t.Context(), agent.NewState(agent.UserText("hello")), func(agent.Delta) {}).Error()
			require.ErrorContains(t, err, c.says)
		})
	}
}

// TestErrorsInside: errors in answers with the status 200, in the forms of this API. What gateways of all APIs say is
// held by TestFaults.
func TestErrorsInside(t *testing.T) {
	const whole = `"id":"1","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]`
	for name, c := range map[string]struct {
		body, message string
		kind          agent.ErrorKind
	}{
		"a refusal":          {`{"error":{"message":"No such model.","type":"invalid_request_error","code":"model_not_found"}}`, "No such model.", agent.KindBadRequest},
		"a key":              {`{"error":{"message":"Wrong.","type":"invalid_request_error","code":"invalid_api_key"}}`, "Wrong.", agent.KindAuth},
		"a full context":     {`{"error":{"message":"This model's maximum context length is 10.","code":400}}`, "maximum context length", agent.KindContextLength},
		"vLLM":               {`{"object":"error","message":"It is too hot.","type":"BadRequestError","code":400}`, "It is too hot.", agent.KindBadRequest},
		"Google":             {`[{"error":{"code":429,"message":"Slow down.","status":"RESOURCE_EXHAUSTED"}}]`, "Slow down.", agent.KindRateLimit},
		"within the choice":  {`{"id":"1","choices":[{"error":{"code":502,"message":"It hung up."},"message":{"content":""},"finish_reason":"error"}]}`, "It hung up.", agent.KindModel},
		"beside the choice":  {`{"error":{"code":503,"message":"Later."},` + whole + `}`, "Later.", agent.KindOverloaded},
		"no error, null":     {`{"error":null,` + whole + `}`, "", ""},
		"no error, empty":    {`{"error":{},` + whole + `}`, "", ""},
		"no error, no words": {`{"error":"",` + whole + `}`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			endpoint := modeltest.Golden(t, modeltest.Body(http.StatusOK, "application/json", c.body))
			step, err := newDriver(t, endpoint.URL).Next(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
			if c.kind == "" {
				require.NoError(t, err)
				assert.Equal(t, "hi", step.Message.Text())
				return
			}
			require.Error(t, err)
			assert.Equal(t, c.kind, agent.KindOf(err), "%v", err)
			assert.Contains(t, err.Error(), c.message)
		})
	}
	t.Run("null in a stream", func(t *testing.T) {
		endpoint := modeltest.Golden(t, modeltest.SSE(`data: {"error":null,"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n"))
		step, err := newDriver(t, endpoint.URL).Stream(t.Context(), agent.NewState(agent.UserText("hello")), func(agent.Delta) {}).Get()
		require.NoError(t, err)
		assert.Equal(t, "hi", step.Message.Text())
	})
}
