package builder_test

import (
	"context"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
)

// An agent can be seen without being told so, from outside of all that it is given;
// it is given one UseTelemetry at most.
func TestAgentsCanBeSeen(t *testing.T) {
	b := builder.New().WithDriver(agenttest.Script())
	pass := agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] { return next(ctx, s) })
	layer := capability.Func(func(p capability.Plan) (capability.Plan, error) {
		return p.AroundRun(capability.Outside, "journal", pass), nil
	})
	for name, tc := range map[string]struct {
		given []capability.Capability
		want  string
	}{
		"by itself":    {[]capability.Capability{layer}, "telemetry ▸ journal ▸ steps"},
		"in its place": {[]capability.Capability{layer, capability.UseTelemetry{Content: true}}, "journal ▸ telemetry ▸ steps"},
		"not at all":   {[]capability.Capability{layer, capability.UseTelemetry{Off: true}}, "journal ▸ steps"},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := b.With(tc.given...).Plan().Get()
			require.NoError(t, err)
			assert.Contains(t, plan.String(), "run            "+tc.want+"\n")
		})
	}
	assert.ErrorContains(t, b.With(capability.UseTelemetry{}, capability.UseTelemetry{}).Plan().Error(),
		`capability "telemetry" is declared twice: an agent can have only one`)
}
