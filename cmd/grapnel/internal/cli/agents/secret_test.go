package agents

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A secret that a user wrote into a file in the hope that it belongs there is
// not in the error, which may end up in a log.
func TestErrorsShowNoSecret(t *testing.T) {
	for name, text := range map[string]string{
		"a key of its own":       "api_key: sk-hidden\n",
		"the value for the name": "model: openai/x\napi_key_env: sk-hidden\n",
		"beside another mistake": "{api_key: sk-hidden, foo: 1, bar: 2}\n",
		"a password":             "base_url: http://me:sk-hidden@example.com/v1\n",
		"variables with values":  "mcp:\n  a: {command: [x], env: {TOKEN: sk-hidden}}\n",
		"variables below":        "mcp:\n  a:\n    command: [x]\n    env:\n      TOKEN: sk-hidden\n",
		"a value in a list":      "mcp:\n  a: {command: [x], env: [sk-hidden]}\n",
		"headers":                "mcp:\n  a: {url: \"http://x/y\", headers: {Authorization: Bearer sk-hidden}}\n",
		"of the shell":           "tools: [shell: {env: [TOKEN=sk-hidden]}]\n",
	} {
		_, err := NewRegistry().Parse("a.yaml", []byte(text))
		require.Error(t, err, name)
		assert.NotContains(t, err.Error(), "hidden", name)
		assert.Contains(t, err.Error(), "…", name)
	}
}

// The mark that some editors put before a text is no part of it.
func TestByteOrderMark(t *testing.T) {
	for _, path := range []string{"a.yaml", "a.json"} {
		file, err := NewRegistry().Parse(path, []byte("\ufeff{\"name\": \"x\"}"))
		require.NoError(t, err, path)
		assert.Equal(t, "x", file.Name)
	}
}
