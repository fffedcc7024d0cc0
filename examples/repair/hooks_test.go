package main

import (
	"testing"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
)

func TestNoWipe(t *testing.T) {
	cases := hookstest.Cases{
		"another tool": {At: hookstest.ToolCall("read_file", `{"path":"rm -rf"}`)},
		"no command":   {At: hookstest.ToolCall("bash", `{}`), Want: hooks.Deny, Saying: "no command"},
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
