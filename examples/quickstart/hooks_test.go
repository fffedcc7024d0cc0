package main

import (
	"strings"
	"testing"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/evasion"
)

// The guards stop other spellings of these commands, too.
func TestGuardsHold(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"read_file", "write_file"} {
		evasion.Guard{
			Hooks: []hooks.Hook{baseDir}, Tool: tool, Argument: "path",
			Allowed: []string{"parse.go", "a/../b.go"}, Forbidden: []string{"/etc/passwd", "../x", "a/../../x", "//etc/passwd", ""},
		}.Hold(t)
	}
	evasion.Guard{
		Hooks: []hooks.Hook{noWipe}, Tool: "bash", Argument: "command",
		Allowed: []string{"ls", "go test ./...", "gofmt -l .", "rm -rf build", "rm build/x -f", "find build -name x", "echo rm -rf /"},
		Commands: []string{
			"rm -rf /", "rm -rf / tmp/build", "rm -rf ..", "rm -rf .", "rm -rf ~", "rm -rf ~root", "rm build/../.. -rf", "find . -delete", "find / -name x -delete",
			"unlink /etc/hosts", "shred -u /etc/hosts",
		},
		Forbidden: []string{"rm -r *", "rm -rf build/*", "cd .. && rm -rf build", "cd \"$DIR\" && rm -rf build", "rm -rf \"$DIR\"/", "rm -rf \"$HOME\""},
	}.Hold(t)
	evasion.Guard{
		Hooks: []hooks.Hook{noForcePush}, Tool: "bash", Argument: "command",
		Allowed:  []string{"git push", "git push -u origin main", "git push --force-with-lease", "git status", "go test ./..."},
		Commands: []string{"git push -f", "git push --forc", "git push origin +main", "git push -uf origin main", "git push --mirror", "git push origin :main", "git send-pack --force x"},
	}.Hold(t)
	evasion.Guard{ // the one spelling that is rewritten
		Hooks: []hooks.Hook{noForcePush}, Tool: "bash", Argument: "command", Commands: []string{"git push --force origin main"},
		Harmless: func(line string) bool {
			return strings.Contains(line, " push --force-with-lease ") && !strings.Contains(line, "--force ")
		},
	}.Hold(t)
}
