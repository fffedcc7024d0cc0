package condition_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/evasion"
	"github.com/grapnel-go/grapnel/policy/internal/condition"
)

// The guards in the examples also stop other spellings.
func TestPublishedGuardsHold(t *testing.T) {
	t.Parallel()
	noWipe, err := newNoWipe()
	require.NoError(t, err)
	evasion.Guard{
		Hooks: []hooks.Hook{noWipe}, Tool: "bash", Argument: "command",
		Allowed: []string{"ls", "echo rm", "go test ./..."}, Commands: []string{"rm -rf x", "find . -delete", "unlink x"},
	}.Hold(t)

	dir := t.TempDir()
	require.NoError(t, os.Symlink("/etc", filepath.Join(dir, "link")))
	evasion.ShowsCode(t, "doc.go", "guards_test.go", "stay := ")
	const leaves = `tool == "write_file" && !path.within(args.path, workspace)`
	evasion.Block(t, "doc.go", leaves)
	language, err := condition.New(condition.Options{Variables: map[string]any{"workspace": dir}})
	require.NoError(t, err)
	outside, err := language.Compile(leaves, hooks.PreToolUse)
	require.NoError(t, err)
	stay := hooks.On(hooks.AtPreToolUse, "stay", func(ctx context.Context, c hooks.ToolContext) hooks.Result {
		yes, err := outside.Test(ctx, condition.Of(c))
		switch {
		case err != nil:
			return c.Fail(err) // such as a call without a path: a control that fails denies
		case yes:
			return c.Deny("stay in the workspace")
		}
		return c.Pass()
	})
	evasion.Guard{
		Hooks: []hooks.Hook{stay}, Tool: "write_file", Argument: "path",
		Allowed: []string{"a.txt", "a/../b.txt"}, Forbidden: []string{"/etc/passwd", "../x", "link/passwd", "~/.bashrc"},
	}.Hold(t)
}
