package guard_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/guard"
	"github.com/grapnel-go/grapnel/hooks"
)

// fourRules look at a shell line, at where a value comes from, at how often a tool was called, and at secrets in results.
const fourRules = `
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
      when: '!from_user(args.target)'
      decision: deny
      reason: the user did not name it
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

func BenchmarkDo(b *testing.B) {
	for _, n := range []int{0, 4, 40} {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			c := guard.Config{Name: "bench"}
			if n > 0 {
				text := fourRules
				for i := 4; i < n; i++ {
					text = strings.Replace(text, "  PostToolUse:", fmt.Sprintf("    - {id: more-%d, match: {tool: bash}, when: 'args.command == \"x%d\"', decision: deny, reason: no}\n  PostToolUse:", i, i), 1)
				}
				c.Rules = rules(b, text)
			}
			g, err := guard.New(c)
			require.NoError(b, err)
			run := func(context.Context, string) (string, error) { return "total 12\nmain.go\n", nil }
			b.ReportAllocs()
			var s *guard.Session
			for i := 0; b.Loop(); i++ {
				if i%100 == 0 { // a conversation of a hundred calls
					s = g.Session(b.Context(), "", agent.UserText("list the files in src"))
				}
				got, err := guard.Do(b.Context(), s, guard.Call{Tool: "bash", Arguments: `{"command":"ls -l src","target":"src"}`}, run, guard.Text)
				if err != nil || got == "" || strings.Contains(got, "denied") {
					b.Fatal(got, err)
				}
			}
		})
	}
}

// BenchmarkAskAndRelease asks about a call, and makes it again with the answer.
func BenchmarkAskAndRelease(b *testing.B) {
	g, err := guard.New(guard.Config{Name: "bench", Hooks: []hooks.Hook{hooks.AlwaysAsk("four-eyes", "money")}, Approver: agent.ParkApprover})
	require.NoError(b, err)
	run := func(context.Context, string) (string, error) { return "paid", nil }
	b.ReportAllocs()
	var s *guard.Session
	for i := 0; b.Loop(); i++ {
		if i%100 == 0 {
			s = g.Session(b.Context(), "")
		}
		c := guard.Call{Tool: "pay", Arguments: fmt.Sprintf(`{"amount":%d}`, i)}
		_, err := guard.Do(b.Context(), s, c, run, guard.Text)
		ask, ok := errors.AsType[*guard.AskError](err)
		if !ok {
			b.Fatal(err)
		}
		c.Token, c.Answers = ask.Token, []agent.Approval{{Verdict: agent.Approve, By: "ann"}}
		if got, err := guard.Do(b.Context(), s, c, run, guard.Text); err != nil || got != "paid" {
			b.Fatal(got, err)
		}
	}
}
