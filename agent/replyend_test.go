package agent_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
)

// noting returns an executor that notes the calls that ran.
func noting(ran *[]string) agent.Executor {
	return agenttest.Tools{"note": func(_ context.Context, c agent.ToolCall) (string, error) {
		*ran = append(*ran, c.ID)
		return "noted", nil
	}}.Executor()
}

// unfinishedReplies are the finish reasons of replies with two calls, and the calls that may run.
var unfinishedReplies = map[agent.FinishReason]struct{ ran, says string }{
	"": {"a b", ""}, agent.FinishStop: {"a b", ""}, agent.FinishToolCalls: {"a b", ""}, "tool_use": {"a b", ""}, "end_turn": {"a b", ""}, "EOS": {"a b", ""},
	agent.FinishPause:  {"a b", ""},
	agent.FinishFilter: {"", "withheld"}, "refusal": {"", "withheld"}, "SAFETY": {"", "withheld"}, "content-filter": {"", "withheld"},
	agent.FinishError: {"", "because of an error"}, "network_error": {"", "because of an error"}, "MALFORMED_FUNCTION_CALL": {"", "because of an error"},
	"what is this":     {"", `the unknown reason "what is this"`},
	agent.FinishLength: {"a", "cut at its token limit"}, "max_tokens": {"a", "cut at its token limit"}, "MAX_TOKENS": {"a", "cut at its token limit"},
}

func twoCalls() agent.Message {
	return agent.Assistant("", agent.ToolCall{ID: "a", Name: "note", Arguments: `{}`}, agent.ToolCall{ID: "b", Name: "note", Arguments: `{}`})
}

// checkUnfinished checks the answers to the two calls of the first step.
func checkUnfinished(t *testing.T, final agent.State, ran []string, want struct{ ran, says string }) {
	t.Helper()
	assert.Equal(t, want.ran, strings.Join(ran, " "), "the calls that ran")
	assert.Equal(t, "done", final.Answer(), "the run goes on, and the model sees an answer to each call")
	step, _ := first(final.RunSteps())
	require.Equal(t, 2, step.ResultCount())
	for _, r := range step.Results() {
		if strings.Contains(want.ran, r.CallID()) {
			assert.Equal(t, agent.ToolExecuted, r.Status)
			continue
		}
		assert.Equal(t, agent.ToolNotExecuted, r.Status)
		assert.Equal(t, agent.ReasonUnfinishedReply, r.Reason)
		assert.Zero(t, r.Attempts)
		assert.Contains(t, r.Text(), "not executed: ")
		assert.Contains(t, r.Text(), want.says)
	}
}

func TestCallsOfAnUnfinishedReplyDoNotRun(t *testing.T) {
	for reason, want := range unfinishedReplies {
		for _, streaming := range []bool{false, true} {
			t.Run(string(reason), func(t *testing.T) {
				var ran []string
				a := build(t, agent.Config{
					Driver:   agenttest.Script(agenttest.Reply(agent.Step{Message: twoCalls(), FinishReason: reason}), agenttest.Say("done")),
					Executor: noting(&ran),
				})
				if !streaming {
					checkUnfinished(t, a.Run(t.Context(), agent.NewState(), agent.UserText("go")).MustGet(), ran, want)
					return
				}
				var final agent.State
				for p, err := range a.Stream(t.Context(), agent.NewState(), agent.UserText("go")) {
					require.NoError(t, err)
					final = p.State
				}
				checkUnfinished(t, final, ran, want)
			})
		}
	}
}

// A run that stopped between the reply and its calls does the same when it is resumed.
func TestCallsOfAnUnfinishedReplyDoNotRunAfterARestart(t *testing.T) {
	for reason, want := range unfinishedReplies {
		t.Run(string(reason), func(t *testing.T) {
			var ran []string
			a := build(t, agent.Config{Driver: agenttest.Script().Then(agenttest.Say("done")), Executor: noting(&ran)})
			running := caught(t, a, agent.NewState(agent.UserText("go")))
			open := agent.Checkpoint(running).WithOpenStep(agent.Step{Message: twoCalls(), FinishReason: reason}, time.Now())
			journal, err := agent.Checkpoint(open).Changes(agent.State{})
			require.NoError(t, err)
			restored, err := agent.Restore(journal)
			require.NoError(t, err)
			final, err := a.Resume(t.Context(), restored).Get()
			require.NoError(t, err)
			checkUnfinished(t, final, ran, want)
		})
	}
}

// A paused turn continues with the next step, and its texts are one answer; a service that always pauses ends the run.
func TestPausedTurnContinues(t *testing.T) {
	pause := func(text string) agenttest.Turn { return agenttest.Say(text).WithFinish(agent.FinishPause) }
	final := play(t, pause("one, "), pause("two, "), agenttest.Say("three"))
	assert.Equal(t, agent.StopCompleted, signalOf(t, final).Reason)
	assert.Equal(t, "one, two, three", final.Answer())
	assert.Equal(t, 3, final.RunStepCount())

	final = play(t, pause("one, "), calls("add"), agenttest.Say("three"))
	assert.Equal(t, "three", final.Answer(), "calls end the paused turn")

	turns := make([]agenttest.Turn, 40)
	for i := range turns {
		turns[i] = pause("")
	}
	final = play(t, turns...)
	assert.Equal(t, 16, final.RunStepCount())
	signal := signalOf(t, final)
	assert.Equal(t, agent.StopFinishReason, signal.Reason)
	assert.Equal(t, map[string]any{"finishReason": "pause_turn", "emptyReply": true}, signal.Details)
}
