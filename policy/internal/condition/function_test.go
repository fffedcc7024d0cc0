package condition_test

import (
	"context"
	"testing"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
	"github.com/grapnel-go/grapnel/policy/internal/condition"
)

// stopper returns a function that ends the context of its own evaluation.
func stopper(cancel context.CancelCauseFunc, why error) condition.Function {
	return condition.Function{
		Name: "stop", Overloads: []condition.Overload{{Result: cel.BoolType}},
		Call: func(condition.Input, ...ref.Val) ref.Val { cancel(why); return types.True },
	}
}

// said returns a function as another package would define it: it reads the run.
func said() condition.Function {
	return condition.Function{
		Name: "said", Cost: 10, Overloads: []condition.Overload{{Args: []*cel.Type{cel.DynType}, Result: cel.BoolType}},
		Call: func(in condition.Input, args ...ref.Val) ref.Val {
			text, ok := condition.Text(args[0])
			if !ok {
				return types.NewErr("only texts are said")
			}
			for _, m := range in.State().Messages() {
				if m.Role() == agent.RoleUser && m.Text() == text {
					return types.True
				}
			}
			return types.False
		},
	}
}

func TestFunctionsOfOthersSeeTheInput(t *testing.T) {
	l := languageOf(t, condition.Options{Functions: []condition.Function{said()}})
	c := compiled(t, l, "said(args.to) && !said('other')")
	other := compiled(t, l, "said('bob')")
	always := compiled(t, l, "said('x') || true")
	value, known := always.Constant()
	assert.True(t, value && known)
	_, known = other.Constant()
	assert.False(t, known, "it depends on the run")

	var yes, more bool
	hook := hooks.On(hooks.AtPreToolUse, "here", func(ctx context.Context, at hooks.ToolContext) hooks.Result {
		in := condition.Of(at)
		assert.Equal(t, at.State(), in.State())
		assert.Equal(t, at, in.Context())
		var err error
		yes, err = c.Test(ctx, in)
		assert.NoError(t, err)
		more, err = other.Test(ctx, in)
		assert.NoError(t, err)
		return at.Pass()
	})
	event := hookstest.ToolCall("send", `{"to":"ann"}`).WithState(agent.NewState(agent.UserText("ann")))
	require.Contains(t, hookstest.Fire(t, hook, event).Called, "here")
	assert.True(t, yes)
	assert.False(t, more)

	_, err := compiled(t, l, "said(args.n)").Test(t.Context(), callOf(t, `{"n":1}`))
	assert.ErrorContains(t, err, "column 1: only texts are said; args.n is the int 1")
}

func TestAFunctionThatPanicsIsAnError(t *testing.T) {
	l := languageOf(t, condition.Options{Functions: []condition.Function{{
		Name: "bad", Overloads: []condition.Overload{{Result: cel.BoolType}},
		Call: func(condition.Input, ...ref.Val) ref.Val { panic("boom") },
	}}})
	yes, err := compiled(t, l, "bad()").Test(t.Context(), callOf(t, "{}"))
	assert.False(t, yes)
	assert.ErrorContains(t, err, "boom")
}
