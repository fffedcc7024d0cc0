package pipeline

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable"
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

// The secret of callbacks stays the same, and is not where an agent works.
func TestCallbackKey(t *testing.T) {
	state, dir := t.TempDir(), t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	session := func(key string) *sessionRun {
		return &sessionRun{sessionLook: sessionLook{dir: dir}, about: durable.Run{Demands: map[string]string{sessionDemand: key}}}
	}
	first, err := session("one").callbackKey()
	require.NoError(t, err)
	assert.GreaterOrEqual(t, len(first), 26)
	again, err := session("one").callbackKey()
	require.NoError(t, err)
	assert.Equal(t, first, again)
	other, err := session("two").callbackKey()
	require.NoError(t, err)
	assert.NotEqual(t, first, other)
	info, err := os.Stat(filepath.Join(state, "grapnel", "callbacks", "one"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}
