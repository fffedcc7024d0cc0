package agents

import (
	"cmp"
	"context"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/agentfile"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/policy/bash"
)

// onCalls returns a hook that denies all selected calls, or requires approval for them. If the hook judges an
// argument, it denies a call without a text at its place.
func onCalls(
	name string, calls agentfile.Calls, otherwise string,
	say func(c hooks.ToolContext, reason string, effects ...agent.Effect) hooks.Result,
) hooks.Hook {
	reason := cmp.Or(calls.Reason, otherwise)
	body := func(_ context.Context, c hooks.ToolContext) hooks.Result { return say(c, reason) }
	matchers := []hooks.Matcher{toolsNamed(calls.Tools)}
	if len(calls.Except) > 0 {
		matchers = append(matchers, hooks.Not(toolsNamed(calls.Except)))
	}
	if calls.Argument != "" {
		matchers = append(matchers, takesArgument(calls.Argument))
		body = hooks.RequireText(calls.Argument, func(_ context.Context, c hooks.ToolContext, text string) hooks.Result {
			if calls.Matching.Regexp != nil && calls.Matching.MatchString(text) {
				return say(c, reason)
			}
			switch runs, known := runsCommand(text, calls.Commands); {
			case runs:
				return say(c, reason)
			case !known:
				return say(c, "the line may run commands that it does not show: write plain commands")
			}
			return c.Pass()
		})
	}
	return hooks.On(hooks.AtPreToolUse, name, body, matchers...).WithPriority(hooks.PriorityGuard)
}

// takesArgument returns a matcher of all calls. With it, building the agent checks whether a tool has the
// argument.
func takesArgument(path string) hooks.Matcher {
	given := hooks.Argument(path, func(string) bool { return true })
	return hooks.Or(given, hooks.Not(given))
}

// runsCommand reports whether a line of a shell runs one of the commands. Known is false if the line runs
// commands that it does not show. Without commands, known is true for every line.
func runsCommand(line string, commands []agentfile.Command) (runs, known bool) {
	if len(commands) == 0 {
		return false, true
	}
	analysis := bash.Analyse(line, bash.Options{})
	return lo.SomeBy(analysis.Commands, func(c bash.Command) bool {
		return lo.SomeBy(commands, func(meant agentfile.Command) bool { return isCommand(c, strings.Fields(string(meant))) })
	}), analysis.Clear()
}

// isCommand reports whether a command is, or may be, the program and sub-command in words. The comparison
// ignores case, because some file systems do, and a sub-command may be a separate program: git-push.
func isCommand(c bash.Command, words []string) bool {
	name, sub := words[0], words[1:]
	if len(sub) > 0 && strings.EqualFold(c.Name, name+"-"+sub[0]) {
		name, sub = c.Name, sub[1:]
	}
	switch {
	case !strings.EqualFold(c.Name, name):
		return false
	case len(sub) == 0:
		return true
	}
	given := strings.Fields(c.Sub)
	if len(given) > 0 && given[0] != sub[0] {
		return false
	}
	for _, w := range c.Args {
		if w.Kind != bash.Literal {
			return true // the hidden part may be the missing word
		}
		given = append(given, w.Text)
	}
	return lo.Every(given, sub)
}

// onInput returns a hook that denies matching input of the user.
func onInput(name string, s *agentfile.DenyInput) hooks.Hook {
	return hooks.On(hooks.AtInputSubmitted, name, func(_ context.Context, c hooks.InputContext) hooks.Result {
		if s.Matching.MatchString(c.Text()) {
			return c.Deny(cmp.Or(s.Reason, "it contains text that is not accepted"))
		}
		return c.Allow()
	}).WithPriority(hooks.PriorityGuard)
}
