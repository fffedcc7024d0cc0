package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
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
	require.NoError(t, printRun(t.Context(), &out))
	exampletest.Readme(t, out.String())
}

// OPENAI_BASE_URL names the server of the model.
func TestServerOfYourOwn(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/v1/chat/completions", r.URL.Path)
		_, _ = w.Write([]byte(`{"choices":[{"message":{"role":"assistant","content":"Hello to you!"},"finish_reason":"stop"}]}`))
	}))
	defer server.Close()
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("OPENAI_BASE_URL", server.URL+"/v1")
	var out bytes.Buffer
	require.NoError(t, printRun(t.Context(), &out))
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

// Every line of Go in the module's README is a line of this program.
func TestReadmeOfTheModuleIsThisProgram(t *testing.T) {
	program, err := os.ReadFile("hello.go")
	require.NoError(t, err)
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	blocks := strings.Split(string(readme), "```go\n")[1:]
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		code, _, _ := strings.Cut(block, "```")
		for line := range strings.Lines(code) {
			assert.Contains(t, string(program), line)
		}
	}
	assert.LessOrEqual(t, strings.Count(string(readme), "\n"), 130, "the README is short")
}
