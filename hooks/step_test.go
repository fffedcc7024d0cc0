package hooks_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/continuation"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/processor"
	"github.com/grapnel-go/grapnel/toolexec"
)

func beforeStep(name string, f func(c hooks.StepContext) hooks.Result) hooks.Hook {
	return hooks.On(hooks.AtStepStart, name, func(_ context.Context, c hooks.StepContext) hooks.Result { return f(c) })
}

func afterStep(name string, f func(c hooks.StepEndContext) hooks.Result) hooks.Hook {
	return hooks.On(hooks.AtStepEnd, name, func(_ context.Context, c hooks.StepEndContext) hooks.Result { return f(c) })
}

// IP-116: the model is shown the additions of a hook before a step in that step.
func TestStepHooksAdd(t *testing.T) {
	count := agent.RunKey[int]("count")
	end := play(t, agenttest.Script(agenttest.Call("echo", `{"text":"x"}`), agenttest.Say("done")), []hooks.Hook{
		beforeStep("before", func(c hooks.StepContext) hooks.Result {
			return c.Allow(agent.AddContext(fmt.Sprintf("before %d", c.StepIndex())), count.Set(count.Or(c.State(), 0)+1))
		}),
		afterStep("after", func(c hooks.StepEndContext) hooks.Result {
			return c.Allow(agent.AddContext(fmt.Sprintf("after %d", c.StepIndex())))
		}),
	})
	require.NoError(t, end.err)
	assert.Equal(t, "user: hello\nuser: before 0\n", end.driver.Calls()[0].Transcript())
	assert.Equal(t, `user: hello
user: before 0
assistant calls echo {"text":"x"}
tool echo (executed): x
user: after 0
user: before 1
assistant: done
user: after 1
`, agenttest.Transcript(end.State))
	assert.Equal(t, 2, count.Or(end.State, 0))
}

func TestStepHooksStop(t *testing.T) {
	for name, tc := range map[string]struct {
		hook  hooks.Hook
		steps int
	}{
		"before the first step": {beforeStep("stops", func(c hooks.StepContext) hooks.Result { return c.Stop("enough") }), 0},
		"before the second step": {beforeStep("stops", func(c hooks.StepContext) hooks.Result {
			return lo.Ternary(c.StepIndex() == 1, c.Stop("enough"), c.Allow())
		}), 1},
		"after the first step": {afterStep("stops", func(c hooks.StepEndContext) hooks.Result { return c.Stop("enough") }), 1},
		"after the answer": {afterStep("stops", func(c hooks.StepEndContext) hooks.Result {
			return lo.Ternary(c.Kind() == agent.StepFinalResponse, c.Stop("enough"), c.Allow())
		}), 2},
	} {
		t.Run(name, func(t *testing.T) {
			after := 0
			end := play(t, agenttest.Script(agenttest.Call("echo", `{}`), agenttest.Say("done")), []hooks.Hook{
				// Told behind the one that stops, and told of steps that took place only.
				hooks.Observe(hooks.AtStepEnd, "told", func(context.Context, hooks.StepEndContext) error { after++; return nil }),
				tc.hook,
			})
			require.NoError(t, end.err)
			assert.Equal(t, agent.StatusStopped, end.Status())
			assert.Equal(t, agent.Signal{Reason: agent.StopByHook, Message: "enough", Source: "stops"}, end.signal())
			assert.Equal(t, tc.steps, end.RunStepCount())
			assert.Equal(t, tc.steps, after)
			assert.Equal(t, tc.steps, end.count("step.completed"))
			assert.Len(t, end.driver.Calls(), tc.steps)
		})
	}
}

func TestFirstStopEndsTheAsking(t *testing.T) {
	asked := false
	end := play(t, agenttest.Script(), []hooks.Hook{
		beforeStep("first", func(c hooks.StepContext) hooks.Result { return c.Stop("one") }),
		beforeStep("second", func(c hooks.StepContext) hooks.Result { asked = true; return c.Stop("two") }),
	})
	assert.Equal(t, "one", end.signal().Message)
	assert.False(t, asked)
}

