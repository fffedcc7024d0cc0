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
