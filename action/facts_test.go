package action_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// Calls are counted as a run goes, and right again for a state that a run has left behind.
func TestCallsAreCounted(t *testing.T) {
	var counts []map[string]action.CallCount
	var first hooks.Context
	tell := hooks.Observe(hooks.AtStepEnd, "counts", func(_ context.Context, c hooks.StepEndContext) error {
		if first == nil {
			first = c
		}
		counts = append(counts, action.NewRequest(c, "counts").Calls.ByTool())
		if c.StepIndex() == 2 {
			counts = append(counts, action.NewRequest(first, "counts").Calls.ByTool(), action.NewRequest(c, "counts").Calls.ByTool())
		}
		return nil
	})
	look := toolexec.Func("look", "Looks.", func(context.Context, struct{}) (string, error) { return "seen", nil })
	fails := toolexec.Func("fail", "Fails.", func(context.Context, struct{}) (string, error) { return "", assert.AnError })
	model := agenttest.Script(agenttest.Call("look", `{}`).Call("look", `{}`), agenttest.Call("fail", `{}`), agenttest.Say("done"))
	a := builder.New().WithDriver(model).With(capability.UseTools(look, fails), capability.UseHooks(tell)).Build().MustGet()
	require.NoError(t, a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Error())
	one := map[string]action.CallCount{"look": {Calls: 2, OK: 2}}
	both := map[string]action.CallCount{"look": {Calls: 2, OK: 2}, "fail": {Calls: 1}}
	assert.Equal(t, []map[string]action.CallCount{one, both, both, one, both}, counts)
	assert.True(t, action.Calls{}.IsZero())
	assert.True(t, action.Usage{}.IsZero())
}
