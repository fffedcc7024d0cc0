package hooks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/continuation"
	"github.com/grapnel-go/grapnel/hooks"
)

func onStop(name string, f func(c hooks.StopContext) hooks.Result) hooks.Hook {
	return hooks.On(hooks.AtStop, name, func(_ context.Context, c hooks.StopContext) hooks.Result { return f(c) })
}

// onceMore makes the run continue a number of times.
func onceMore(name string, times int) hooks.Hook {
	return onStop(name, func(c hooks.StopContext) hooks.Result {
		return lo.TernaryF(c.Continuations() < times,
			func() hooks.Result { return c.Continue("not yet, says " + name) },
			c.Allow)
	})
}

var talks = func() *agenttest.Driver {
	return agenttest.Script().Then(agenttest.Say("done").WithTokens(1, 0).WithCost(0.1))
}

// IP-62, IP-63: Stop hooks are asked when a run would end by itself, and not when it
// continues.
func TestStopHooksAreAskedWhenTheRunWouldEnd(t *testing.T) {
	var asked []int
	end := play(t, agenttest.Script(agenttest.Call("echo", `{}`), agenttest.Say("the answer")), []hooks.Hook{
		onStop("asked", func(c hooks.StopContext) hooks.Result {
			asked = append(asked, c.StepIndex())
			assert.Equal(t, agent.StopCompleted, c.Signal().Reason)
			assert.Equal(t, "the answer", c.Answer())
			assert.Zero(t, c.Continuations())
			return c.Allow()
		}),
	})
	require.NoError(t, end.err)
	assert.Equal(t, []int{2}, asked)
	assert.Equal(t, agent.StatusDone, end.Status())
	assert.Equal(t, agent.StopCompleted, end.signal().Reason)
}

// IP-65, IP-67, IP-88: a hook's Continue overrides the run's end, and the model receives the reason.
func TestStopHookMakesTheRunGoOn(t *testing.T) {
	end := play(t, talks(), []hooks.Hook{onceMore("tests", 2)})
	require.NoError(t, end.err)
	assert.Equal(t, agent.StatusDone, end.Status())
	assert.Equal(t, `user: hello
assistant: done
user: not yet, says tests
assistant: done
user: not yet, says tests
assistant: done
`, agenttest.Transcript(end.State))
	assert.Equal(t, "tests", end.Message(2).Source())
	verdicts := lo.Map(agenttest.Of[agent.Judged](end.recorder), func(e agent.Judged, _ int) string {
		return fmt.Sprint(e.Step, " ", e.Evaluation.Verdict)
	})
	assert.Equal(t, []string{"0 no_opinion", "1 request_continuation", "2 request_continuation", "3 allow_stop"}, verdicts)
}

func TestStopHooksSpeakTogether(t *testing.T) {
	end := play(t, talks(), []hooks.Hook{
		onceMore("a", 1), onceMore("b", 1),
		onStop("silent", func(c hooks.StopContext) hooks.Result {
			return lo.Ternary(c.Continuations() == 0, c.Continue(""), c.Pass())
		}),
	})
	assert.Equal(t, `user: hello
assistant: done
user: not yet, says a
user: not yet, says b
user: You are not done yet: continue.
assistant: done
`, agenttest.Transcript(end.State))
}

// IP-64, IP-66, IP-70: a Stop takes precedence over every Continue, in any order.
func TestStopHookStops(t *testing.T) {
	list := []hooks.Hook{
		onceMore("more", 9),
		onStop("enough", func(c hooks.StopContext) hooks.Result { return c.Stop("that will do") }),
	}
	for range 2 {
		end := play(t, talks(), list)
		require.NoError(t, end.err)
		assert.Equal(t, agent.StatusStopped, end.Status())
		assert.Equal(t, agent.Signal{Reason: agent.StopByHook, Message: "that will do", Source: "enough"}, end.signal())
		assert.Equal(t, "user: hello\nassistant: done\n", agenttest.Transcript(end.State), "the model is not told to go on")
		slices.Reverse(list)
	}
}

// IP-68: an end that a finish reason allows is soft as well.
func TestFinishReasonIsSoft(t *testing.T) {
	script := agenttest.Script(agenttest.Call("echo", `{}`), agenttest.Say("done"))
	end := play(t, script, []hooks.Hook{
		onStop("on", func(c hooks.StopContext) hooks.Result {
			return lo.Ternary(c.Signal().Reason == agent.StopFinishReason, c.Continue("go on"), c.Allow())
		}),
	}, capability.UseGuards{FinishReasons: []agent.FinishReason{agent.FinishToolCalls}})
	require.NoError(t, end.err)
	assert.Equal(t, "done", end.Answer())
	assert.Equal(t, 2, end.RunStepCount())
}

