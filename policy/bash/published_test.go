package bash_test

import (
	"context"
	"testing"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/evasion"
	"github.com/grapnel-go/grapnel/policy/bash"
)

var noWipe = hooks.On(hooks.AtPreToolUse, "no-wipe",
	hooks.RequireText("command", func(_ context.Context, c hooks.ToolContext, command string) hooks.Result {
		line := bash.Analyse(command, bash.Options{Dir: "/srv/app"})
		if !line.Clear() {
			return c.Deny("the line may run more than it shows: write plain commands")
		}
		for _, file := range line.Files {
			if file.Access == bash.Deletes {
				return c.Deny("nothing is deleted: " + file.Word.Source)
			}
		}
		return c.Allow()
	}), hooks.ToolNamed("bash"))

// The guard in the package comment also stops other spellings.
func TestPublishedGuardHolds(t *testing.T) {
	t.Parallel()
	evasion.ShowsCode(t, "doc.go", "published_test.go", "var noWipe")
	evasion.Guard{
		Hooks: []hooks.Hook{noWipe}, Tool: "bash", Argument: "command",
		Allowed:  []string{"ls -l", "go test ./...", "echo rm", "git status"},
		Commands: []string{"rm -rf build", "rm x", "rmdir x", "unlink x", "shred -u x", "find . -delete", "mv x /dev/null"},
	}.Hold(t)
}
