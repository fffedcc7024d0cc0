package hooks_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
)

func atEnd(name string, f func(c hooks.EndContext) error) hooks.Hook {
	return hooks.Observe(hooks.AtExecutionEnd, name, func(_ context.Context, c hooks.EndContext) error { return f(c) })
}

func atFailure(name string, f func(c hooks.FailureContext) hooks.Result) hooks.Hook {
	return hooks.On(hooks.AtAgentFailed, name, func(_ context.Context, c hooks.FailureContext) hooks.Result { return f(c) })
}

// everyEnd returns a run for each way in which a run can end.
func everyEnd(t *testing.T) map[string]struct {
	run    func(list ...hooks.Hook) ending
	status agent.Status
	reason agent.StopReason
} {
	t.Helper()
	asks := hooks.On(hooks.AtPreToolUse, "asks", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Ask("sure?") })
	no := capability.UseApproval(agent.ApproverFunc(func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) {
		return agent.Approval{By: "ann"}, nil
	}))
	stops := hooks.On(hooks.AtStepEnd, "stops", func(_ context.Context, c hooks.StepEndContext) hooks.Result { return c.Stop("enough") })
	denies := onInput("denies", func(c hooks.InputContext) hooks.Result { return c.Deny("no") })
	calls := func() *agenttest.Driver {
		return agenttest.Script().Then(agenttest.Call("echo", `{}`).WithCost(1).WithTokens(1, 1))
	}
	type way = struct {
		run    func(list ...hooks.Hook) ending
		status agent.Status
		reason agent.StopReason
	}
	plain := func(script func() *agenttest.Driver, own []hooks.Hook, more ...capability.Capability) func(...hooks.Hook) ending {
		return func(list ...hooks.Hook) ending { return play(t, script(), append(own, list...), more...) }
	}
	return map[string]way{
		"done":        {plain(func() *agenttest.Driver { return agenttest.Script(agenttest.Say("hi")) }, nil), agent.StatusDone, agent.StopCompleted},
		"by a hook":   {plain(calls, []hooks.Hook{stops}), agent.StatusStopped, agent.StopByHook},
		"steps limit": {plain(calls, nil, capability.UseGuards{Steps: 2}), agent.StatusStopped, agent.StopStepsLimit},
		"token limit": {plain(calls, nil, capability.UseGuards{Tokens: 4}), agent.StatusStopped, agent.StopTokenLimit},
		"cost limit":  {plain(calls, nil, capability.UseGuards{Cost: 2}), agent.StatusStopped, agent.StopCostLimit},
		"time limit": {plain(func() *agenttest.Driver { return agenttest.Script(agenttest.Hang()) }, nil, capability.UseGuards{Time: time.Minute}),
			agent.StatusStopped, agent.StopTimeLimit},
		"failed": {plain(func() *agenttest.Driver {
			return agenttest.Script(agenttest.Call("echo", `{}`), agenttest.Fail(errors.New("down")))
		}, nil),
			agent.StatusFailed, agent.StopError},
		"denied": {plain(func() *agenttest.Driver { return agenttest.Script() }, []hooks.Hook{denies}), agent.StatusDenied, agent.StopDenied},
		"cancelled": {func(list ...hooks.Hook) ending {
			ctx, cancel := context.WithCancel(t.Context())
			script := agenttest.Script(agenttest.Call("echo", `{}`), agenttest.Play(func(ctx context.Context, _ agent.State) (agent.Step, error) {
				cancel()
				return agent.Step{}, ctx.Err()
			}))
			return playIn(t, ctx, script, list)
		}, agent.StatusCancelled, agent.StopUser},
		"cancelled before it began": {func(list ...hooks.Hook) ending {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return playIn(t, ctx, agenttest.Script(), list)
		}, agent.StatusCancelled, agent.StopUser},
		"interrupted": {plain(calls, []hooks.Hook{asks}, no), agent.StatusInterrupted, agent.StopRejected},
	}
}

