package main

import (
	"testing"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
	"github.com/grapnel-go/grapnel/internal/evasion"
)

func TestNoWipe(t *testing.T) {
	cases := hookstest.Cases{
		"another tool": {At: hookstest.ToolCall("read_file", `{"path":"rm -rf"}`)},
		"no command":   {At: hookstest.ToolCall("bash", `{}`), Want: hooks.Deny, Saying: `"command" is missing`},
	}
	for command, want := range map[string]hooks.Decision{
		"rm -rf *": hooks.Deny, "cd .. && rm -fr x": hooks.Deny, "sudo /bin/rm --recursive x": hooks.Deny, `\\rm -r x`: hooks.Deny,
		"echo $(rm -R x)": hooks.Deny, "rm a.txt": hooks.Allow, "rm -f a.txt": hooks.Allow, "go test ./...": hooks.Allow,
		"grep -r rm .": hooks.Allow,
	} {
		cases[command] = hookstest.Case{At: hookstest.ToolCall("bash", `{"command":"`+command+`"}`), Want: want}
	}
	cases.Test(t, noWipe)
}

// The guard stops other spellings of these commands, too.
func TestNoWipeHolds(t *testing.T) {
	t.Parallel()
	evasion.Guard{
		Hooks: []hooks.Hook{noWipe}, Tool: "bash", Argument: "command",
		Allowed:  []string{"ls", "go test ./...", "rm a.txt", "rm -f a.txt b.txt", "gofmt -l . && git status"},
		Commands: []string{"rm -r build", "rm build -R", "rm --rec build", "find . -delete", "find . -exec rm -r {} +", "git clean -fd", "mv a /dev/null"},
	}.Hold(t)
}
