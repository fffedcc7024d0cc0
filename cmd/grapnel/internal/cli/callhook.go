package cli

import (
	"cmp"
	"context"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/agentfile"
	"github.com/grapnel-go/grapnel/hooks"
)

// onCalls is a hook that says the same about all calls that are meant: that they are
// denied, or that a person must say yes. A call that has no such argument is not
// meant.
func onCalls(
	name string, calls agentfile.Calls, otherwise string,
	say func(c hooks.ToolContext, reason string, effects ...agent.Effect) hooks.Result,
) hooks.Hook {
	return hooks.On(hooks.AtPreToolUse, name, func(_ context.Context, c hooks.ToolContext) hooks.Result {
		if calls.Matching.Regexp != nil {
			text, isText := c.Call().Text(calls.Argument)
			raw, there := c.Call().Argument(calls.Argument)
			if !there || !calls.Matching.MatchString(lo.Ternary(isText, text, raw)) {
				return c.Pass()
			}
		}
		return say(c, cmp.Or(calls.Reason, otherwise))
	}, toolsNamed(calls.Tools)).WithPriority(hooks.PriorityGuard)
}

// onInput is a hook that does not let in what a user says where it matches.
func onInput(name string, s *agentfile.DenyInput) hooks.Hook {
	return hooks.On(hooks.AtInputSubmitted, name, func(_ context.Context, c hooks.InputContext) hooks.Result {
		if s.Matching.MatchString(c.Text()) {
			return c.Deny(cmp.Or(s.Reason, "it has something in it that is not let in"))
		}
		return c.Allow()
	}).WithPriority(hooks.PriorityGuard)
}
