package continuation_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/continuation"
)

// IP-82
func TestFinishReasonInTheListEndsTheRun(t *testing.T) {
	cut := call("t")
	cut.step.FinishReason = agent.FinishLength
	final, err := run(t, agent.Config{
		Driver: turns(call("t"), cut), Executor: works,
		Criterion: continuation.All(agent.Base, continuation.FinishReason(agent.FinishFilter, agent.FinishLength)),
	})
	require.NoError(t, err)
	assert.Equal(t, 2, final.RunStepCount())
	assert.Equal(t, agent.StatusDone, final.Status())
	assert.Equal(t, agent.Signal{
		Reason: agent.StopFinishReason, Source: "continuation.FinishReason", Message: `the model ended its turn for "length"`,
		Details: map[string]any{"finishReason": "length", "finishReasons": []string{"content_filter", "length"}},
	}, signal(t, final))
}

// IP-82: not in the list, not said, no list, no step, no reply.
func TestFinishReasonPasses(t *testing.T) {
	unsaid := answer("a")
	unsaid.step.FinishReason = ""
	for name, tc := range map[string]struct {
		last    turn
		reasons []agent.FinishReason
	}{
		"another reason":   {answer("a"), []agent.FinishReason{agent.FinishLength}},
		"no reason":        {unsaid, []agent.FinishReason{agent.FinishLength, ""}},
		"an empty list":    {answer("a"), nil},
		"a failed call":    {fail(errors.New("down")), []agent.FinishReason{agent.FinishStop, ""}},
		"nothing said yet": {turn{}, []agent.FinishReason{agent.FinishStop, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			final, _ := run(t, agent.Config{Driver: turns(tc.last)})
			got := continuation.FinishReason(tc.reasons...).Evaluate(t.Context(), final).MustGet()
			assert.Equal(t, agent.Evaluation{}, got)
		})
	}
	got := continuation.FinishReason(agent.FinishStop).Evaluate(t.Context(), agent.State{}).MustGet()
	assert.Equal(t, agent.Evaluation{}, got, "no step yet")
}

// The criterion of those who do without Base.
func TestToolCallPresence(t *testing.T) {
	presence := continuation.ToolCallPresence()
	final, err := run(t, agent.Config{
		Driver: turns(call("t"), call("t"), answer("a")), Executor: works, Criterion: presence,
	})
	require.NoError(t, err)
	assert.Equal(t, 3, final.RunStepCount())
	assert.Equal(t, agent.StatusDone, final.Status())
	assert.Equal(t, agent.Signal{Reason: agent.StopCompleted, Source: "continuation.ToolCallPresence"}, signal(t, final))

	down := errors.New("down")
	final, err = run(t, agent.Config{
		Driver: turns(call("t"), fail(down)), Executor: works, Criterion: continuation.All(presence, continuation.ErrorPolicy{}),
	})
	require.ErrorIs(t, err, down, "a failed step is left to the policy")
	assert.Equal(t, agent.Evaluation{}, presence.Evaluate(t.Context(), final).MustGet())
	assert.Equal(t, agent.Evaluation{}, presence.Evaluate(t.Context(), agent.State{}).MustGet())
}
