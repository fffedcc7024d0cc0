package fire_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/fire"
)

var once = hooks.On(hooks.AtPreToolUse, "once", func(_ context.Context, c hooks.ToolContext) hooks.Result {
	for _, step := range c.State().RunSteps() {
		for _, result := range step.Results() {
			if result.Tool() == c.Call().Name && !result.IsError() {
				return c.Deny(fmt.Sprintf("call %s has done that already", result.CallID()))
			}
		}
	}
	return c.Allow()
})

func Example() {
	before := agent.Step{Message: agent.Assistant("").WithCalls(agent.ToolCall{ID: "call_a", Name: "pay", Arguments: `{}`})}
	fired := fire.ToolCall("pay", `{}`).AfterSteps(before).Fire(context.Background(), hooks.NewSet(once)).MustGet()
	fmt.Println(fired)
	// Output: deny by once: call call_a has done that already
}

// What tools answered before the moment is what Answering says, calls that did not run
// included.
func TestWhatToolsAnsweredBefore(t *testing.T) {
	steps := make([]agent.Step, 3)
	for i := range steps {
		steps[i].Message = agent.Assistant("").WithCalls(agent.ToolCall{ID: fmt.Sprint("c", i), Name: "pay", Arguments: `{}`})
	}
	answers := []agent.ToolResult{
		{Status: agent.ToolNotExecuted, Reason: agent.ReasonDenied, Content: agent.TextContent("denied")},
		{Reason: agent.ReasonError, Content: agent.TextContent("no money"), Status: agent.ToolFailed, Err: errors.New("no money"), Attempts: 1},
		{Content: agent.TextContent("paid"), Status: agent.ToolMocked},
	}
	var seen []string
	look := hooks.ObserveAll("look", func(_ context.Context, c hooks.Context) error {
		for _, step := range c.State().RunSteps() {
			for _, r := range step.Results() {
				seen = append(seen, fmt.Sprint(r.CallID(), " ", r.Status, " ", r.Denied(), " ", r.Text()))
			}
		}
		return nil
	}, hooks.PreToolUse)
	fired, err := fire.ToolCall("pay", `{}`).WithCallID("now").AfterSteps(steps...).
		Answering(func(step int, _ agent.ToolCall) (agent.ToolResult, bool) { return answers[step], true }).
		Fire(t.Context(), hooks.NewSet(look)).Get()
	require.NoError(t, err)
	assert.Equal(t, "now", fired.Call.ID)
	assert.Equal(t, []string{"c0 not_executed true denied", "c1 failed false no money", "c2 mocked false paid"}, seen)
}

func TestOnlyOneCallHasAnID(t *testing.T) {
	_, err := fire.Input("hi").WithCallID("x").Fire(t.Context(), hooks.NewSet(once)).Get()
	assert.ErrorContains(t, err, "WithCallID: there is no call at InputSubmitted")
}
