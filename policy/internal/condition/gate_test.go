package condition

import (
	"testing"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// A gate excludes a tool only if the rest of the condition cannot make it true.
func TestGates(t *testing.T) {
	t.Parallel()
	asked := map[string]int{}
	l, err := New(Options{Functions: []Function{{
		Name: "pays", ByTool: true, Overloads: []Overload{{Args: []*cel.Type{cel.StringType}, Result: cel.BoolType}},
		Call: func(in Input, args ...ref.Val) ref.Val {
			asked[in.Tool()]++
			return types.Bool(in.Tool() == "pay" && args[0] == types.String("x"))
		},
	}}})
	require.NoError(t, err)
	for text, want := range map[string]verdict{
		`pays("x") && args.a == 1`:                   no,
		`args.a == 1 && pays("x")`:                   no,
		`args.missing == 1 && pays("x")`:             no,
		`!pays("x") && args.a == 1`:                  unsure,
		`!(!pays("x") || args.a == 1)`:               no,
		`pays("x") || args.a == 1`:                   unsure,
		`pays("x") || pays("y") && args.a == 1`:      no,
		`pays(args.a)`:                               unsure,
		`[1, 2].exists(n, n == args.a) && pays("x")`: no,
		`pays("x") ? args.a == 1 : args.a == 2`:      unsure,
		`args.a == 1`:                                unsure,
	} {
		c, err := l.Compile(text, hooks.PreToolUse)
		require.NoError(t, err)
		said := unsure
		if c.c.gate != nil {
			said = c.c.gate(callOf(t, `{"a": 1}`, `{}`).event)
		}
		assert.Equal(t, want, said, text)
	}

	// The verdict is cached for the tool.
	c, err := l.Compile(`pays("x") && args.a == 1`, hooks.PreToolUse)
	require.NoError(t, err)
	clear(asked)
	gates, ev := &toolGates{}, callOf(t, `{"a": 1}`, `{}`).event
	for range 3 {
		assert.True(t, gates.excludes(c.c, ev))
	}
	assert.Equal(t, map[string]int{"bash": 1}, asked)

	// A run caches the verdict for each of the agent's tools, until the tool's description changes.
	var r memory
	run := agent.NewState().WithRequest(agent.Request{Tools: agent.ToolsOf(agent.ToolSpec{Name: "pay"})})
	first := r.gatesOf(run, "pay")
	assert.Same(t, first, r.gatesOf(run, "pay"))
	assert.Nil(t, r.gatesOf(run, "other"))
	other := run.WithRequest(agent.Request{Tools: agent.ToolsOf(agent.ToolSpec{Name: "pay", Description: "Reads."})})
	assert.NotSame(t, r.gatesOf(run, "pay"), r.gatesOf(other, "pay"))
}
