package claudehooks_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action/claudehooks"
)

var update = flag.Bool("update", false, "write the golden files")

// compare compares a text with a golden file.
func compare(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "lint", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

func TestLint(t *testing.T) {
	warnings, err := claudehooks.Check([]string{"testdata/lint/settings.json"}, claudehooks.Options{})
	require.NoError(t, err)
	var lines strings.Builder
	for _, w := range warnings {
		lines.WriteString(w.String() + "\n")
	}
	compare(t, "warnings.txt", lines.String())
}

// Mistakes that keep a hook from running are errors, and warnings if failures do not block.
func TestMistakes(t *testing.T) {
	_, err := claudehooks.Check([]string{"testdata/lint/wrong.json"}, claudehooks.Options{})
	require.Error(t, err)
	compare(t, "errors.txt", err.Error()+"\n")
	_, err = claudehooks.Check([]string{"testdata/lint/wrong.json"}, claudehooks.Options{Compat: true})
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "agent")
}

func TestIsSettings(t *testing.T) {
	for text, want := range map[string]bool{
		settings("PreToolUse", "", handler("true")): true, `{"hooks":{}}`: true, `{"policy":"x","hooks":{"PreToolUse":[{"id":"x"}]}}`: false,
		`{"hooks":{"PreToolUse":[{"id":"x"}]}}`: false, `[]`: false, `{"model":"x"}`: false,
	} {
		path := filepath.Join(t.TempDir(), "settings.json")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		assert.Equal(t, want, claudehooks.IsSettings(path), text)
	}
}

// Approval covers the file and the scripts that it names.
func TestTrust(t *testing.T) {
	dir := t.TempDir()
	path, script := filepath.Join(dir, "settings.json"), filepath.Join(dir, "guard.sh")
	require.NoError(t, os.WriteFile(script, []byte("exit 0\n"), 0o600))
	require.NoError(t, os.WriteFile(path, []byte(settings("PreToolUse", "", handler(`sh "$CLAUDE_PROJECT_DIR"/guard.sh`))), 0o600))
	load := func(approved string) string {
		set, err := claudehooks.Load([]string{path}, claudehooks.Options{Dir: dir, Trusted: func(_, digest string) bool { return digest == approved }})
		if err == nil {
			require.NoError(t, set.Close(t.Context()))
			return ""
		}
		var untrusted *claudehooks.UntrustedError
		require.ErrorAs(t, err, &untrusted)
		return untrusted.Digest
	}
	first := load("")
	assert.NotEmpty(t, first)
	assert.Empty(t, load(first))
	require.NoError(t, os.WriteFile(script, []byte("exit 2\n"), 0o600))
	assert.NotEqual(t, first, load(first))

	// A script that changes while the agent runs does not run, in either mode.
	w := newWorld(t, settings("PreToolUse", "", handler("sh no-push.sh")), claudehooks.Options{})
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "no-push.sh"), []byte("touch ran\n"), 0o600))
	assert.Contains(t, answer(w.run("ls")), "has changed")
	assert.Empty(t, w.ran)
	assert.NoFileExists(t, filepath.Join(w.dir, "ran"))

	// A log that a command writes is no script.
	log := filepath.Join(t.TempDir(), "log.txt")
	require.NoError(t, os.WriteFile(log, nil, 0o600))
	w = newWorld(t, settings("PreToolUse", "", handler("cat >> "+log)), claudehooks.Options{})
	w.run("ls")
	w.run("ls")
	assert.Len(t, w.ran, 2)

	// The user's own settings need no approval.
	t.Setenv("HOME", dir)
	own := filepath.Join(dir, ".claude", "settings.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(own), 0o700))
	require.NoError(t, os.Rename(path, own))
	set, err := claudehooks.Load([]string{own}, claudehooks.Options{Dir: dir, Trusted: func(string, string) bool { return false }})
	require.NoError(t, err)
	require.NoError(t, set.Close(t.Context()))
}