// LH-56, LH-57
func TestStepEndKnowsTheStepAndTheRun(t *testing.T) {
	type told struct {
		index, tools   int
		kind           agent.StepKind
		content, last  string
		took, elapsed  time.Duration
		tokens         int64
		cost           float64
		goesOn         bool
		called, result []string
	}
	synctest.Test(t, func(t *testing.T) {
		var got []told
		slow := toolexec.Func("slow", "Takes its time.", func(ctx context.Context, _ struct{}) (string, error) {
			time.Sleep(2 * time.Second)
			return "slept", nil
		})
		end := play(t, agenttest.Script(
			agenttest.Reply(agent.Step{
				Message: agent.Assistant("I look", agent.ToolCall{Name: "slow", Arguments: "{}"}, agent.ToolCall{Name: "echo", Arguments: `{"text":"x"}`}),
			}),
			agenttest.Call("slow", `{}`).WithTokens(10, 5).WithCost(0.5),
			agenttest.Say("done").WithTokens(20, 5).WithCost(0.25),
		), []hooks.Hook{
			afterStep("track", func(c hooks.StepEndContext) hooks.Result {
				r := told{
					index: c.StepIndex(), tools: c.RunToolCalls(), kind: c.Kind(), content: c.Content(), last: c.LastContent(),
					took: c.Duration(), elapsed: c.Elapsed(), tokens: c.RunUsage().Tokens(), cost: c.Record().Usage().Cost.OrElse(-1), goesOn: c.ShouldContinue(),
				}
				for name := range c.Record().Tools() {
					r.called = append(r.called, name)
				}
				for _, result := range c.Record().Results() {
					r.result = append(r.result, result.Text())
				}
				got = append(got, r)
				return c.Pass()
			}),
		}, capability.UseTools(slow))
		require.NoError(t, end.err)
		assert.Equal(t, []told{
			{0, 2, agent.StepToolExecution, "I look", "I look", 2 * time.Second, 2 * time.Second, 0, -1, true, []string{"slow", "echo"}, []string{"slept", "x"}},
			{1, 3, agent.StepToolExecution, "", "I look", 2 * time.Second, 4 * time.Second, 15, 0.5, true, []string{"slow"}, []string{"slept"}},
			{2, 3, agent.StepFinalResponse, "done", "done", 0, 4 * time.Second, 40, 0.25, false, nil, nil},
		}, got)
	})
}

// The totals belong to the run: one hook serves many runs at the same time, and a second
// run of a session starts at zero.
func TestTotalsAreOfTheRun(t *testing.T) {
	var got []int
	a := hookedAgent(t, agenttest.Script(agenttest.Call("echo", `{}`), agenttest.Say("x")).EachRun(), nil, []hooks.Hook{
		afterStep("track", func(c hooks.StepEndContext) hooks.Result { got = append(got, c.RunToolCalls()); return c.Pass() }),
	})
	session := a.Session(agent.NewState())
	for range 2 {
		require.NoError(t, session.Run(t.Context(), agent.UserText("go")).Error())
	}
	assert.Equal(t, []int{1, 1, 1, 1}, got)
}

// IP-85: a hook before the step that fails the run: a step began, none was taken.
func TestBrokenHookBeforeTheStep(t *testing.T) {
	boom := errors.New("boom")
	kept := agent.RunKey[bool]("kept")
	after := false
	end := play(t, agenttest.Script(), []hooks.Hook{
		beforeStep("first", func(c hooks.StepContext) hooks.Result { return c.Allow(kept.Set(true)) }),
		beforeStep("broken", func(c hooks.StepContext) hooks.Result { return c.Fail(boom) }).WithFailure(hooks.Abort),
		afterStep("after", func(c hooks.StepEndContext) hooks.Result { after = true; return c.Pass() }),
	})
	require.ErrorIs(t, end.err, boom)
	assert.Equal(t, agent.StatusFailed, end.Status())
	assert.Equal(t, 1, end.count("step.started"))
	assert.Zero(t, end.count("step.completed"))
	assert.Zero(t, end.RunStepCount())
	assert.False(t, after)
	assert.True(t, kept.Or(end.State, false), "what was done before is in the last good state")
}

// IP-86, IP-91: a failed step is recorded once, and the hooks are called for it.
func TestStepEndIsToldOfFailedSteps(t *testing.T) {
	down := errors.New("down")
	var kinds []agent.StepKind
	end := play(t, agenttest.Script(agenttest.Call("echo", `{}`), agenttest.Fail(down)), []hooks.Hook{
		afterStep("after", func(c hooks.StepEndContext) hooks.Result {
			kinds = append(kinds, c.Kind())
			return c.Allow(agent.AddContext("told"))
		}),
	})
	require.ErrorIs(t, end.err, down)
	assert.Equal(t, agent.StatusFailed, end.Status())
	assert.Equal(t, []agent.StepKind{agent.StepToolExecution, agent.StepFailure}, kinds)
	assert.Equal(t, 2, end.RunStepCount())
	assert.Equal(t, 2, end.count("step.completed"))
	require.ErrorIs(t, end.LastStep().Failure(), down)
	assert.Equal(t, "told", end.LastMessage().Text())
}

// The criteria still judge a failed step that a hook was told of.
func TestErrorPolicyWorksAroundHooks(t *testing.T) {
	ends := 0
	end := play(t, agenttest.Script(agenttest.Fail(errors.New("down")), agenttest.Say("up")), []hooks.Hook{
		afterStep("after", func(c hooks.StepEndContext) hooks.Result { ends++; return c.Allow(agent.AddContext("told")) }),
	}, capability.UseErrorPolicy(continuation.ErrorPolicy{Model: continuation.Retry, MaxRetries: 1}))
	require.NoError(t, end.err)
	assert.Equal(t, "up", end.Answer())
	assert.Equal(t, 2, ends)
}

