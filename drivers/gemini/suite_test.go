package gemini_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/drivers/gemini"
	"github.com/grapnel-go/grapnel/internal/modeltest"
)

// service is the Gemini API in the bytes of its protocol.
var service = modeltest.Service{
	New: func(t *testing.T, baseURL string, client *http.Client) agent.Driver {
		t.Helper()
		d, err := gemini.New(gemini.Config{Model: "gemini-3.8-flash", APIKey: modeltest.Key, BaseURL: baseURL, HTTPClient: client})
		require.NoError(t, err)
		return d
	},
	Text: "Hello there.",
	Whole: modeltest.Exchange{
		Body: `{
  "candidates": [{"content": {"parts": [{"text": "Hello there."}], "role": "model"}, "finishReason": "STOP", "index": 0}],
  "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3, "totalTokenCount": 12},
  "modelVersion": "gemini-3.8-flash",
  "responseId": "r1"
}`,
		Frames: []string{
			`data: {"candidates": [{"content": {"parts": [{"text": ""}],"role": "model"},"index": 0}],"modelVersion": "gemini-3.8-flash","responseId": "r1"}` + "\n\n",
			`data: {"candidates": [{"content": {"parts": [{"text": "Hello there."}],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 9},"modelVersion": "gemini-3.8-flash","responseId": "r1"}` + "\n\n",
			`data: {"candidates": [{"content": {"parts": [{"text": ""}],"role": "model"},"finishReason": "STOP","index": 0}],"usageMetadata": {"promptTokenCount": 9,"candidatesTokenCount": 3,"totalTokenCount": 12},"modelVersion": "gemini-3.8-flash","responseId": "r1"}` + "\n\n",
		},
	},
	Errors: map[agent.ErrorKind][]modeltest.Reply{
		agent.KindRateLimit: {refusal(429, "RESOURCE_EXHAUSTED", modeltest.Sentence, "")},
		agent.KindOverloaded: {
			refusal(503, "UNAVAILABLE", "The model is overloaded. "+modeltest.Sentence, ""),
			{Status: 503, Header: http.Header{"Content-Type": {"application/json"}}, Frames: []string{
				`[{"error": {"code": 503, "message": "` + modeltest.Sentence + `", "status": "UNAVAILABLE"}}]`,
			}},
		},
		agent.KindAuth: {
			refusal(401, "UNAUTHENTICATED", modeltest.Sentence, ""),
			refusal(403, "PERMISSION_DENIED", modeltest.Sentence, ""),
			refusal(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key. "+modeltest.Sentence, ""),
			refusal(400, "INVALID_ARGUMENT", modeltest.Sentence,
				`{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"}`),
		},
		agent.KindContextLength: {
			refusal(400, "INVALID_ARGUMENT", "The input token count (1091639) exceeds the maximum number of tokens allowed (1048576). "+modeltest.Sentence, ""),
		},
		agent.KindBadRequest: {
			refusal(400, "INVALID_ARGUMENT", "Function call is missing a thought_signature. "+modeltest.Sentence, ""),
			refusal(404, "NOT_FOUND", modeltest.Sentence, ""),
			refusal(307, "", modeltest.Sentence, "").With("Location", "/elsewhere"),
		},
		agent.KindModel:   {refusal(500, "INTERNAL", modeltest.Sentence, "")},
		agent.KindTimeout: {refusal(504, "DEADLINE_EXCEEDED", modeltest.Sentence, "")},
	},
	StreamErrors: map[agent.ErrorKind][]string{
		agent.KindOverloaded: {
			`data: {"error": {"code": 503, "message": "` + modeltest.Sentence + `", "status": "UNAVAILABLE"}}` + "\n\n",
			"{\n  \"error\": {\n    \"code\": 503,\n    \"message\": \"" + modeltest.Sentence + "\",\n    \"status\": \"UNAVAILABLE\"\n  }\n}\n\n",
		},
		agent.KindRateLimit: {`data: {"error": {"message": "` + modeltest.Sentence + `", "status": "RESOURCE_EXHAUSTED"}}` + "\n\n"},
	},
}

func refusal(status int, state, message, details string) modeltest.Reply {
	return modeltest.Body(status, "application/json; charset=UTF-8", fmt.Sprintf(
		`{"error": {"code": %d, "message": %q, "status": %q, "details": [%s]}}`, status, message, state, details))
}

func TestFaults(t *testing.T) { modeltest.TestFaults(t, service) }

func TestMock(t *testing.T) { modeltest.TestMock(t, service) }

func TestModel(t *testing.T) {
	mock := modeltest.StartMock(t)
	agenttest.TestModel(t, agenttest.Model{
		ObjectArguments: true,
		New: func(t *testing.T, turns ...agent.Step) agent.Driver {
			t.Helper()
			client := &http.Client{Transport: &http.Transport{}}
			t.Cleanup(client.CloseIdleConnections)
			return service.New(t, mock.Play(t, turns...).URL, client)
		},
	})
}
