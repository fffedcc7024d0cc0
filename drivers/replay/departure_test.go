package replay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/hooks"
)

// onCall returns a hook before calls to one tool.
func onCall(tool string, answer func(hooks.ToolContext) hooks.Result) capability.Capability {
	return capability.UseHooks(hooks.On(hooks.AtPreToolUse, "guard",
		func(_ context.Context, c hooks.ToolContext) hooks.Result { return answer(c) }, hooks.ToolNamed(tool)))
}

// onAnswer returns a hook after calls to one tool.
func onAnswer(tool string, answer func(hooks.ToolResultContext) hooks.Result) capability.Capability {
	return capability.UseHooks(hooks.On(hooks.AtPostToolUse, "guard",
		func(_ context.Context, c hooks.ToolResultContext) hooks.Result { return answer(c) }, hooks.ToolNamed(tool)))
}

// onInput returns a hook before the runs that begin with a text.
func onInput(text string, answer func(hooks.InputContext) hooks.Result) capability.Capability {
	return capability.UseHooks(hooks.On(hooks.AtInputSubmitted, "guard",
		func(_ context.Context, c hooks.InputContext) hooks.Result {
			if c.Text() != text {
				return c.Pass()
			}
			return answer(c)
		}))
}

func TestWhereAPlayLeavesItsRecording(t *testing.T) {
	t.Parallel()
	const emma, zoe = "Is there a copy of Emma?", "Yes please, to Zoë."
	for name, tc := range map[string]struct {
		recording string
		with      capability.Capability
		want      []replay.Departure
		runs      int // that were played; zero means all
	}{
		"a hook that allows": {
			"sample/two-turns", onCall("lend_book", func(c hooks.ToolContext) hooks.Result { return c.Allow() }), nil, 0,
		},
		"a denied call": {
			"sample/two-turns", onCall("lend_book", func(c hooks.ToolContext) hooks.Result { return c.Deny("not today") }), []replay.Departure{{
				Kind: replay.CallDenied, Run: 1, Turn: 0, Call: "call_1", Tool: "lend_book", Worked: true,
				Detail: `tool "lend_book": denied by guard: not today`,
			}}, 0,
		},
		"a denied call that had failed": {
			"shapes/tool-failed", onCall("find_book", func(c hooks.ToolContext) hooks.Result { return c.Deny("") }),
			[]replay.Departure{{
				Kind: replay.CallDenied, Call: "a", Tool: "find_book",
				Detail: `tool "find_book": denied by guard: no reason given`,
			}}, 0,
		},
		"a denied call without an answer, and its twin": {
			"shapes/user-after-unanswered-calls", onCall("opening_hours", func(c hooks.ToolContext) hooks.Result { return c.Deny("shut") }),
			[]replay.Departure{{
				Kind: replay.CallDenied, Call: "c1", Tool: "opening_hours", Detail: `tool "opening_hours": denied by guard: shut`,
			}}, 0,
		},
		"denied calls that share an id": {
			"shapes/one-id-for-two-calls", onCall("find_book", func(c hooks.ToolContext) hooks.Result { return c.Deny("no") }),
			[]replay.Departure{
				{Kind: replay.CallDenied, Call: "x", Tool: "find_book", Worked: true, Detail: `tool "find_book": denied by guard: no`},
				{Kind: replay.CallDenied, Call: "x", Tool: "find_book", Worked: true, Detail: `tool "find_book": denied by guard: no`},
			}, 0,
		},
		"a denied call that breaks its schema": {
			"sample/malformed-arguments", onCall("find_book", func(c hooks.ToolContext) hooks.Result {
				if c.Invalid() != nil {
					return c.Deny("not like this")
				}
				return c.Allow()
			}),
			[]replay.Departure{
				{Kind: replay.CallNotRun, Turn: 0, Call: "c0", Tool: "find_book", Detail: `tool "find_book": not executed: reading arguments: not valid JSON at byte 1: invalid character '\'' at start of value`},
				{Kind: replay.CallDenied, Turn: 1, Call: "c1", Tool: "find_book", Detail: `tool "find_book": denied by guard: not like this`},
			}, 0,
		},
		"a denied call of an unknown tool": {
			"sample/greeting", onCall("no_such_tool", func(c hooks.ToolContext) hooks.Result { return c.Deny("who?") }),
			[]replay.Departure{{Kind: replay.CallDenied, Run: 1, Turn: 1, Call: "c0", Tool: "no_such_tool", Detail: `tool "no_such_tool": denied by guard: who?`}}, 0,
		},
		"a hook that cannot decide": {
			"sample/injected", onCall("lend_book", func(c hooks.ToolContext) hooks.Result { return c.Fail(errors.New("no idea")) }),
			[]replay.Departure{{
				Kind: replay.CallDenied, Turn: 1, Call: "c1", Tool: "lend_book", Worked: true,
				Detail: `tool "lend_book": not executed: guard: the hook could not decide: no idea`,
			}}, 0,
		},
		"a mocked call": {
			"sample/injected", onCall("find_book", func(c hooks.ToolContext) hooks.Result { return c.Mock("all on loan") }),
			[]replay.Departure{{Kind: replay.CallMocked, Call: "c0", Tool: "find_book", Worked: true, Detail: "all on loan"}}, 0,
		},
		"a rewritten call": {
			"sample/clean", onCall("find_book", func(c hooks.ToolContext) hooks.Result { return c.Rewrite(json.RawMessage(`{"title":"Emma","most":3}`)) }),
			[]replay.Departure{{
				Kind: replay.CallRewritten, Call: "c0", Tool: "find_book", Worked: true,
				Detail: `{"title": "Emma"} became {"title":"Emma","most":3}`,
			}}, 0,
		},
		"a replaced answer": {
			"sample/two-turns", onAnswer("opening_hours", func(c hooks.ToolResultContext) hooks.Result { return c.Replace("closed") }),
			[]replay.Departure{{Kind: replay.AnswerChanged, Run: 1, Call: "call_2", Tool: "opening_hours", Worked: true, Detail: "closed"}}, 0,
		},
		"a withheld answer": {
			"sample/injected", onAnswer("find_book", func(c hooks.ToolResultContext) hooks.Result { return c.Withhold("orders in it") }),
			[]replay.Departure{{
				Kind: replay.AnswerChanged, Call: "c0", Tool: "find_book", Worked: true,
				Detail: `tool "find_book": result withheld by guard: orders in it`,
			}}, 0,
		},
		"an answer replaced by itself": {
			"sample/two-turns", onAnswer("opening_hours", func(c hooks.ToolResultContext) hooks.Result { return c.Replace(c.Text()) }), nil, 0,
		},
		"a stopped run": {
			"sample/two-turns", onCall("find_book", func(c hooks.ToolContext) hooks.Result { return c.Stop("enough") }),
			[]replay.Departure{
				{Kind: replay.CallNotRun, Call: "call_1", Tool: "find_book", Worked: true, Detail: "not executed: run stopped by guard: enough"},
				{Kind: replay.TurnsLeft, Turn: 1, Detail: "1 of 2 turns were not played: the run is stopped by guard (hook)"},
			}, 0,
		},
		"a limit": {
			"shapes/user-in-the-middle", capability.UseGuards{Steps: 2},
			[]replay.Departure{{Kind: replay.TurnsLeft, Turn: 2, Detail: "1 of 3 turns were not played: the run is stopped by continuation.Steps (steps_limit)"}}, 0,
		},
		"a replaced reply": {
			"sample/clean", capability.UseHooks(hooks.On(hooks.AtPostInference, "guard", func(_ context.Context, c hooks.ReplyContext) hooks.Result {
				if c.State().RunStepCount() == 1 {
					return c.ReplaceText("No.")
				}
				return c.Allow()
			})),
			[]replay.Departure{{Kind: replay.ReplyChanged, Turn: 1, Detail: "the model's turn was replaced"}}, 0,
		},
		"something added before a turn": {
			"sample/clean", capability.UseHooks(hooks.On(hooks.AtStepStart, "tips", func(_ context.Context, c hooks.StepContext) hooks.Result {
				if c.StepIndex() == 1 {
					return c.Allow(agent.AddContext("be brief"))
				}
				return c.Allow()
			})),
			[]replay.Departure{{Kind: replay.ContextChanged, Turn: 1, Detail: `an additional message from "tips": "be brief"`}}, 0,
		},
		"something added after the last turn": {
			"sample/injected", capability.UseHooks(hooks.On(hooks.AtStepEnd, "notes", func(_ context.Context, c hooks.StepEndContext) hooks.Result {
				if c.Kind() == agent.StepFinalResponse {
					return c.Allow(agent.AddMessage(agent.System("all done")))
				}
				return c.Allow()
			})),
			[]replay.Departure{{Kind: replay.ContextChanged, Turn: 3, Detail: `an additional message from "notes": "all done"`}}, 0,
		},
		"an answer of the assistant's put in by a hook": {
			"sample/clean", capability.UseHooks(hooks.On(hooks.AtStepStart, "ghost", func(_ context.Context, c hooks.StepContext) hooks.Result {
				if c.StepIndex() == 0 {
					return c.Allow(agent.AddMessage(agent.Assistant("Hm.")))
				}
				return c.Allow()
			})),
			[]replay.Departure{{Kind: replay.ContextChanged, Detail: `an additional message from "ghost": "Hm."`}}, 0,
		},
		"denied input": {
			"sample/two-turns", onInput(zoe, func(c hooks.InputContext) hooks.Result { return c.Deny("who is Zoë?") }),
			[]replay.Departure{
				{Kind: replay.ContextChanged, Run: 1, Detail: `missing the message "Yes please, to Zoë."`},
				{Kind: replay.TurnsLeft, Run: 1, Detail: "2 of 2 turns were not played: the run is denied by guard (denied)"},
			}, 0,
		},
		"denied input without an answer": {
			"shapes/last-is-a-user", onInput("Thanks!", func(c hooks.InputContext) hooks.Result { return c.Deny("no thanks") }),
			[]replay.Departure{{Kind: replay.ContextChanged, Run: 1, Detail: `missing the message "Thanks!"`}}, 0,
		},
		"rewritten input": {
			"sample/cut-off", onInput(emma, func(c hooks.InputContext) hooks.Result { return c.RewriteText("Where is Emma?") }),
			[]replay.Departure{{
				Kind: replay.ContextChanged, Detail: `expected the message "Is there a copy of Emma?", got "Where is Emma?"`,
			}}, 0,
		},
		"a run that must go on where the recording ends": {
			"sample/injected", capability.UseHooks(hooks.On(hooks.AtStop, "more", func(_ context.Context, c hooks.StopContext) hooks.Result { return c.Continue("Tell me more.") })),
			[]replay.Departure{
				{Kind: replay.ContextChanged, Turn: 3, Detail: `an additional message from "more": "Tell me more."`},
				{Kind: replay.AskedForMore, Turn: 3, Detail: "the run needed another turn, but the recording ends here"},
			}, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := session(t, tc.recording)
			played, err := x.Play(t.Context(), player(t, tc.with))
			require.NoError(t, err)
			assert.Equal(t, x.Runs(), played.Runs)
			assert.Equal(t, tc.want, played.Departures)
			first, left := played.FirstDeparture()
			assert.Equal(t, len(tc.want) > 0, left)
			if left {
				assert.Equal(t, tc.want[0], first)
			}
		})
	}
}