// IP-78: no hook gets past a guard, a stop that was signalled, or a failure.
func TestStopHooksCannotOverrideHardStops(t *testing.T) {
	for name, tc := range map[string]struct {
		more   capability.Capability
		reason agent.StopReason
		steps  int
	}{
		"steps":  {capability.UseGuards{Steps: 3}, agent.StopStepsLimit, 3},
		"tokens": {capability.UseGuards{Tokens: 3}, agent.StopTokenLimit, 3},
		"cost":   {capability.UseGuards{Cost: 0.15}, agent.StopCostLimit, 2},
		"user": {capability.UseCriteria(continuation.UntilCancelled(func(_ context.Context, s agent.State) (bool, error) {
			return s.RunStepCount() == 2, nil
		})), agent.StopUser, 2},
		"another hook": {capability.UseHooks(afterStep("stops", func(c hooks.StepEndContext) hooks.Result { return c.Stop("x") })), agent.StopByHook, 1},
	} {
		t.Run(name, func(t *testing.T) {
			end := play(t, talks(), []hooks.Hook{onStop("ever on", func(c hooks.StopContext) hooks.Result { return c.Continue("on") })}, tc.more)
			assert.Equal(t, tc.reason, end.signal().Reason)
			assert.Equal(t, tc.steps, end.RunStepCount())
		})
	}
	t.Run("failure", func(t *testing.T) {
		asked := false
		end := play(t, agenttest.Script(agenttest.Fail(errors.New("down"))), []hooks.Hook{
			onStop("on", func(c hooks.StopContext) hooks.Result { asked = true; return c.Continue("on") }),
		})
		require.Error(t, end.err)
		assert.False(t, asked)
	})
}

// IP-73, IP-75: a run that must not begin does not ask whether it may end.
func TestNoStopHookBeforeTheFirstStep(t *testing.T) {
	asked := false
	end := play(t, agenttest.Script(), []hooks.Hook{
		onStop("on", func(c hooks.StopContext) hooks.Result { asked = true; return c.Continue("on") }),
	}, capability.UseCriteria(continuation.UntilCancelled(func(context.Context, agent.State) (bool, error) { return true, nil })))
	assert.Equal(t, agent.StopUser, end.signal().Reason)
	assert.Zero(t, end.RunStepCount())
	assert.False(t, asked)
}

// IP-78: forced continuations are limited, and the hook receives their number.
func TestContinuationsAreCapped(t *testing.T) {
	for name, tc := range map[string]struct {
		more []capability.Capability
		most int
	}{
		"by default":  {nil, hooks.DefaultContinuations},
		"by a guard":  {[]capability.Capability{capability.UseGuards{Continuations: 3}}, 3},
		"none beside": {[]capability.Capability{capability.UseGuards{Steps: 99}}, hooks.DefaultContinuations},
	} {
		t.Run(name, func(t *testing.T) {
			var told []int
			end := play(t, talks(), []hooks.Hook{
				onStop("ever on", func(c hooks.StopContext) hooks.Result {
					told = append(told, c.Continuations())
					return c.Continue("on")
				}),
				hooks.Observe(hooks.AtStop, "watch", func(_ context.Context, c hooks.StopContext) error {
					want := lo.Ternary(c.Continuations() < tc.most, hooks.Continue, hooks.Pass)
					assert.Equal(t, want, c.Frozen().Decision(), "observers are told what came of it")
					return nil
				}),
			}, tc.more...)
			require.NoError(t, end.err)
			assert.Equal(t, agent.StatusDone, end.Status(), "it ends as it would have")
			assert.Equal(t, agent.StopContinuations, end.signal().Reason)
			assert.Equal(t, map[string]any{"hook": "ever on", "continuations": tc.most, "maxContinuations": tc.most}, end.signal().Details)
			assert.Equal(t, lo.Range(tc.most+1), told)
			assert.Equal(t, tc.most+1, end.RunStepCount())
			assert.Equal(t, []string{"hook.skipped ever on@Stop"}, end.told(hooks.HookSkipped))
		})
	}
}

// An end that is unusual anyway still says how the reply looked, and a stop counts for more.
func TestTheEndThatAHookWouldPutOff(t *testing.T) {
	on := onStop("on", func(c hooks.StopContext) hooks.Result { return c.Continue("on") })
	cut := func() *agenttest.Driver {
		return agenttest.Script().Then(agenttest.Say("do").WithFinish(agent.FinishLength))
	}
	end := play(t, cut(), []hooks.Hook{on}, capability.UseGuards{Continuations: 1})
	assert.Equal(t, agent.StopContinuations, end.signal().Reason)
	assert.Equal(t, map[string]any{"finishReason": "length", "hook": "on", "continuations": 1, "maxContinuations": 1}, end.signal().Details)
	end = play(t, cut(), []hooks.Hook{on, onStop("stop", func(c hooks.StopContext) hooks.Result {
		return lo.TernaryF(c.ContinuationsLeft() == 0, func() hooks.Result { return c.Stop("enough") }, c.Allow)
	})}, capability.UseGuards{Continuations: 1})
	assert.Equal(t, agent.StopByHook, end.signal().Reason)
}

