package policy_test

import (
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
)

// Ten of a hundred rules judge a call and let it through. Each costs two allocations for its context. They share the
// description of the call.
func TestTenRulesShareACallsDescription(t *testing.T) {
	executor := lo.Must(set(t, load(t, hundred())).Compile("tool3")).WrapExecutor(ready{})
	s, call, n := running(t), agent.ToolCall{Name: "tool3", Arguments: `{"n":-1,"path":"/srv/app/main.go"}`}, 0
	got := testing.AllocsPerRun(100, func() {
		call.ID, n = ids[n%len(ids)], n+1 // each is another call
		p, err := executor.Prepare(t.Context(), s, &call).Get()
		require.NoError(t, err)
		require.Equal(t, agent.DisposeRun, p.Disposition)
	})
	assert.LessOrEqual(t, got, 25.0)
}
