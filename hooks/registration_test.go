package hooks_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
)

// LH-09: one hook that is wrong keeps all that came with it, and the agent, from being
// made; the builder that has none of it is as it was.
func TestNothingIsMadeOfABatchWithAWrongHook(t *testing.T) {
	asked := 0
	good := beforeStep("good", func(c hooks.StepContext) hooks.Result { asked++; return c.Pass() })
	wrong := beforeStep("wrong", nil).Matching(hooks.ToolNamed("bash")).WithTimeout(-1)
	plain := builder.New().WithName("tester").WithDriver(agenttest.Script(agenttest.Say("hi")))
	a, err := plain.With(capability.UseHooks(good, wrong)).Build().Get()
	require.ErrorContains(t, err, `hook "wrong": StepStart is not a point of a tool call`)
	require.ErrorContains(t, err, `hook "wrong": its time limit is negative`)
	assert.NotContains(t, err.Error(), `hook "good"`)
	assert.Nil(t, a)

	plain.Build().MustGet().Run(t.Context(), agent.NewState(), agent.UserText("hello")).MustGet()
	assert.Zero(t, asked)
	plain.With(capability.UseHooks(good)).Build().MustGet().Run(t.Context(), agent.NewState(), agent.UserText("hello")).MustGet()
	assert.Equal(t, 1, asked)
}
