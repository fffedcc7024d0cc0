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

// The guard stops every call except payments of up to 100 to a friend, in whatever form.
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

// Every line of Go in the tutorial is a line of this program or another named program. It therefore compiles and does
// what the tutorial says. scripts/newcomer runs the tutorial's first block, a whole program.
func TestTutorialIsThisProgram(t *testing.T) {
	program, err := os.ReadFile("main.go")
	require.NoError(t, err)
	repair, err := os.ReadFile("../repair/main.go")
	require.NoError(t, err)
	tutorial, err := os.ReadFile("../../docs/getting-started.md")
	require.NoError(t, err)
	lines := map[string]bool{}
	for line := range strings.Lines(string(program) + string(repair)) {
		lines[strings.TrimSpace(line)] = true
	}
	blocks := strings.Split(string(tutorial), "```go\n")[1:]
	require.Greater(t, len(blocks), 1, "the tutorial shows no Go of this program")
	require.True(t, strings.HasPrefix(blocks[0], "package main"))
	for _, block := range blocks[1:] {
		code, _, closed := strings.Cut(block, "```")
		require.True(t, closed, "a code block in the tutorial is not closed")
		for line := range strings.Lines(code) {
			line = strings.TrimSpace(line)
			assert.True(t, lines[line], "the tutorial shows a line that no example has: %s", line)
		}
	}
}

// The README shows lines of the plan that this program prints.
func TestReadmeShowsThePlan(t *testing.T) {
	plan, err := os.ReadFile("testdata/output.txt")
	require.NoError(t, err)
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(readme), "```text\n")
	require.True(t, found, "the README shows no plan")
	shown, _, _ := strings.Cut(rest, "```")
	for line := range strings.Lines(shown) {
		assert.Contains(t, string(plan), line)
	}
	for _, name := range []string{"HookProcessor", "HookedToolExecutor", "HookContinuationCriterion"} {
		assert.Contains(t, shown, name)
	}
}