// IP-87, IP-90, LH-59, SW-03, SW-23, SW-24: however a run ends, the hooks are called exactly once, before Run returns,
// with the same end that Run returns.
func TestEveryEndIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, way := range everyEnd(t) {
			var seen []string
			var state agent.State
			var failure error
			end := way.run(
				onStart("clock", func(c hooks.ExecutionContext) hooks.Result { time.Sleep(time.Second); return c.Pass() }),
				atEnd("post", func(c hooks.EndContext) error {
					seen = append(seen, fmt.Sprintf("%s %s", c.Status(), c.Reason().Reason))
					assert.Equal(t, c.Reason(), c.State().StopSignal(), name)
					assert.Equal(t, c.State().RunStepCount(), c.StepIndex(), name)
					if name != "denied" && name != "cancelled before it began" { // ended before the clock, or while it was asked
						assert.GreaterOrEqual(t, c.Duration(), time.Second, name)
					}
					state, failure = c.State(), c.Err()
					return nil
				}),
			)
			assert.Equal(t, []string{fmt.Sprintf("%s %s", way.status, way.reason)}, seen, name)
			assert.Equal(t, way.status, end.Status(), name)
			assert.Equal(t, end.signal(), state.StopSignal(), name)
			assert.Equal(t, end.Run(), state.Run(), name)
			assert.Equal(t, agenttest.Transcript(end.State), agenttest.Transcript(state), name)
			assert.Equal(t, end.err == nil, failure == nil, name)
			if end.err != nil {
				assert.EqualError(t, failure, end.err.Error(), name)
			}
			completed := agenttest.Of[agent.RunCompleted](end.recorder)
			require.Len(t, completed, 1, name)
			assert.Equal(t, way.status, completed[0].State.Status(), name)
		}
	})
}

// AgentFailed fires only for failed runs.
func TestOnlyFailuresAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, way := range everyEnd(t) {
			told := 0
			way.run(atFailure("oops", func(c hooks.FailureContext) hooks.Result { told++; return c.Pass() }))
			assert.Equal(t, way.status == agent.StatusFailed, told == 1, name)
		}
	})
}

// IP-89: a hard error comes with its cause; and what the hooks add is in the state
// that the run leaves.
func TestFailureHooksSeeTheErrorAndAdd(t *testing.T) {
	down := errors.New("down")
	note := agent.SessionKey[string]("note")
	var order []string
	add := func(name string) hooks.Hook {
		return atFailure(name, func(c hooks.FailureContext) hooks.Result {
			order = append(order, name)
			assert.ErrorIs(t, c.Err(), down)
			broken, ok := errors.AsType[*agent.RunError](c.Err())
			assert.True(t, ok)
			assert.Equal(t, agent.StatusFailed, broken.State.Status())
			return c.Allow(note.Set(note.Or(c.State(), "")+name), agent.AddContext("told by "+name))
		})
	}
	end := play(t, agenttest.Script(agenttest.Fail(down)), []hooks.Hook{
		add("a"), add("b"),
		atEnd("end", func(c hooks.EndContext) error {
			assert.Equal(t, "ba", note.Or(c.State(), ""), "ExecutionEnd comes after AgentFailed")
			return nil
		}),
	})
	require.ErrorIs(t, end.err, down)
	assert.Equal(t, []string{"b", "a"}, order, "at the points after something happened, in reverse")
	assert.Equal(t, "ba", note.Or(end.State, ""))
	assert.Equal(t, "user: hello\nuser: told by b\nuser: told by a\n", agenttest.Transcript(end.State))
	assert.Len(t, end.told(hooks.HookConflict), 1, "two hooks set the same key")
}

// LH-58
func TestInterruptedRunEndsWithWhatWasLastSaid(t *testing.T) {
	script := agenttest.Script(agenttest.Reply(agent.Step{Message: agent.Assistant("I will echo.", agent.ToolCall{Name: "echo"})}))
	answer := ""
	play(t, script, []hooks.Hook{
		hooks.On(hooks.AtPreToolUse, "asks", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Ask("sure?") }),
		atEnd("complete", func(c hooks.EndContext) error { answer = c.Answer(); return nil }),
	}, capability.UseApproval(agent.ApproverFunc(func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) {
		return agent.Approval{Verdict: agent.RejectAndEnd}, nil
	})))
	assert.Equal(t, "I will echo.", answer)
}

// IP-91, LH-60, SW-13: what fails after the work is done changes nothing, stops
// no other observer from being told, and is told itself.
func TestHooksThatFailAtTheEndFailNothing(t *testing.T) {
	boom := errors.New("boom")
	for name, policy := range map[string]hooks.FailurePolicy{
		"default": {}, "open": hooks.Open, "retry": hooks.Retry(1, 0, hooks.Open),
	} {
		t.Run(name, func(t *testing.T) {
			told := []string{}
			end := play(t, agenttest.Script(agenttest.Say("hi")), []hooks.Hook{
				atEnd("last", func(hooks.EndContext) error { told = append(told, "last"); return nil }),
				atEnd("panics", func(hooks.EndContext) error { panic(boom) }).WithFailure(policy),
				atEnd("fails", func(hooks.EndContext) error { return boom }).WithFailure(policy),
				atEnd("first", func(hooks.EndContext) error { told = append(told, "first"); return nil }),
			})
			require.NoError(t, end.err)
			assert.Equal(t, agent.StatusDone, end.Status())
			assert.Equal(t, []string{"first", "last"}, told)
			assert.Contains(t, end.told(hooks.HookFailed), "hook.failed panics@ExecutionEnd")
			assert.Contains(t, end.told(hooks.HookFailed), "hook.failed fails@ExecutionEnd")
			assert.Equal(t, 1, end.count("run.completed"))
		})
	}
	t.Run("on a failed run", func(t *testing.T) {
		down := errors.New("down")
		end := play(t, agenttest.Script(agenttest.Fail(down)), []hooks.Hook{
			atFailure("panics", func(hooks.FailureContext) hooks.Result { panic(boom) }).WithFailure(hooks.Abort),
			atFailure("fails", func(c hooks.FailureContext) hooks.Result { return c.Fail(boom) }),
		})
		require.ErrorIs(t, end.err, down)
		require.NotErrorIs(t, end.err, boom)
		assert.Len(t, end.told(hooks.HookFailed), 2)
	})
}