// The count belongs to the run: a next one starts again, many run at once, and it
// survives JSON.
//
// IP-108
func TestContinuationsAreCountedByRun(t *testing.T) {
	a := hookedAgent(t, talks(), nil, []hooks.Hook{onceMore("more", 2)})
	final := agent.NewState()
	for run := range 2 {
		var err error
		final, err = a.Run(t.Context(), final, agent.UserText("hello")).Get()
		require.NoError(t, err)
		assert.Equal(t, 3, final.RunStepCount())
		assert.Equal(t, 3*(run+1), final.StepCount())
	}
	raw, err := json.Marshal(final)
	require.NoError(t, err)
	var back agent.State
	require.NoError(t, json.Unmarshal(raw, &back))
	count, ok := agent.RunKey[int]("hooks.continuations").From(back)
	assert.True(t, ok)
	assert.Equal(t, 2, count)
}

// Each of several criteria and hooks may say anything: the run ends or goes on alike
// in whatever order they were given.
//
// IP-70
func TestOrderOfStopHooksChangesNoVerdict(t *testing.T) {
	says := map[string]func(c hooks.StopContext) hooks.Result{
		"pass": func(c hooks.StopContext) hooks.Result { return c.Pass() }, "allow": func(c hooks.StopContext) hooks.Result { return c.Allow() },
		"continue": func(c hooks.StopContext) hooks.Result { return c.Continue("on") }, "stop": func(c hooks.StopContext) hooks.Result { return c.Stop("no") },
	}
	names := []string{"pass", "allow", "continue", "stop"}
	for _, some := range [][]string{{"pass", "continue"}, {"allow", "continue"}, {"continue", "stop"}, {"allow", "stop", "continue"}, {"pass", "allow"}, names} {
		list := lo.Map(some, func(name string, _ int) hooks.Hook { return onStop(name, says[name]) })
		forward := play(t, talks(), list)
		slices.Reverse(list)
		backward := play(t, talks(), list)
		assert.Equal(t, forward.Status(), backward.Status(), some)
		assert.Equal(t, forward.signal(), backward.signal(), some)
		assert.Equal(t, forward.RunStepCount(), backward.RunStepCount(), some)
	}
}

// IP-71, IP-72: of several reasons to end the weightiest names the end, of equals the
// first, in the state as in the event; a limit is weightier than a hook.
func TestWeightiestReasonNamesTheEnd(t *testing.T) {
	afterTool := hooks.On(hooks.AtPostToolUse, "first", func(_ context.Context, c hooks.ToolResultContext) hooks.Result { return c.Stop("tool") })
	stepEnd := afterStep("second", func(c hooks.StepEndContext) hooks.Result { return c.Stop("step") })
	for _, tc := range []struct {
		more []capability.Capability
		want agent.StopReason
		by   string
	}{
		{nil, agent.StopByHook, "first"},
		{[]capability.Capability{capability.UseGuards{Steps: 1}}, agent.StopStepsLimit, "continuation.Steps"},
		{[]capability.Capability{capability.UseGuards{Steps: 1, Cost: 0.1}}, agent.StopCostLimit, "continuation.Cost"},
	} {
		end := play(t, agenttest.Script().Then(agenttest.Call("echo", `{}`).WithCost(0.1)), []hooks.Hook{afterTool, stepEnd}, tc.more...)
		assert.Equal(t, tc.want, end.signal().Reason)
		assert.Equal(t, tc.by, end.signal().Source)
		assert.Equal(t, lo.Ternary(tc.by == "first", "first", ""), end.signal().StoppedBy())
		assert.Equal(t, agent.StatusStopped, end.Status())
		judged := agenttest.Of[agent.Judged](end.recorder)
		assert.Equal(t, end.signal(), judged[len(judged)-1].Evaluation.Signal)
		assert.Empty(t, judged[0].Evaluation.Signal)
	}
}

func TestCriterionKeepsItsContract(t *testing.T) {
	agenttest.TestCriterion(t, func(t *testing.T) agent.Criterion {
		t.Helper()
		compiled := lo.Must(hooks.NewSet(onceMore("more", 1)).Compile())
		return compiled.WrapCriterion(continuation.All(agent.Base, continuation.Steps(9)), 0)
	})
}

func TestCriterionSaysWhatItIs(t *testing.T) {
	inner := continuation.All(agent.Base, continuation.Steps(9))
	with := lo.Must(hooks.NewSet(onceMore("more", 1)).Compile())
	without := lo.Must(hooks.NewSet(onInput("other", func(c hooks.InputContext) hooks.Result { return c.Pass() })).Compile())
	assert.Equal(t, "HookContinuationCriterion(All(agent.base, Steps(9)))", fmt.Sprint(with.WrapCriterion(inner, 0)))
	assert.Same(t, inner, without.WrapCriterion(inner, 0))
}
