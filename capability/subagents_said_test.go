package capability_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
)

// The last text of a stopped sub-agent is part of the failure, unless a control judges the answers
// of sub-agents, which is asked about the failure like about an answer.
func TestLastWordsOfASubagent(t *testing.T) {
	guard := func(point func(context.Context, hooks.PostSubagentContext) hooks.Result) capability.Capability {
		return capability.UseHooks(hooks.On(hooks.AtPostSubagent, "guard", point))
	}
	withhold := guard(func(_ context.Context, c hooks.PostSubagentContext) hooks.Result { return c.Withhold("secret") })
	watch := capability.UseHooks(hooks.Observe(hooks.AtPostSubagent, "watch", func(context.Context, hooks.PostSubagentContext) error { return nil }))
	for name, tc := range map[string]struct {
		more []capability.Capability
		told bool
	}{
		"no hook":     {nil, true},
		"an observer": {[]capability.Capability{watch}, true},
		"a control":   {[]capability.Capability{withhold}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var b bench
			sub := helper("scout", &b, agenttest.Say("the key is 4711").Call("look", "{}")).With(capability.UseGuards{Steps: 1})
			s, _ := boss(t, capability.UseSubagents{Agents: []capability.Subagent{{Agent: sub}}}, task("scout", "look"), tc.more...)
			said := answers(s)[0].Text()
			if tc.told {
				assert.Contains(t, said, `agent "scout" stopped: 1 of at most 1 steps taken`)
				assert.Contains(t, said, "it had said: the key is 4711")
			} else {
				assert.Equal(t, `tool "task": failed: result withheld by guard: secret`, said)
			}
		})
	}
}
