package guard_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/guard"
	"github.com/grapnel-go/grapnel/policy"
)

// The tool, its only arguments and its result.
const (
	tool      = "bash"
	arguments = `{"command":"ls -l src","target":"src"}`
	result    = "total 12\nmain.go\n"
	input     = "List the files."
)

// calls is how many calls a run or a connection has, one after the other.
const calls = 100

// rules look at a shell line, at where a value comes from, at how often a tool was called, and at secrets in results.
const rules = `
policy: bench
hooks:
  PreToolUse:
    - id: no-wipe
      match: {tool: bash}
      when: '!shell.clear(args.command) || shell.commands(args.command).exists(c, c.name == "rm")'
      decision: deny
      reason: it deletes
    - id: words
      match: {tool: bash}
      when: from_user(args.target)
      decision: deny
      reason: the user named it
    - id: few
      match: {tool: bash}
      when: calls("bash") >= 1000000
      decision: deny
      reason: enough
  PostToolUse:
    - id: secrets
      decision: redact
      secrets: true
`

// variant is what stands before a tool.
type variant struct {
	name  string
	guard *guard.Guard // nil for the framework alone
	noop  bool         // a middleware that does nothing
}

func variants(tb testing.TB) []variant {
	tb.Helper()
	load := func(c guard.Config) *guard.Guard {
		c.Name = "bench"
		g, err := guard.New(c)
		require.NoError(tb, err)
		return g
	}
	p, err := policy.Parse("policy.yaml", []byte(rules), policy.Options{})
	require.NoError(tb, err)
	return []variant{
		{name: "alone"}, {name: "noop", noop: true},
		{name: "rules=0", guard: load(guard.Config{})}, {name: "rules=4", guard: load(guard.Config{Rules: p})},
	}
}
