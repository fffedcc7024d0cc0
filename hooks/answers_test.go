package hooks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/hooks"
)

// IP-15, IP-18, IP-23: the zero Result, Pass and Allow change nothing.
func TestPassingChangesNothing(t *testing.T) {
	call := wants("bash", `{"command":"ls"}`)
	plain := workWith(t, nil, call)
	for name, answer := range map[string]func(c hooks.ToolContext) hooks.Result{
		"zero":  func(hooks.ToolContext) hooks.Result { return hooks.Result{} },
		"pass":  func(c hooks.ToolContext) hooks.Result { return c.Pass() },
		"allow": allow,
	} {
		w := workWith(t, []hooks.Hook{before(name, answer)}, call)
		assert.Equal(t, agenttest.Transcript(plain.State), agenttest.Transcript(w.State), name)
		assert.Equal(t, plain.ran, w.ran, name)
	}
	var nothing *hooks.Outcome
	assert.Equal(t, hooks.Pass, nothing.Decision())
	assert.Empty(t, nothing.Reason())
	assert.Empty(t, nothing.Hook())
	assert.False(t, nothing.HookFailed())
	assert.Zero(t, nothing.Effects().Len())
}

// IP-21: the JSON of an outcome has the decision, the hook, and whether there are
// effects.
func TestOutcomesAsJSON(t *testing.T) {
	call := wants("bash", `{"command":"ls"}`)
	var got []string
	watch := hooks.Observe(hooks.AtPreToolUse, "watch", func(_ context.Context, c hooks.ToolContext) error {
		raw, err := json.Marshal(c.Frozen())
		got = append(got, string(raw))
		return err
	})
	guard := before("guard", func(c hooks.ToolContext) hooks.Result { return c.Deny("no <b>", note.Set("x")) })
	dizzy := before("dizzy", func(c hooks.ToolContext) hooks.Result { return c.Fail(errors.New("dizzy")) })
	workWith(t, []hooks.Hook{guard, watch}, call)
	workWith(t, []hooks.Hook{watch}, call)
	workWith(t, []hooks.Hook{dizzy, watch}, call)
	require.Len(t, got, 3)
	assert.JSONEq(t, `{"type":"deny","reason":"no <b>","hook":"guard","has_effects":true}`, got[0])
	assert.JSONEq(t, `null`, got[1], "no hook had an opinion")
	assert.Contains(t, got[2], `"hook_failed":true`)
}

// IP-24, IP-56, IP-57, IP-58, IP-59, IP-60, X-05: a hook can give the answers for which its context has methods, and
// cannot change its input. An answer that was made for another point is neither honoured nor passed over: the hook
// failed, always, and the text says how.
func TestAnAnswerForAnotherPointIsAFailure(t *testing.T) {
	var kept hooks.StepContext
	keep := hooks.On(hooks.AtStepStart, "keep", func(_ context.Context, c hooks.StepContext) hooks.Result {
		kept = c
		return c.Pass()
	})
	lost := before("lost", func(hooks.ToolContext) hooks.Result { return kept.Stop("meant for the step") })
	call := wants("bash", `{"command":"ls"}`)
	w := workWith(t, []hooks.Hook{keep, lost}, call)
	assert.Empty(t, w.ran)
	assert.Equal(t, agent.StatusDone, w.Status(), "the stop is not honoured")
	assert.Equal(t, agent.ReasonHookFailed, w.result(0).Reason)
	assert.Contains(t, w.result(0).Text(), "lost")
	assert.Contains(t, w.result(0).Text(), "StepStart")
	failed := w.events(hooks.HookFailed)
	require.Len(t, failed, 1)
	assert.Equal(t, hooks.PreToolUse, failed[0].Point)

	own := workWith(t, []hooks.Hook{keep, before("own", deny("no"))}, call) // IP-61
	assert.Empty(t, own.events(hooks.HookFailed))
}

// IP-42: the seed's skill filter: without a list everything passes, and loading a
// skill always does.
func TestSkillFilter(t *testing.T) {
	filter := func(allowed ...string) hooks.Hook {
		return before("skill-filter", func(c hooks.ToolContext) hooks.Result {
			if len(allowed) == 0 || slices.Contains(allowed, c.Tool()) {
				return c.Allow()
			}
			return c.Deny(fmt.Sprintf("%s is not among the tools of this skill: %s", c.Tool(), strings.Join(allowed, ", ")))
		}, hooks.Not(hooks.ToolNamed("read_file"))) // stands for load_skill
	}
	calls := wants("bash", `{"command":"ls"}`, "write_file", `{"path":"a"}`, "read_file", `{"path":"skill"}`)
	assert.Len(t, workWith(t, []hooks.Hook{filter()}, calls).ran, 3)
	w := workWith(t, []hooks.Hook{filter("bash")}, calls)
	assert.Len(t, w.ran, 2)
	assert.Contains(t, w.result(1).Text(), "write_file is not among the tools of this skill: bash")
}

// LH-35: nothing answers a call before its hooks are asked, so no cache can precede a mock. The hooks are asked again
// about an answered call.
func TestEveryCallIsAskedAbout(t *testing.T) {
	times := 0
	mocks := before("fixture", func(c hooks.ToolContext) hooks.Result {
		times++
		return c.Mock(fmt.Sprint("mock ", times))
	})
	w := workWith(t, []hooks.Hook{mocks}, wants("bash", `{"command":"ls"}`, "bash", `{"command":"ls"}`))
	assert.Empty(t, w.ran)
	assert.Equal(t, "mock 1", w.result(0).Text())
	assert.Equal(t, "mock 2", w.result(1).Text())
}
