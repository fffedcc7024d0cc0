package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/evasion"
	"github.com/grapnel-go/grapnel/internal/exampletest"
)

func TestReadme(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("OPENAI_BASE_URL", "")
	var out bytes.Buffer
	require.NoError(t, sayHello(t.Context(), &out))
	exampletest.Readme(t, out.String())
}

// The model is the one of the server that OPENAI_BASE_URL names.
func TestServerOfYourOwn(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/v1/chat/completions", r.URL.Path)
		_, _ = w.Write([]byte(`{"choices":[{"message":{"role":"assistant","content":"Hello to you!"},"finish_reason":"stop"}]}`))
	}))
	defer server.Close()
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("OPENAI_BASE_URL", server.URL+"/v1")
	var out bytes.Buffer
	require.NoError(t, sayHello(t.Context(), &out))
	assert.Equal(t, "user: Say hello to ann@example.com and to bob@example.org.\nassistant: Hello to you!\n", out.String())
}

func TestOnlyKnownHolds(t *testing.T) {
	t.Parallel()
	evasion.Guard{
		Hooks: []hooks.Hook{onlyKnown}, Tool: "send_mail", Argument: "to", With: map[string]any{"text": "Hello!"},
		Allowed:   addressBook,
		Forbidden: []string{"bob@example.org", "ann@example.com, bob@example.org", "Ann@example.com", "ann@example.com ", ""},
	}.Hold(t)
}
