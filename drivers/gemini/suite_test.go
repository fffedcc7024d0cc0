package gemini_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/drivers"
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
	Shapes:     shapes(),
	Unfinished: unfinished(),
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

func TestShapes(t *testing.T) { modeltest.TestShapes(t, service) }

// TestFaultsOfVertex: the token is kept as secret as a key.
func TestFaultsOfVertex(t *testing.T) {
	vertex := service
	vertex.New = func(t *testing.T, baseURL string, client *http.Client) agent.Driver {
		t.Helper()
		return onVertex(t, baseURL, client)
	}
	modeltest.TestFaults(t, vertex)
}

// onVertex makes a driver for Vertex AI at an address, whose token is modeltest.Key.
func onVertex(t *testing.T, baseURL string, client *http.Client) *gemini.Driver {
	t.Helper()
	d, err := gemini.New(gemini.Config{Model: "gemini-3.8-flash", BaseURL: baseURL, HTTPClient: client, Vertex: &drivers.Vertex{
		Project: "my-project", Location: "europe-west4", Token: func(context.Context) (string, error) { return modeltest.Key, nil },
	}})
	require.NoError(t, err)
	return d
}

// TestVertex: where Vertex AI is asked, and for what.
func TestVertex(t *testing.T) {
	t.Setenv("GEMINI_API_KEY", "env")
	t.Setenv("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:1")
	count := modeltest.Body(200, "application/json", `{"totalTokens": 7}`)
	whole := modeltest.Body(200, "application/json", service.Whole.Body)
	endpoint := modeltest.Golden(t, whole, modeltest.SSE(service.Whole.Frames...), count, whole)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	d := onVertex(t, endpoint.URL, client)
	s := agent.NewState(agent.UserText("hello")).WithRequest(agent.Request{Instructions: "Be brief.", Options: agent.Options{}.With("labels", map[string]string{"a": "b"})})
	step, err := d.Next(t.Context(), s).Get()
	require.NoError(t, err)
	assert.Equal(t, mo.None[float64](), step.Usage.Cost, "the price list is that of the Gemini API")
	_, err = d.Stream(t.Context(), s, func(agent.Delta) {}).Get()
	require.NoError(t, err)
	tokens, err := d.CountTokens(t.Context(), s)
	require.NoError(t, err)
	assert.Equal(t, int64(7), tokens)
	_, err = d.Next(t.Context(), s.WithRequest(agent.Request{Model: "projects/p/locations/l/endpoints/123"})).Get()
	require.NoError(t, err)
	const models = "/v1/projects/my-project/locations/europe-west4/publishers/google/models/gemini-3.8-flash"
	for i, want := range []string{models + ":generateContent", models + ":streamGenerateContent", models + ":countTokens", "/v1/projects/p/locations/l/endpoints/123:generateContent"} {
		r := endpoint.Requests()[i]
		assert.Equal(t, want, r.Path)
		assert.Equal(t, "Bearer "+modeltest.Key, r.Header.Get("Authorization"))
		assert.Empty(t, r.Header.Get("X-Goog-Api-Key"))
	}
	assert.Equal(t, "alt=sse", endpoint.Requests()[1].Query)
	assert.Contains(t, string(endpoint.Requests()[0].Body), `"labels":{"a":"b"}`)
	assert.JSONEq(t, `{"contents":[{"role":"user","parts":[{"text":"hello"}]}],"systemInstruction":{"parts":[{"text":"Be brief."}]}}`,
		string(endpoint.Requests()[2].Body))
	assert.Equal(t, "gcp.vertex_ai", d.Features().Provider)
	assert.False(t, d.Features().Priced)

	_, err = gemini.New(gemini.Config{Model: "m", Vertex: &drivers.Vertex{Project: "p", Location: "eu"}})
	require.EqualError(t, err, "making a gemini driver: no token: set Vertex.Token")
}

// TestNoToken: where there is no token, the service is not asked.
func TestNoToken(t *testing.T) {
	d, err := gemini.New(gemini.Config{Model: "m", BaseURL: "http://127.0.0.1:1", Vertex: &drivers.Vertex{
		Project: "p", Location: "eu", Token: func(context.Context) (string, error) { return "", errors.New("log in first") },
	}})
	require.NoError(t, err)
	err = d.Next(t.Context(), agent.NewState(agent.UserText("hello"))).Error()
	require.ErrorContains(t, err, "not authorized: getting a token: log in first")
	assert.Equal(t, agent.KindAuth, agent.KindOf(err))
}

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
