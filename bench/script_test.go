package bench_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/bench"
)

func TestScriptGoesByTheLastMessageAlone(t *testing.T) {
	script, err := bench.NewScript(bench.Job{Steps: 2})
	require.NoError(t, err)

	first, err := script.Reply(bench.RoleUser, "")
	require.NoError(t, err)
	require.Len(t, first, 1)
	second, err := script.Reply(bench.RoleTool, first[0])
	require.NoError(t, err)
	require.Len(t, second, 1)
	assert.NotEqual(t, first, second, "each call has its own id")

	again, err := script.Reply(bench.RoleTool, first[0])
	require.NoError(t, err)
	assert.Equal(t, second, again, "the same last message gets the same reply")

	end, err := script.Reply(bench.RoleTool, second[0])
	require.NoError(t, err)
	assert.Empty(t, end, "after the last step the model answers")
}

func TestScriptAsksForSeveralCallsAtOnce(t *testing.T) {
	script, err := bench.NewScript(bench.Job{Steps: 2, Calls: 3})
	require.NoError(t, err)

	first, err := script.Reply(bench.RoleUser, "")
	require.NoError(t, err)
	assert.Equal(t, []string{"call_0", "call_1", "call_2"}, first)
	_, err = script.Reply(bench.RoleTool, "call_1")
	require.ErrorContains(t, err, `answers call "call_1", which was not the last of its step`)
	second, err := script.Reply(bench.RoleTool, "call_2")
	require.NoError(t, err)
	assert.Equal(t, []string{"call_3", "call_4", "call_5"}, second)
	end, err := script.Reply(bench.RoleTool, "call_5")
	require.NoError(t, err)
	assert.Empty(t, end)
}

func TestScriptRefusesATranscriptThatIsNotItsOwn(t *testing.T) {
	script, err := bench.NewScript(bench.Job{Steps: 2})
	require.NoError(t, err)

	_, err = script.Reply(bench.RoleAssistant, "")
	require.ErrorContains(t, err, `the last message is of role "assistant"`)
	_, err = script.Reply(bench.RoleTool, "past_0")
	require.ErrorContains(t, err, `answers call "past_0", which it never made`)
}

func TestOutcomeStartsTheCountAnew(t *testing.T) {
	script, err := bench.NewScript(bench.Job{Steps: 1})
	require.NoError(t, err)
	script.Add(1, 2)
	script.Hook(bench.ToolName)
	script.Hook("another tool")

	first, second := script.Outcome(nil), script.Outcome(nil)
	assert.Equal(t, []int{1, 1, 3}, []int{first.ToolRuns, first.HookCalls, first.Sum})
	assert.Equal(t, []int{0, 0, 0}, []int{second.ToolRuns, second.HookCalls, second.Sum})
}

func TestScriptOfAnyOrderGoesByTheStep(t *testing.T) {
	script, err := bench.NewScript(bench.Job{Steps: 2, Calls: 3})
	require.NoError(t, err)
	script.AnyOrder()
	for _, last := range []string{"call_0", "call_1", "call_2"} {
		next, err := script.Reply(bench.RoleTool, last)
		require.NoError(t, err)
		assert.Equal(t, []string{"call_3", "call_4", "call_5"}, next, last)
	}
}
