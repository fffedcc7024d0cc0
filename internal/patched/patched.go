// Package patched builds other modules' programs with a small patch, so that tests can show what it takes to guard an agent
// that someone else wrote.
package patched

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/parts"
)

// Build builds a program of a module that the test's module requires, with a patch, and returns the path of the executable.
// Added and removed are how many lines the patch may add and remove. It may import what the test's module has.
func Build(t testing.TB, program, patch string, added, removed int) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds a program: run the test without -short")
	}
	git := parts.Command(t, "git", "install Debian's package git")
	found, err := runIn(t, ".", "go", "list", "-f", "{{.Dir}}", program).Output()
	if err != nil {
		parts.Missing(t, "the source of "+program+" is missing: run go mod download in the folder of the test's go.mod")
	}
	patch, err = filepath.Abs(patch)
	require.NoError(t, err)
	text, err := os.ReadFile(patch)
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(string(text), "\n+")-1, added, "lines that %s adds", patch)
	require.LessOrEqual(t, strings.Count("\n"+string(text), "\n-")-1, removed, "lines that %s removes", patch)

	dir, inside := t.TempDir(), filepath.Join(t.TempDir(), "overlay.json")
	require.NoError(t, os.CopyFS(dir, os.DirFS(strings.TrimSpace(string(found)))))
	output, err := runIn(t, dir, git, "apply", patch).CombinedOutput()
	require.NoError(t, err, string(output))
	// A folder that is only in the overlay belongs to the test's module.
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	replaced := map[string]string{}
	for _, file := range files {
		at, err := filepath.Abs(filepath.Join("testdata", "patched", filepath.Base(file)))
		require.NoError(t, err)
		replaced[at] = file
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(inside, overlay, 0o600))
	executable := filepath.Join(dir, "patched.exe")
	output, err = runIn(t, ".", "go", "build", "-buildvcs=false", "-overlay", inside, "-o", executable, "./testdata/patched").CombinedOutput()
	require.NoError(t, err, string(output))
	return executable
}

func runIn(t testing.TB, dir, name string, arguments ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, arguments...) //nolint:gosec // the go command or git
	c.Dir = dir
	return c
}
