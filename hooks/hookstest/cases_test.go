package hookstest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
)

func TestCases(t *testing.T) {
	ran := 0
	hookstest.Cases{
		"a look": {At: hookstest.ToolCall("bash", `{"command":"git status"}`), Want: hooks.Allow, Leaving: "ok", Also: func(t *testing.T, f hookstest.Fired) {
			t.Helper()
			ran++
			assert.True(t, f.Ran())
			assert.Equal(t, []string{"no-push"}, f.Called)
		}},
		"a push": {At: hookstest.ToolCall("bash", `{"command":"git -C . push"}`), Want: hooks.Deny, Saying: "pushed", Also: func(t *testing.T, f hookstest.Fired) {
			t.Helper()
			ran++
			assert.False(t, f.Ran())
		}},
		"another tool": {At: hookstest.ToolCall("read_file", `{"path":"push --force"}`)},
	}.Test(t, noPush)
	assert.Equal(t, 2, ran)
}

// A set is fired as one: in its order, and what counts of it is compared.
func TestCasesOfASet(t *testing.T) {
	set := hooks.NewSet(noPush,
		hooks.On(hooks.AtPreToolUse, "fixture", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Mock("mocked") }),
		hooks.On(hooks.AtInputSubmitted, "polite", func(_ context.Context, c hooks.InputContext) hooks.Result {
			return c.RewriteText(strings.TrimSpace(c.Text()) + ", please")
		}))
	hookstest.Cases{
		"a look": {At: hookstest.ToolCall("bash", `{"command":"git status"}`), Want: hooks.Mock, Leaving: "mocked"},
		"a push": {At: hookstest.ToolCall("bash", `{"command":"git push --force"}`), Want: hooks.Deny},
		"input":  {At: hookstest.Input(" hi "), Want: hooks.Rewrite, Leaving: "hi, please"},
	}.TestSet(t, set)
}

// The moments of a table may share what they have in common.
func TestMomentsAreValues(t *testing.T) {
	late := hooks.On(hooks.AtStepStart, "late", func(_ context.Context, c hooks.StepContext) hooks.Result {
		if c.StepIndex() > 1 {
			return c.Stop("late")
		}
		return c.Pass()
	})
	first := hookstest.StepStart().AfterSteps(agent.Step{})
	second, other := first.AfterSteps(agent.Step{}), first.AfterSteps()
	hookstest.Cases{
		"first":  {At: first},
		"other":  {At: other},
		"second": {At: second, Want: hooks.StopRun, Saying: "late"},
	}.Test(t, late)
}
