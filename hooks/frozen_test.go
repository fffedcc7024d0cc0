package hooks_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/hooks"
)

// What the controls around a model call decided is told to the observers: an Allow
// behind a rewrite or a replacement does not hide it.
func TestFrozenAroundAModelCall(t *testing.T) {
	note := agent.RunKey[string]("note of a model call")
	var frozen []hooks.Decision
	tell := hooks.ObserveAll("told", func(_ context.Context, c hooks.Context) error {
		frozen = append(frozen, c.Frozen().Decision())
		return nil
	}, hooks.PreInference, hooks.PostInference)
	end := play(t, agenttest.Script(agenttest.Say("hi")), []hooks.Hook{
		tell,
		beforeModel("rewrites", func(c hooks.InferenceContext) hooks.Result { return c.Rewrite(c.Request()) }),
		beforeModel("allows", func(c hooks.InferenceContext) hooks.Result { return c.Allow(note.Set("x")) }),
		afterModel("allows, too", func(c hooks.ReplyContext) hooks.Result { return c.Allow(note.Set("y")) }),
		afterModel("replaces", func(c hooks.ReplyContext) hooks.Result { return c.ReplaceText("hello") }),
	})
	require.NoError(t, end.err)
	assert.Equal(t, []hooks.Decision{hooks.Rewrite, hooks.Replace}, frozen)
	assert.Equal(t, "hello", end.Answer())
}

// Controls are asked, not told: what those before them decided is for observers.
func TestFrozenIsNotForControls(t *testing.T) {
	seen := map[hooks.PointName]int{}
	look := func(_ context.Context, c hooks.Context) hooks.Result {
		seen[c.Point()]++
		assert.Nil(t, c.Frozen(), c.Point())
		return hooks.Result{}
	}
	note := agent.SessionKey[string]("note for controls")
	set := note.Set("x")
	list := []hooks.Hook{
		onInput("first at InputSubmitted", func(c hooks.InputContext) hooks.Result { return c.Allow(set) }),
		onStart("first at ExecutionStart", func(c hooks.ExecutionContext) hooks.Result { return c.Allow(set) }),
		beforeStep("first at StepStart", func(c hooks.StepContext) hooks.Result { return c.Allow(set) }),
		beforeModel("first at PreInference", func(c hooks.InferenceContext) hooks.Result { return c.Allow(set) }),
		afterModel("first at PostInference", func(c hooks.ReplyContext) hooks.Result { return c.Allow(set) }).WithPriority(-1),
		hooks.On(hooks.AtPreToolUse, "first at PreToolUse", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Mock("x", set) }),
		hooks.On(hooks.AtPostToolUse, "first at PostToolUse", func(_ context.Context, c hooks.ToolResultContext) hooks.Result {
			return c.Replace("y", set)
		}).WithPriority(-1),
		afterStep("first at StepEnd", func(c hooks.StepEndContext) hooks.Result { return c.Allow(set) }).WithPriority(-1),
		onStop("first at Stop", func(c hooks.StopContext) hooks.Result {
			if c.Continuations() > 0 {
				return c.Pass()
			}
			return c.Continue("more")
		}),
	}
	behind := failing(look)
	for _, hook := range behind {
		list = append(list, hook)
	}
	end := play(t, agenttest.Script(agenttest.Call("echo", `{"text":"x"}`)).Then(agenttest.Say("done")), list)
	require.NoError(t, end.err)
	assert.Equal(t, agent.StatusDone, end.Status())
	assert.Len(t, seen, len(behind))
}
