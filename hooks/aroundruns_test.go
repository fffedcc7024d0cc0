package hooks_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// At the points of a pipeline each control sees the effects of earlier controls, and
// after the first stop no further control is asked. The observers are always called.
func TestPipelinePoints(t *testing.T) {
	seen := agent.SessionKey[string]("seen")
	var told []string
	compiled, err := hooks.NewSet(
		hooks.On(hooks.AtIterationComplete, "last", func(_ context.Context, c hooks.PipelineContext) hooks.Result {
			told = append(told, "last:"+seen.Or(c.State(), ""))
			return c.Stop("enough")
		}),
		hooks.On(hooks.AtIterationComplete, "first", func(_ context.Context, c hooks.PipelineContext) hooks.Result {
			told = append(told, "first:"+c.Pipeline().NextStage)
			return c.Allow(seen.Set("yes"))
		}),
		hooks.Observe(hooks.AtIterationComplete, "observer", func(_ context.Context, c hooks.PipelineContext) error {
			told = append(told, "observer:"+string(c.Frozen().Decision()))
			return nil
		}),
		hooks.Observe(hooks.AtSessionComplete, "end", func(_ context.Context, c hooks.PipelineEndContext) error {
			told = append(told, "end:"+c.Pipeline().Reason)
			return nil
		}),
	).Compile()
	require.NoError(t, err)
	scope := compiled.OpenScope(t.Context(), hooks.ScopeOptions{})
	s, stop, err := scope.Pipeline(t.Context(), agent.NewState(), hooks.Firing{Point: hooks.IterationComplete}, hooks.Pipeline{NextStage: "deploy"})
	require.NoError(t, err)
	require.NotNil(t, stop)
	assert.Equal(t, "enough", stop.Message)
	assert.False(t, s.Stopped(), "the state can be used for the next run")
	assert.Equal(t, "yes", seen.Or(s, ""))
	_, stop, err = scope.Pipeline(t.Context(), s, hooks.Firing{Point: hooks.SessionComplete}, hooks.Pipeline{Reason: "max"})
	require.NoError(t, err)
	assert.Nil(t, stop)
	_, _, err = scope.Pipeline(t.Context(), s, hooks.Firing{Point: hooks.SessionStart}, hooks.Pipeline{})
	require.NoError(t, err, "no hook is at this point")
	assert.Equal(t, []string{"first:deploy", "last:yes", "observer:stop", "end:max"}, told)
}

// A control of a pipeline that cannot decide stops it.
func TestPipelineFailsClosed(t *testing.T) {
	compiled, err := hooks.NewSet(hooks.On(hooks.AtSessionStart, "guard", func(_ context.Context, c hooks.PipelineContext) hooks.Result {
		return c.Fail(errors.New("boom"))
	})).Compile()
	require.NoError(t, err)
	scope := compiled.OpenScope(t.Context(), hooks.ScopeOptions{})
	_, stop, err := scope.Pipeline(t.Context(), agent.NewState(), hooks.Firing{Point: hooks.SessionStart}, hooks.Pipeline{})
	require.NoError(t, err)
	require.NotNil(t, stop)
	assert.Contains(t, stop.Message, "could not decide: boom")
}

func TestBlueprintPoints(t *testing.T) {
	rewrite := hooks.On(hooks.AtRunStart, "enrich", func(_ context.Context, c hooks.RunStartContext) hooks.Result {
		return c.Rewrite(map[string]any{"n": 1})
	})
	see := hooks.On(hooks.AtRunStart, "see", func(_ context.Context, c hooks.RunStartContext) hooks.Result {
		if string(c.BlueprintRun().Parameters) != `{"n":1}` {
			return c.Deny("not enriched")
		}
		return c.Allow()
	})
	deny := hooks.On(hooks.AtRunStart, "deny", func(_ context.Context, c hooks.RunStartContext) hooks.Result { return c.Deny("no") })
	replace := hooks.On(hooks.AtRunResult, "format", func(_ context.Context, c hooks.RunResultContext) hooks.Result {
		return c.Replace("<" + c.BlueprintRun().ResultText + ">")
	})
	broken := hooks.On(hooks.AtRunResult, "broken", func(_ context.Context, c hooks.RunResultContext) hooks.Result { panic("boom") })

	run := func(at hooks.PointName, about hooks.BlueprintRun, list ...hooks.Hook) (hooks.BlueprintRun, error) {
		compiled, err := hooks.NewSet(list...).Compile()
		require.NoError(t, err)
		scope := compiled.OpenScope(t.Context(), hooks.ScopeOptions{})
		after, _, denied, err := scope.Blueprint(t.Context(), agent.NewState(), hooks.Firing{Point: at}, about)
		require.NoError(t, err)
		return after, denied
	}
	before := hooks.BlueprintRun{Parameters: json.RawMessage(`{}`), ResultText: "42", ResultData: json.RawMessage(`42`)}
	after, denied := run(hooks.RunStart, before, rewrite, see)
	require.NoError(t, denied)
	assert.JSONEq(t, `{"n":1}`, string(after.Parameters))
	_, denied = run(hooks.RunStart, before, deny)
	require.ErrorContains(t, denied, "no")
	after, _ = run(hooks.RunResult, before, replace)
	assert.Equal(t, "<42>", after.ResultText)
	assert.Nil(t, after.ResultData, "the old result is gone in every form")
	after, _ = run(hooks.RunResult, before, broken)
	assert.Contains(t, after.ResultText, "result withheld by broken")
	assert.Nil(t, after.ResultData)
	none := (*hooks.Compiled)(nil).OpenScope(t.Context(), hooks.ScopeOptions{})
	after, _, denied, err := none.Blueprint(t.Context(), agent.NewState(), hooks.Firing{Point: hooks.RunStart}, before)
	require.NoError(t, err)
	assert.Equal(t, before, after)
	require.NoError(t, denied)
}