// After a stop and after denied input the user speaks again, as recorded.
func TestTheUserSpeaksOnAfterAStoppedRun(t *testing.T) {
	t.Parallel()
	how := &ends{}
	x := session(t, "sample/two-turns")
	played, err := x.Play(t.Context(), player(t, capability.UseObserver(how),
		onCall("find_book", func(c hooks.ToolContext) hooks.Result { return c.Stop("enough") })))
	require.NoError(t, err)
	assert.Equal(t, []string{"stopped: hook by guard", "done: completed by agent", "stopped: recording_ended by replay"}, how.said)
	assert.Equal(t, 3, played.State.StepCount())
}

// Without GoOn a model that speaks twice in a row is heard once.
func TestWithoutGoOnTheRunEndsAtTheFirstAnswer(t *testing.T) {
	t.Parallel()
	x := session(t, "shapes/twice-in-a-row")
	build := builder.New().WithDriver(replay.Driver{}).With(capability.UseTools(libraryTools(t)...))
	a, err := build.Build().Get()
	require.NoError(t, err)
	played, err := x.Play(t.Context(), a)
	require.NoError(t, err)
	assert.Equal(t, []replay.Departure{{
		Kind: replay.TurnsLeft, Turn: 1, Detail: "3 of 4 turns were not played: the run is done by agent (completed)",
	}}, played.Departures)

	// A Stop hook makes it go on, and says so to the model.
	a, err = build.With(capability.UseHooks(hooks.On(hooks.AtStop, "go-on", func(_ context.Context, c hooks.StopContext) hooks.Result {
		return lo.Ternary(c.Continuations() == 0, c.Continue("Do it."), c.Allow())
	}))).Build().Get()
	require.NoError(t, err)
	played, err = x.Play(t.Context(), a)
	require.NoError(t, err)
	assert.Equal(t, []replay.Departure{
		{Kind: replay.ContextChanged, Turn: 1, Detail: `an additional message from "go-on": "Do it."`},
		{Kind: replay.TurnsLeft, Turn: 3, Detail: "1 of 4 turns were not played: the run is done by agent (completed)"},
	}, played.Departures)
}

