package hooks_test

import (
	"context"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// The points that middleware fires: which answers controls may give there, and how their failures are handled. Without
// hooks, and outside a run, they do nothing.
func TestPointsOfMiddleware(t *testing.T) {
	s := agent.NewState()
	compiled := func(list ...hooks.Hook) *hooks.Compiled { return lo.Must(hooks.NewSet(list...).Compile()) }
	pre := func(f func(hooks.PreSubagentContext) hooks.Result) hooks.Hook {
		return hooks.On(hooks.AtPreSubagent, "guard", func(_ context.Context, c hooks.PreSubagentContext) hooks.Result { return f(c) })
	}
	post := func(f func(hooks.PostSubagentContext) hooks.Result) hooks.Hook {
		return hooks.On(hooks.AtPostSubagent, "guard", func(_ context.Context, c hooks.PostSubagentContext) hooks.Result { return f(c) })
	}
	for name, tc := range map[string]struct {
		hook         hooks.Hook
		says, denied string
	}{
		"pass":    {pre(func(c hooks.PreSubagentContext) hooks.Result { return c.Pass() }), "look", ""},
		"rewrite": {pre(func(c hooks.PreSubagentContext) hooks.Result { return c.Rewrite(c.Subagent().Instruction + " twice") }), "look twice", ""},
		"deny":    {pre(func(c hooks.PreSubagentContext) hooks.Result { return c.Deny("no") }), "look", `tool "helper": denied by guard: no`},
		"fail":    {pre(func(c hooks.PreSubagentContext) hooks.Result { return c.Fail(errPaper) }), "look", "guard"},
	} {
		t.Run("before a sub-agent: "+name, func(t *testing.T) {
			says, denied, err := compiled(tc.hook).PreSubagent(t.Context(), s, hooks.Subagent{Agent: "helper", Instruction: "look"})
			require.NoError(t, err)
			assert.Equal(t, tc.says, says)
			if tc.denied == "" {
				require.NoError(t, denied)
				return
			}
			require.ErrorContains(t, denied, tc.denied)
		})
	}
	for name, tc := range map[string]struct {
		hook     hooks.Hook
		says     string
		withheld bool
	}{
		"replace":  {post(func(c hooks.PostSubagentContext) hooks.Result { return c.Replace("***") }), "***", false},
		"withhold": {post(func(c hooks.PostSubagentContext) hooks.Result { return c.Withhold("secret") }), "result withheld by guard: secret", true},
		"fail":     {post(func(c hooks.PostSubagentContext) hooks.Result { return c.Fail(errPaper) }), "result withheld by guard", true},
	} {
		t.Run("after a sub-agent: "+name, func(t *testing.T) {
			left, withheld, err := compiled(tc.hook).PostSubagent(t.Context(), s, hooks.Subagent{Agent: "helper", Result: "found"})
			require.NoError(t, err)
			assert.Contains(t, left.Result, tc.says)
			assert.Equal(t, tc.withheld, withheld != nil)
		})
	}
	t.Run("before a compaction", func(t *testing.T) {
		c := compiled(hooks.On(hooks.AtPreCompact, "guard", func(_ context.Context, c hooks.PreCompactContext) hooks.Result {
			if c.Compaction().Messages < 10 {
				return c.Deny("too few")
			}
			return c.Allow()
		}))
		denied, err := c.PreCompact(t.Context(), s, hooks.Compaction{Messages: 9})
		require.NoError(t, err)
		require.ErrorContains(t, denied, "too few")
		denied, err = c.PreCompact(t.Context(), s, hooks.Compaction{Messages: 10})
		require.NoError(t, errors2(denied, err))
	})
	t.Run("a failure that aborts", func(t *testing.T) {
		_, _, err := compiled(pre(func(c hooks.PreSubagentContext) hooks.Result { return c.Fail(errPaper) }).WithFailure(hooks.Abort)).
			PreSubagent(t.Context(), s, hooks.Subagent{})
		require.ErrorIs(t, err, errPaper)
	})
	t.Run("no hooks", func(t *testing.T) {
		none := hooks.Of(s)
		assert.Nil(t, none)
		denied, err := none.PreCompact(t.Context(), s, hooks.Compaction{})
		require.NoError(t, errors2(denied, err))
		none.PostCompact(t.Context(), s, hooks.Compaction{})
		none.CompactFailed(t.Context(), s, hooks.Compaction{})
		says, denied, err := none.PreSubagent(t.Context(), s, hooks.Subagent{Instruction: "x"})
		require.NoError(t, errors2(denied, err))
		assert.Equal(t, "x", says)
		left, denied, err := none.PostSubagent(t.Context(), s, hooks.Subagent{Result: "y"})
		require.NoError(t, errors2(denied, err))
		assert.Equal(t, "y", left.Result)
		none.SubagentFailed(t.Context(), s, hooks.Subagent{})
	})
}

func errors2(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
