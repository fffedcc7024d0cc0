package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// scripts/apidiff is tried in a repository of one package, since the real one has no tag yet.
func TestAPIDiff(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	run := func(name string, args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	git := func(args ...string) {
		t.Helper()
		out, err := run("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
		require.NoError(t, err, out)
	}
	compare := func(passes bool, says string) {
		t.Helper()
		out, err := run("bash", "scripts/apidiff")
		assert.Contains(t, out, says)
		assert.Equal(t, passes, err == nil, out)
	}

	for _, name := range []string{"scripts/apidiff", "tools/go.mod", "tools/go.sum"} {
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
		require.NoError(t, err)
		write(name, string(text))
	}
	write("go.mod", "module example.com/m\n\ngo 1.26.0\n")
	write("internal/version/version.go", "package version\n\nconst Next = \"0.1.0\"\n")
	write("agent/agent.go", "package agent\n\nfunc Stop() {}\n")
	write("CHANGELOG.md", "# Changelog\n\n## 0.1.0\n\n- `agent`: new\n")
	git("init", "-q")
	git("add", ".")
	git("commit", "-qm", "first")
	compare(true, "no release to compare with: there is no tag v*")
	git("tag", "-am", "v0.1.0", "v0.1.0")
	compare(true, "nothing since v0.1.0 breaks programs")

	write("agent/agent.go", "package agent\n\nfunc Halt() {}\n")
	compare(false, "Next in internal/version is still 0.1.0")
	write("internal/version/version.go", "package version\n\nconst Next = \"0.1.1\"\n")
	compare(false, "v0.1.1 is a patch release of v0.1.0: it must not break programs")
	write("internal/version/version.go", "package version\n\nconst Next = \"0.2.0\"\n")
	write("CHANGELOG.md", "# Changelog\n\n## 0.2.0\n\n## 0.1.0\n\n- `agent`: new\n")
	compare(false, "CHANGELOG.md, 0.2.0: no line names `agent`")
	write("CHANGELOG.md", "# Changelog\n\n## 0.2.0\n\n- `agent`: Stop is now Halt\n\n## 0.1.0\n\n- `agent`: new\n")
	compare(true, "Stop: removed")
}