// IP-86: a hook after the step that fails the run does not lose the step.
func TestBrokenHookAfterTheStepKeepsTheStep(t *testing.T) {
	boom, down := errors.New("boom"), errors.New("down")
	broken := afterStep("broken", func(c hooks.StepEndContext) hooks.Result { return c.Fail(boom) }).WithFailure(hooks.Abort)
	for name, tc := range map[string]struct {
		turn agenttest.Turn
		errs []error
	}{
		"a good step":   {agenttest.Call("echo", `{"text":"x"}`), []error{boom}},
		"a failed step": {agenttest.Fail(down), []error{boom, down}},
	} {
		t.Run(name, func(t *testing.T) {
			end := play(t, agenttest.Script(tc.turn), []hooks.Hook{broken})
			for _, want := range tc.errs {
				require.ErrorIs(t, end.err, want)
			}
			assert.Equal(t, agent.StatusFailed, end.Status())
			assert.Equal(t, 1, end.RunStepCount())
			assert.Equal(t, 1, end.count("step.completed"))
		})
	}
}

// A failed hook with the policy Abort fails the run, regardless of the error policy and
// the retries.
func TestAbortIsNotRetried(t *testing.T) {
	boom := errors.New("boom")
	lenient := []capability.Capability{
		capability.UseErrorPolicy(continuation.ErrorPolicy{
			Tool: continuation.Retry, Model: continuation.Retry, Unknown: continuation.Retry, MaxRetries: 5,
		}),
		capability.UseStepProcessor("retry", processor.Retry{Delay: -1}),
	}
	for name, hook := range map[string]hooks.Hook{
		"PreInference":  hooks.On(hooks.AtPreInference, "broken", func(_ context.Context, c hooks.InferenceContext) hooks.Result { return c.Fail(boom) }),
		"PostInference": hooks.On(hooks.AtPostInference, "broken", func(_ context.Context, c hooks.ReplyContext) hooks.Result { return c.Fail(boom) }),
		"PreToolUse":    hooks.On(hooks.AtPreToolUse, "broken", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Fail(boom) }),
		"PostToolUse":   hooks.On(hooks.AtPostToolUse, "broken", func(_ context.Context, c hooks.ToolResultContext) hooks.Result { return c.Fail(boom) }),
	} {
		t.Run(name, func(t *testing.T) {
			end := play(t, agenttest.Script(agenttest.Call("echo", `{}`), agenttest.Say("x")), []hooks.Hook{hook.WithFailure(hooks.Abort)}, lenient...)
			require.ErrorIs(t, end.err, boom)
			broken, ok := errors.AsType[*hooks.HookError](end.err)
			require.True(t, ok)
			assert.Equal(t, "broken", broken.Hook)
			assert.Equal(t, hooks.PointName(name), broken.Point)
			assert.Len(t, end.told(hooks.HookFailed), 1)
			assert.Equal(t, 1, end.RunStepCount(), "the step is recorded as failed")
			assert.Equal(t, 1, end.count("step.completed"))
		})
	}
}

// IP-74: cancelling during a step ends the run with the steps that it has.
func TestCancelWhileStepHooksAreAsked(t *testing.T) {
	for name, make := range map[string]func(cancel func()) hooks.Hook{
		"before": func(cancel func()) hooks.Hook {
			return beforeStep("slow", func(c hooks.StepContext) hooks.Result {
				if c.StepIndex() == 1 {
					cancel()
				}
				return c.Allow()
			})
		},
		"after": func(cancel func()) hooks.Hook {
			return hooks.On(hooks.AtStepEnd, "slow", func(ctx context.Context, c hooks.StepEndContext) hooks.Result {
				cancel()
				<-ctx.Done()
				return c.Fail(ctx.Err())
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			end := playIn(t, ctx, agenttest.Script().Then(agenttest.Call("echo", `{}`)), []hooks.Hook{make(cancel)})
			require.ErrorIs(t, end.err, context.Canceled)
			assert.Equal(t, agent.StatusCancelled, end.Status())
			assert.Equal(t, 1, end.RunStepCount())
			assert.Empty(t, end.told(hooks.HookFailed, hooks.HookTimeout), "to be cancelled is no failure")
			started, ended := end.told(hooks.HookStart), end.told(hooks.HookComplete, hooks.HookSkipped)
			assert.Len(t, ended, len(started), "every start has an end")
		})
	}
}

func TestKeptStepContextsDoNotChange(t *testing.T) {
	var kept []hooks.StepEndContext
	play(t, agenttest.Script(agenttest.Call("echo", `{}`), agenttest.Say("done")), []hooks.Hook{
		afterStep("keeps", func(c hooks.StepEndContext) hooks.Result {
			kept = append(kept, c)
			return c.Allow(agent.AddContext("more"))
		}),
	})
	require.Len(t, kept, 2)
	for i, c := range kept {
		assert.Equal(t, i, c.StepIndex())
		assert.Equal(t, i+1, c.State().RunStepCount())
		assert.Equal(t, 1, c.RunToolCalls())
	}
}