// SW-14: Run waits for the hooks at its end. They are told even of a cancelled run,
// with a context that is not.
func TestEndHooksHaveALivingContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), ctxKey{}, "kept"))
	cancel()
	told := false
	end := playIn(t, ctx, agenttest.Script(), []hooks.Hook{
		hooks.Observe(hooks.AtExecutionEnd, "post", func(ctx context.Context, c hooks.EndContext) error {
			told = true
			assert.NoError(t, ctx.Err())
			assert.Equal(t, "kept", ctx.Value(ctxKey{}))
			require.ErrorIs(t, c.Err(), context.Canceled)
			return nil
		}),
	})
	assert.True(t, told)
	require.ErrorIs(t, end.err, context.Canceled)
}

type ctxKey struct{}

// A processor around the run, inside of the hooks, may save a state in an error, or wrap the run's error. The hooks
// learn the result.
func TestEndsThatProcessorsMake(t *testing.T) {
	full := errors.New("disk full")
	for name, tc := range map[string]struct {
		processor agent.ProcessorFunc
		status    agent.Status
		text      string
	}{
		"saves a state": {func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
			return mo.Err[agent.State](&agent.RunError{State: next(ctx, s).MustGet(), Err: full})
		}, agent.StatusFailed, `agent "tester": run RUN failed at step 1: disk full`},
		"wraps an error": {func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
			next(ctx, s)
			return mo.Err[agent.State](fmt.Errorf("journal: %w", &agent.RunError{State: s, Err: full}))
		}, agent.StatusFailed, `journal: agent "tester": run RUN failed at step 0: disk full`},
		"does not end": {func(_ context.Context, s agent.State, _ agent.Next) mo.Result[agent.State] {
			return mo.Ok(s)
		}, agent.StatusFailed, `agent "tester": run RUN failed at step 0: a processor around the run returned a state that has not ended`},
		"stops by an error": {func(context.Context, agent.State, agent.Next) mo.Result[agent.State] {
			return mo.Err[agent.State](&agent.SignalError{Signal: agent.Signal{Reason: agent.StopRequested, Source: "p"}})
		}, agent.StatusStopped, ""},
	} {
		t.Run(name, func(t *testing.T) {
			failed := 0
			end := play(t, agenttest.Script(agenttest.Say("hi")), []hooks.Hook{
				atFailure("failed", func(c hooks.FailureContext) hooks.Result { failed++; return c.Allow(agent.AddContext("it failed")) }),
				atEnd("end", func(c hooks.EndContext) error {
					assert.Equal(t, tc.status, c.Status())
					assert.Equal(t, tc.text == "", c.Err() == nil)
					return nil
				}),
			}, capability.UseRunProcessor("p", tc.processor))
			assert.Equal(t, tc.status, end.Status())
			assert.Len(t, end.told(hooks.HookComplete), 1+failed)
			if tc.text == "" {
				assert.NoError(t, end.err)
				return
			}
			assert.Equal(t, 1, failed)
			assert.EqualError(t, end.err, strings.ReplaceAll(tc.text, "RUN", string(end.Run().ID)))
			assert.Equal(t, name != "does not end", errors.Is(end.err, full), "the cause survives")
			assert.Equal(t, "it failed", end.LastMessage().Text())
		})
	}
}

// A sub-agent's error is not mistaken for the calling run's error.
func TestErrorOfAnotherRunIsAnErrorLikeAnyOther(t *testing.T) {
	child := hookedAgent(t, agenttest.Script(agenttest.Fail(errors.New("down"))), nil, nil)
	var seen agent.RunID
	end := play(t, agenttest.Script(), []hooks.Hook{
		atEnd("end", func(c hooks.EndContext) error { seen = c.State().Run().ID; return nil }),
	}, capability.UseRunProcessor("delegates", agent.ProcessorFunc(
		func(ctx context.Context, _ agent.State, _ agent.Next) mo.Result[agent.State] {
			return child.Run(ctx, agent.NewState())
		})))
	require.Error(t, end.err)
	assert.Equal(t, end.Run().ID, seen)
	assert.Equal(t, "tester", end.Run().Agent)
}
