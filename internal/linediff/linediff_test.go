package linediff_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/linediff"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// git applies each patch to the first text, and the second one comes out.
func TestPatch(t *testing.T) {
	assert.Empty(t, linediff.Patch("a", "x\n", "x\n"))
	git := parts.Command(t, "git", "run apt-get install git")
	for _, c := range [][3]string{
		{"a\nb\nc\n", "a\nB\nc\n", "a\nB\nc\n"}, {"a\nb\nc\n", "a\nB\nc\nd\n", "a\nB\nc\nd\n"}, {"", "a\n", "a\n"}, {"a\n", "", ""}, {"a\n\n\nb\n", "a\n\nb\n", "a\n\nb\n"},
		{"one\n", "two", "two\n"}, {"a\nb\n", "a\nb\nc\n", "a\nb\nc\n"}, {"x: 1\ny: 2\n", "y: 2\n", "y: 2\n"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "p.yaml")
		require.NoError(t, os.WriteFile(path, []byte(c[0]), 0o600))
		patch := linediff.Patch("p.yaml", c[0], c[1])
		require.NoError(t, os.WriteFile(filepath.Join(dir, "patch"), []byte(patch), 0o600))
		apply := exec.CommandContext(t.Context(), git, "apply", "--unidiff-zero", "patch")
		apply.Dir = dir
		out, err := apply.CombinedOutput()
		require.NoError(t, err, "%s\n%s", out, patch)
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, c[2], string(got), patch)
	}
}
