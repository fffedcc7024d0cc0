package modeltest_test

import (
	"net/http"
	"testing"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/modeltest"
)

func TestFaultsOfChat(t *testing.T) {
	modeltest.TestFaults(t, chatService(func(c chat) agent.Driver { return c }))
}

// chatService returns a chat completions service whose driver is changed by make.
func chatService(make func(chat) agent.Driver) modeltest.Service {
	return modeltest.Service{
		New: func(_ *testing.T, baseURL string, client *http.Client) agent.Driver {
			staying := *client
			staying.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			return make(chat{url: baseURL + "/v1", key: key, client: &staying})
		},
		Text: "Hello there.",
		Whole: modeltest.Exchange{
			Body: `{"id":"1","model":"small","choices":[{"index":0,"message":{"role":"assistant","content":"Hello there."},` +
				`"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":3}}`,
			Frames: []string{
				`data: {"id":"1","model":"small","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}` + "\n\n",
				`data: {"id":"1","model":"small","choices":[{"index":0,"delta":{"content":"Hello there."}}]}` + "\n\n",
				`data: {"id":"1","model":"small","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n",
				`data: {"id":"1","model":"small","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3}}` + "\n\n",
				"data: [DONE]\n\n",
			},
		},
		Arguments: `{"text":"it bre`,
		Call: modeltest.Exchange{
			Body: `{"id":"1","model":"small","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[` +
				`{"id":"call_a","type":"function","function":{"name":"echo","arguments":"{\"text\":\"it bre"}}]},"finish_reason":"tool_calls"}]}`,
			Frames: []string{
				`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_a","function":{"name":"echo","arguments":""}}]}}]}` + "\n\n",
				`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"text\":"}}]}}]}` + "\n\n",
				`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"it bre"}}]}}]}` + "\n\n",
				`data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\n",
				"data: [DONE]\n\n",
			},
		},
		Errors: map[agent.ErrorKind][]modeltest.Reply{
			agent.KindRateLimit:     {chatError(429, "rate_limit_exceeded")},
			agent.KindOverloaded:    {chatError(503, "server_is_overloaded"), chatError(500, "server_is_overloaded")},
			agent.KindAuth:          {chatError(401, "invalid_api_key"), chatError(403, "unsupported_country")},
			agent.KindContextLength: {chatError(400, "context_length_exceeded")},
			agent.KindBadRequest:    {chatError(400, "invalid_value"), chatError(404, "model_not_found")},
			agent.KindModel:         {chatError(500, "server_error")},
		},
		StreamErrors: map[agent.ErrorKind][]string{
			agent.KindOverloaded: {`data: {"error":{"message":"` + modeltest.Sentence + `","code":"server_is_overloaded"}}` + "\n\n"},
		},
	}
}

func chatError(status int, code string) modeltest.Reply {
	return modeltest.Body(status, "application/json", `{"error":{"message":"`+modeltest.Sentence+`","type":"error","code":"`+code+`"}}`)
}

func TestChatBeforeTheMockServer(t *testing.T) {
	modeltest.TestMock(t, chatService(func(c chat) agent.Driver { return c }))
}
