package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
	"github.com/grapnel-go/grapnel/internal/evasion"
	"github.com/grapnel-go/grapnel/internal/exampletest"
)

func TestOutput(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, tour(t.Context(), &out))
	exampletest.Golden(t, "testdata/output.txt", out.String())
	exampletest.Readme(t, out.String())
}

// The guard stops every call that is no payment of up to 100 to a friend, in whatever form.
func TestOnlyFriendsHolds(t *testing.T) {
	t.Parallel()
	evasion.Guard{
		Hooks: []hooks.Hook{onlyFriends}, Tool: "transfer", Argument: "to", With: map[string]any{"amount": 5},
		Allowed: []string{"Alice", "Bob"}, Forbidden: []string{"Mallory", "alice", "Alice ", "*", ""},
		Calls: []string{
			`{"to":"Alice"}`, `{"to":"Alice","amount":0}`, `{"to":"Alice","amount":-250}`, `{"to":"Alice","amount":"5"}`, `{"to":"Alice","amount":null}`,
			`{"to":"Alice","amount":[5]}`, `{"to":"Alice","Amount":5}`, `{"to":"Alice","amount":-1e-9}`, `{"to":"Alice","amount":1e999}`,
		},
	}.Hold(t)
	hookstest.Cases{
		"too much": {At: hookstest.ToolCall("transfer", `{"to":"Alice","amount":1e9}`), Want: hooks.Rewrite, Also: func(t *testing.T, f hookstest.Fired) {
			t.Helper()
			assert.JSONEq(t, `{"to":"Alice","amount":100}`, f.Call.Arguments)
		}},
	}.Test(t, onlyFriends)
}

// Every line of Go in the README is a line of this program, or of the one that it
// names, and so compiles and does what the README says.
func TestReadmeIsThisProgram(t *testing.T) {
	program, err := os.ReadFile("main.go")
	require.NoError(t, err)
	repair, err := os.ReadFile("../repair/main.go")
	require.NoError(t, err)
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	lines := map[string]bool{}
	for line := range strings.Lines(string(program) + string(repair)) {
		lines[strings.TrimSpace(line)] = true
	}
	blocks := strings.Split(string(readme), "```go\n")[1:]
	require.NotEmpty(t, blocks, "the README shows no Go")
	for _, block := range blocks {
		code, _, closed := strings.Cut(block, "```")
		require.True(t, closed, "a code block in the README is not closed")
		for line := range strings.Lines(code) {
			line = strings.TrimSpace(line)
			assert.True(t, lines[line], "the README shows a line that no example has: %s", line)
		}
	}
}
