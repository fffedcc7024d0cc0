package evasion_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/evasion"
	"github.com/grapnel-go/grapnel/policy/bash"
)

// complaints is a test that records its failures.
type complaints struct {
	testing.TB

	list []string
}

func (c *complaints) Helper() {}

func (c *complaints) Errorf(format string, args ...any) {
	c.list = append(c.list, fmt.Sprintf(format, args...))
}

// hold returns the failures that Guard.Hold reports for a guard against rm.
func hold(t *testing.T, body func(context.Context, hooks.ToolContext) hooks.Result) string {
	t.Helper()
	c := &complaints{TB: t}
	evasion.Guard{
		Hooks: []hooks.Hook{hooks.On(hooks.AtPreToolUse, "guard", body)}, Tool: "bash", Argument: "command",
		Allowed: []string{"ls -l", "echo rm"}, Commands: []string{"rm -rf build"},
	}.Hold(c)
	return strings.Join(c.list, "\n")
}

// Each of these guards failed us once, each for its own reason.
func TestWeakGuardsDoNotHold(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		deny func(c hooks.ToolContext) bool
		want []string
	}{
		"one that looks at JSON": {
			func(c hooks.ToolContext) bool { return strings.Contains(c.Call().Arguments, "rm ") },
			[]string{"escaped spaces, bash", "tabs, bash", "without the argument, bash {}", "quoted, bash"},
		},
		"one that reads a text that may be missing": {
			func(c hooks.ToolContext) bool {
				command, _ := c.Call().Text("command")
				return strings.Contains(command, "rm ")
			},
			[]string{"without the argument, bash {}", "renamed to upper case, bash", "in a list, bash", "a backslash inside, bash"},
		},
		"one that knows one order of options": {
			func(c hooks.ToolContext) bool {
				command, ok := c.Call().Text("command")
				return !ok || regexp.MustCompile(`\brm\s+(-\S+\s+)*-\S*[rR]`).MatchString(command)
			},
			[]string{"options last, bash", "a variable for the name, bash"},
		},
		"one that denies everything": {
			func(hooks.ToolContext) bool { return true },
			[]string{`bash {"command":"ls -l"} must run`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told := hold(t, func(_ context.Context, c hooks.ToolContext) hooks.Result {
				if tc.deny(c) {
					return c.Deny("no")
				}
				return c.Allow()
			})
			for _, want := range tc.want {
				assert.Contains(t, told, want)
			}
		})
	}
}

// A guard that requires its argument and reads the line holds.
func TestAGuardHolds(t *testing.T) {
	t.Parallel()
	assert.Empty(t, hold(t, hooks.RequireText("command", func(_ context.Context, c hooks.ToolContext, command string) hooks.Result {
		line := bash.Analyse(command, bash.Options{})
		if !line.Clear() {
			return c.Deny("not clear")
		}
		for range line.CommandsNamed("rm") {
			return c.Deny("no rm")
		}
		return c.Allow()
	})))
}

// Calls that a guard rewrites into something harmless may run.
func TestHarmlessRewrites(t *testing.T) {
	t.Parallel()
	for _, harmless := range []bool{true, false} {
		c := &complaints{TB: t}
		evasion.Guard{
			Hooks: []hooks.Hook{hooks.On(hooks.AtPreToolUse, "guard", hooks.RequireText("to", func(_ context.Context, c hooks.ToolContext, _ string) hooks.Result {
				return c.Rewrite(map[string]any{"to": "ann"})
			}))},
			Tool: "send", Argument: "to", With: map[string]any{"amount": 5}, Forbidden: []string{"eve"},
			Harmless: func(to string) bool { return harmless && to == "ann" },
		}.Hold(c)
		assert.Equal(t, harmless, len(c.list) == 0, "%v", c.list)
	}
}
