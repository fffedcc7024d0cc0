package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Callbacks arrive at the first port that a hook names.
func TestCallbackPort(t *testing.T) {
	for hook, want := range map[string]int{
		"{type: shell, command: 'true'}":                                                    8765,
		"{type: webhook, url: 'https://example.com/ask', await: true}":                      8765,
		"{type: webhook, url: 'https://example.com/ask', await: true, callback_port: 9123}": 9123,
		"{type: webhook, url: 'https://example.com/tell', await: false}":                    8765,
	} {
		path := filepath.Join(t.TempDir(), "p.yaml")
		require.NoError(t, os.WriteFile(path, []byte("name: p\nstages: [{name: a, command: {argv: ['true']}, termination: {type: fixed, iterations: 1}}]\n"+
			"hooks: {on_iteration_complete: ["+hook+"]}\n"), 0o600))
		p, err := loadPipeline(path)
		require.NoError(t, err)
		port, err := callbackPort(p)
		require.NoError(t, err)
		assert.Equal(t, want, port, hook)
	}
}