func TestAPlayEndsWithARunThatFails(t *testing.T) {
	t.Parallel()
	x := session(t, "sample/two-turns")
	broken := errors.New("the disk is full")
	played, err := x.Play(t.Context(), player(t, capability.UseHooks(hooks.On(hooks.AtPreToolUse, "guard",
		func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Fail(broken) }, hooks.ToolNamed("lend_book")).WithFailure(hooks.Abort))))
	require.ErrorIs(t, err, broken)
	assert.ErrorContains(t, err, `replay "sample/two-turns": run 2: `)
	assert.Equal(t, 2, played.Runs)
	assert.Equal(t, agent.StatusFailed, played.State.Status())
	assert.Equal(t, 3, played.State.StepCount())
	kinds := lo.Map(played.Departures, func(d replay.Departure, _ int) string { return fmt.Sprint(d.Run, d.Turn, d.Kind, d.Call) })
	assert.Equal(t, []string{"1 0not_runcall_1", "1 0not_runcall_2", "1 1turns_left"}, kinds)
}

func TestACancelledPlayEnds(t *testing.T) {
	t.Parallel()
	x := session(t, "sample/two-turns")
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	played, err := x.Play(ctx, player(t, onCall("lend_book", func(c hooks.ToolContext) hooks.Result {
		cancel(enough)
		return c.Allow()
	})))
	require.ErrorIs(t, err, enough)
	assert.Equal(t, 2, played.Runs)
	assert.Equal(t, agent.StatusCancelled, played.State.Status())
	for _, step := range played.State.Steps() {
		assert.Equal(t, step.Message().CallCount(), step.ResultCount())
	}
	left, ok := played.FirstDeparture()
	require.True(t, ok)
	assert.Equal(t, 1, left.Run)
}

