package agents

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/agentfile"
	"github.com/grapnel-go/grapnel/registry"
)

// setCloud sets the variables of clouds, and makes all others of them empty.
func setCloud(t *testing.T, variables map[string]string) {
	t.Helper()
	for _, name := range []string{
		azureEndpoint, azureKey, azureToken, azureTokenCommand, azureVersion, vertexProject, vertexLocation, vertexBaseURL, vertexToken,
		vertexTokenCommand, "OPENAI_API_KEY", "OPENAI_BASE_URL",
	} {
		t.Setenv(name, "")
	}
	for name, value := range variables {
		t.Setenv(name, value)
	}
}

// askedFor is a request that a model service got.
type askedFor struct {
	uri    string
	header http.Header
	body   map[string]any
}

// modelService answers each request with a status of 401 that repeats what it was sent as a secret.
func modelService(t *testing.T) (url string, asked chan askedFor) {
	t.Helper()
	asked = make(chan askedFor, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := askedFor{uri: r.URL.RequestURI(), header: r.Header}
		if text, err := io.ReadAll(r.Body); assert.NoError(t, err) {
			assert.NoError(t, json.Unmarshal(text, &a.body))
		}
		asked <- a
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error": {"message": "no: `+r.Header.Get("Authorization")+r.Header.Get("Api-Key")+`"}}`)
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}

// Where a model in a cloud is asked, with what, and that no error shows it.
func TestClouds(t *testing.T) {
	url, asked := modelService(t)
	google := map[string]string{vertexProject: "proj", vertexLocation: "europe-west4", vertexBaseURL: url}
	for name, tc := range map[string]struct {
		model       string
		environment map[string]string
		definition  registry.Definition
		uri         string
		key         string // api-key
		bearer      string
		body        map[string]any // members that are compared
	}{
		"Azure, v1": {
			"azure/my-gpt", map[string]string{azureEndpoint: url + "/", azureKey: "secret-1"}, registry.Definition{},
			"/openai/v1/chat/completions", "secret-1", "", map[string]any{"model": "my-gpt"},
		},
		"Azure, an endpoint with its path": {
			"azure/my-gpt", map[string]string{azureEndpoint: url + "/openai/v1/", azureKey: "secret-1"}, registry.Definition{},
			"/openai/v1/chat/completions", "secret-1", "", nil,
		},
		"Azure, a dated version": {
			"azure/my-gpt", map[string]string{azureEndpoint: url, azureKey: "secret-1", azureVersion: "2024-10-21"}, registry.Definition{},
			"/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21", "secret-1", "", nil,
		},
		"Azure, a version of v1": {
			"azure/my-gpt", map[string]string{azureEndpoint: url, azureKey: "secret-1", azureVersion: "preview"}, registry.Definition{},
			"/openai/v1/chat/completions?api-version=preview", "secret-1", "", nil,
		},
		"Azure, a token before a key": {
			"azure/my-gpt", map[string]string{azureEndpoint: url, azureKey: "secret-1", azureToken: "secret-2"}, registry.Definition{},
			"/openai/v1/chat/completions", "", "secret-2", nil,
		},
		"Azure, a command": {
			"azure/my-gpt", map[string]string{azureEndpoint: url, azureTokenCommand: "echo  secret-3"}, registry.Definition{},
			"/openai/v1/chat/completions", "", "secret-3", nil,
		},
		"Azure, the Responses API": {
			"azure-responses/my-gpt", map[string]string{azureEndpoint: url, azureKey: "secret-1"}, registry.Definition{},
			"/openai/v1/responses", "secret-1", "", map[string]any{"model": "my-gpt"},
		},
		"Azure, an address of one's own": {
			"azure/my-gpt", map[string]string{azureEndpoint: "http://never.invalid", azureKey: "secret-1", azureToken: "secret-2"},
			registry.Definition{BaseURL: registry.URL(url)},
			"/openai/v1/chat/completions", "", "", nil,
		},
		"Azure, a key of one's own": {
			"azure/my-gpt", map[string]string{azureKey: "secret-1", azureToken: "secret-2", "TEST_KEY": "secret-4"},
			registry.Definition{BaseURL: registry.URL(url), APIKeyEnv: "TEST_KEY"},
			"/openai/v1/chat/completions", "secret-4", "", nil,
		},
		"Vertex, Gemini": {
			"vertex/gemini-3.8-flash", with(google, vertexToken, "secret-5"), registry.Definition{},
			"/v1/projects/proj/locations/europe-west4/publishers/google/models/gemini-3.8-flash:generateContent", "", "secret-5",
			map[string]any{"contents": []any{map[string]any{"role": "user", "parts": []any{map[string]any{"text": "hello"}}}}},
		},
		"Vertex, Claude": {
			"vertex/claude-sonnet-4-5@20250929", with(google, vertexToken, "secret-5"), registry.Definition{},
			"/v1/projects/proj/locations/europe-west4/publishers/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict", "", "secret-5",
			map[string]any{"anthropic_version": "vertex-2023-10-16", "model": nil},
		},
		"Vertex, a tuned model": {
			"vertex/projects/proj/locations/us/endpoints/7", with(google, vertexToken, "secret-5"), registry.Definition{},
			"/v1/projects/proj/locations/us/endpoints/7:generateContent", "", "secret-5", nil,
		},
		"Vertex, a command of words": {
			"vertex/gemini-x", with(google, vertexTokenCommand, `["echo", "secret-6"]`), registry.Definition{},
			"/v1/projects/proj/locations/europe-west4/publishers/google/models/gemini-x:generateContent", "", "secret-6", nil,
		},
		"Vertex, a token of one's own": {
			"vertex/gemini-x", with(google, "TEST_KEY", "secret-4"),
			registry.Definition{BaseURL: registry.URL(url + "/mine"), APIKeyEnv: "TEST_KEY"},
			"/mine/v1/projects/proj/locations/europe-west4/publishers/google/models/gemini-x:generateContent", "", "secret-4", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			setCloud(t, tc.environment)
			var m agentfile.Model
			require.NoError(t, m.Set(tc.model))
			d, err := newDriver(m, tc.definition)
			require.NoError(t, err)
			_, err = d.Next(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
			require.Error(t, err)
			assert.NotContains(t, err.Error(), "secret-", "the service repeats it")
			require.Len(t, asked, 1, "%s", err)
			got := <-asked
			assert.Equal(t, tc.uri, got.uri)
			assert.Equal(t, tc.key, got.header.Get("Api-Key"))
			assert.Equal(t, tc.bearer, strings.TrimPrefix(got.header.Get("Authorization"), "Bearer "))
			for member, want := range tc.body {
				assert.Equal(t, want, got.body[member], member)
			}
		})
	}
}

// What is missing is named, with what to do about it.
func TestCloudsWithoutSettings(t *testing.T) {
	for name, tc := range map[string]struct {
		model       string
		environment map[string]string
		definition  registry.Definition
		want        []string
	}{
		"Azure, nothing": {"azure/x", nil, registry.Definition{}, []string{
			"asking azure/x: AZURE_OPENAI_ENDPOINT is not set: set it to the address", "AZURE_OPENAI_API_KEY is not set: set it to a key",
			"AZURE_OPENAI_AD_TOKEN", "GRAPNEL_AZURE_TOKEN_COMMAND",
		}},
		"Azure, a broken command": {
			"azure/x", map[string]string{azureEndpoint: "https://x.openai.azure.com", azureTokenCommand: `["az", secret-`}, registry.Definition{},
			[]string{"GRAPNEL_AZURE_TOKEN_COMMAND: expected a command"},
		},
		"Vertex, nothing": {"vertex/gemini-x", nil, registry.Definition{}, []string{
			"asking vertex/gemini-x: GOOGLE_CLOUD_PROJECT is not set: set it to the id", "GOOGLE_CLOUD_LOCATION is not set: set it to a region",
			"GRAPNEL_VERTEX_TOKEN_COMMAND is not set: set it to a command that prints a token", "GOOGLE_OAUTH_ACCESS_TOKEN",
		}},
		"Vertex, an address without a token": {
			"vertex/gemini-x", map[string]string{vertexProject: "p", vertexLocation: "us", vertexToken: "secret-1"},
			registry.Definition{BaseURL: "http://127.0.0.1:1"}, []string{"name a variable with api_key_env"},
		},
		"Vertex, another model": {
			"vertex/llama-4", map[string]string{vertexProject: "p", vertexLocation: "us", vertexToken: "secret-1"}, registry.Definition{},
			[]string{"asking vertex/llama-4: not a Gemini or Claude model"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			setCloud(t, tc.environment)
			var m agentfile.Model
			require.NoError(t, m.Set(tc.model))
			_, err := newDriver(m, tc.definition)
			require.Error(t, err)
			for _, want := range tc.want {
				assert.ErrorContains(t, err, want)
			}
			assert.NotContains(t, err.Error(), "secret-")
		})
	}
}

// A command is run once while its token is valid, and its errors show nothing of what it writes.
func TestTokenCommand(t *testing.T) {
	dir := t.TempDir()
	count := []string{"sh", "-c", `echo x >> "$0/runs"; echo "token-$(wc -l < "$0/runs" | tr -d ' ')"`, dir}
	kept, fresh := commandToken("V", count, time.Hour), commandToken("V", count, 0)
	for _, tc := range []struct {
		token func(context.Context) (string, error)
		want  string
	}{{kept, "token-1"}, {kept, "token-1"}, {fresh, "token-2"}, {fresh, "token-3"}, {kept, "token-1"}} {
		got, err := tc.token(t.Context())
		require.NoError(t, err)
		assert.Equal(t, tc.want, got)
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no program":    {[]string{"no-such-program"}, "no-such-program"},
		"it fails":      {[]string{"sh", "-c", "echo secret-1; echo secret-2 >&2; exit 3"}, "exit status 3: run it by hand to see why"},
		"several words": {[]string{"echo", "secret-1 and more"}, "expected a token and nothing else"},
		"nothing":       {[]string{"true"}, "expected a token and nothing else"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := commandToken("THE_VARIABLE", tc.args, time.Hour)(t.Context())
			require.ErrorContains(t, err, "running the command of THE_VARIABLE")
			assert.ErrorContains(t, err, tc.want)
			assert.NotContains(t, err.Error(), "secret-")
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := commandToken("V", []string{"echo", "x"}, time.Hour)(ctx)
	assert.ErrorIs(t, err, context.Canceled)
}

// with returns a copy of m with one value more.
func with(m map[string]string, name, value string) map[string]string {
	all := maps.Clone(m)
	all[name] = value
	return all
}