// A call from a hook does not get another tool's recorded answer.
func TestOnlyTheRecordedToolGetsTheRecordedAnswer(t *testing.T) {
	t.Parallel()
	x := session(t, "sample/clean")
	played, err := x.Play(t.Context(), player(t, capability.UseHooks(hooks.On(hooks.AtPostInference, "swap",
		func(_ context.Context, c hooks.ReplyContext) hooks.Result {
			reply := c.Reply()
			if reply.Message.CallCount() > 0 {
				reply.Message = agent.Assistant("", agent.ToolCall{ID: "c0", Name: "opening_hours"})
			}
			return c.Replace(reply)
		}))))
	require.NoError(t, err)
	for _, step := range played.State.Steps() {
		for _, r := range step.Results() {
			assert.Equal(t, agent.ToolFailed, r.Status)
			assert.Equal(t, `tool "opening_hours": failed: the recording "sample/clean" has no answer to call c0`, r.Text())
		}
	}
	assert.Equal(t, []replay.Departure{{Kind: replay.ReplyChanged, Detail: "the model's turn was replaced"}}, played.Departures)
}

// The input of a recording may be given to another model: where it says something else, that is the departure.
func TestAnotherModelLeavesTheRecording(t *testing.T) {
	t.Parallel()
	said := []string{"Yes, copy 17 is on the shelf.", "Anything else?", "No?"}
	a, err := builder.New().With(capability.UseGuards{Steps: 3}, capability.UseCriteria(agent.CriterionFunc(
		func(context.Context, agent.State) (agent.Evaluation, error) {
			return agent.Evaluation{Verdict: agent.RequestContinuation}, nil
		}))).
		WithDriver(agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
			return agent.Step{Message: agent.Assistant(said[s.RunStepCount()])}, nil
		})).Build().Get()
	require.NoError(t, err)
	played, err := session(t, "sample/clean").Play(t.Context(), a)
	require.NoError(t, err)
	assert.Equal(t, []replay.Departure{
		{Kind: replay.ReplyChanged, Turn: 0, Detail: "the model's turn was replaced"},
		{Kind: replay.ReplyChanged, Turn: 1, Detail: "the model's turn was replaced"},
		{Kind: replay.AskedForMore, Turn: 3, Detail: "the run needed another turn, but the recording ends here"},
	}, played.Departures)
}

func ExampleDeparture() {
	fmt.Println(replay.Departure{
		Kind: replay.CallDenied, Run: 1, Turn: 0, Call: "c3", Tool: "lend_book", Worked: true, Detail: "denied by guard: not today",
	})
	// Output: run 2, turn 1, call c3 of lend_book: denied: denied by guard: not today
}
