package agent_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/samber/lo"
	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
)

// replying wraps a driver and changes its replies.
func replying(change func(ctx context.Context, s agent.State, d agent.Driver) (agent.Step, error)) []func(agent.Driver) agent.Driver {
	return []func(agent.Driver) agent.Driver{func(d agent.Driver) agent.Driver {
		return agent.DriverFunc(func(ctx context.Context, s agent.State) (agent.Step, error) { return change(ctx, s, d) })
	}}
}

// Middleware around the driver may add to the state before the reply and after it,
// and stop the run with the reply.
func TestMiddlewareAroundTheDriver(t *testing.T) {
	key := agent.RunKey[int]("n")
	decorate := func(stop *agent.Signal) []func(agent.Driver) agent.Driver {
		return replying(func(ctx context.Context, s agent.State, d agent.Driver) (agent.Step, error) {
			step, err := d.Next(ctx, s).Get()
			step.Prior = agent.EffectsOf(agent.AddMessage(agent.System("before")), key.Set(key.Or(s, 0)+1))
			step.Effects = agent.EffectsOf(agent.AddMessage(agent.System("after")))
			step.Stop = stop
			return step, err
		})
	}
	seen := 0
	look := executor{execute: func(_ context.Context, s agent.State, _ *agent.Prepared) (*agent.ToolResult, error) {
		seen = key.Or(s, 0)
		return &agent.ToolResult{Content: agent.TextContent("ran")}, nil
	}}
	t.Run("adds", func(t *testing.T) {
		a := build(t, agent.Config{Driver: agenttest.Script(calls("a"), agenttest.Say("done")), Executor: look, WrapDriver: decorate(nil)})
		final, err := a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
		require.NoError(t, err)
		assert.Equal(t, []string{"hello", "before", "", "ran", "after", "before", "done", "after"}, texts(final))
		assert.Equal(t, 1, seen, "what is added before the reply is there for its calls")
		requireSame(t, final, throughJSON(t, final))
	})
	t.Run("stops with the reply", func(t *testing.T) {
		seen = 0
		a := build(t, agent.Config{Driver: agenttest.Script(calls("a", "b")), Executor: look, WrapDriver: decorate(&stopSignal)})
		final, err := a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
		require.NoError(t, err)
		assert.Zero(t, seen, "no call of the reply runs")
		assert.Equal(t, []string{"call_1_1 not_executed run_stopped", "call_1_2 not_executed run_stopped"}, answers(final))
		assert.Equal(t, "not executed: run stopped by stop: enough", final.Message(3).Text())
		assert.Equal(t, agent.StatusStopped, final.Status())
		assert.Equal(t, stopSignal, signalOf(t, final))
	})
	t.Run("stops before the model is asked", func(t *testing.T) {
		driver, events := agenttest.Script(), agenttest.Record()
		a := build(t, agent.Config{Driver: driver, Observer: events, WrapDriver: replying(
			func(context.Context, agent.State, agent.Driver) (agent.Step, error) {
				return agent.Step{Stop: &stopSignal, Prior: agent.EffectsOf(agent.AddContext("a last word"))}, nil
			},
		)})
		final, err := a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
		require.NoError(t, err)
		assert.Empty(t, driver.Calls())
		assert.Zero(t, final.RunStepCount())
		assert.Equal(t, []string{"hello", "a last word"}, texts(final))
		assert.Equal(t, stopSignal, signalOf(t, final))
		assert.Empty(t, agenttest.Of[agent.InferenceStarted](events))
		assert.Empty(t, agenttest.Of[agent.StepCompleted](events))
	})
}

// A processor that stops before the step begins leaves no step.
func TestAStepThatIsStoppedIsNotTaken(t *testing.T) {
	driver := agenttest.Script()
	a := build(t, agent.Config{Driver: driver, AroundStep: []agent.Processor{agent.ProcessorFunc(
		func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
			return next(ctx, s.WithStop(stopSignal))
		},
	)}})
	final, err := a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
	require.NoError(t, err)
	assert.Equal(t, stopSignal, signalOf(t, final))
	assert.Zero(t, final.RunStepCount())
	assert.Empty(t, driver.Calls())
}

// A processor that fails after next has returned can save the state from next.
func TestAProcessorMaySaveTheStateThatItGot(t *testing.T) {
	saving := agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		s, err := next(ctx, s).Get()
		if err != nil {
			return mo.Err[agent.State](err)
		}
		return mo.Err[agent.State](&agent.RunError{State: s, Err: errOutOfPaper})
	})
	for place, config := range map[string]agent.Config{
		"run":  {AroundRun: []agent.Processor{saving}},
		"step": {AroundStep: []agent.Processor{saving}},
	} {
		t.Run("around a "+place, func(t *testing.T) {
			events := agenttest.Record()
			config.Name, config.Driver, config.Observer = "x", agenttest.Script(agenttest.Say("hi")), events
			failed := runError(t, build(t, config).RunWith(t.Context(), agent.RunSettings{ID: "run_1"}, agent.NewState(agent.UserText("hello"))))
			require.EqualError(t, failed, `agent "x": run run_1 failed at step 1: out of paper`)
			assert.Equal(t, agent.StatusFailed, failed.State.Status())
			assert.Equal(t, []string{"hello", "hi"}, texts(failed.State))
			assert.False(t, failed.State.Observed(), "nothing of the run stays with the state")
			assert.Len(t, agenttest.Of[agent.StepCompleted](events), 1)
		})
	}
}

// A processor around a run can learn from the result of next how the run ends.
func TestConclude(t *testing.T) {
	status := func(status agent.Status) agent.ProcessorFunc {
		return func(_ context.Context, s agent.State, _ agent.Next) mo.Result[agent.State] {
			return mo.Ok(agent.Checkpoint(s).WithStatus(status))
		}
	}
	for name, tc := range map[string]struct {
		inner agent.ProcessorFunc
		end   agent.Status
		err   error
		says  string
	}{
		"an answer": {func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
			return next(ctx, s)
		}, agent.StatusDone, nil, ""},
		"an error": {func(context.Context, agent.State, agent.Next) mo.Result[agent.State] {
			return mo.Err[agent.State](errOutOfPaper)
		}, agent.StatusFailed, errOutOfPaper, "failed at step 0: out of paper"},
		"a stop as an error": {func(context.Context, agent.State, agent.Next) mo.Result[agent.State] {
			return mo.Err[agent.State](&agent.SignalError{Signal: stopSignal})
		}, agent.StatusStopped, nil, ""},
		"no end":                {status(agent.StatusRunning), agent.StatusFailed, nil, "returned a state that has not ended"},
		"denied":                {status(agent.StatusDenied), agent.StatusDenied, nil, ""},
		"failed, as a value":    {status(agent.StatusFailed), agent.StatusFailed, nil, "failed at step 0: no reason given"},
		"cancelled, as a value": {status(agent.StatusCancelled), agent.StatusCancelled, nil, "cancelled at step 0: no reason given"},
	} {
		t.Run(name, func(t *testing.T) {
			var told mo.Result[agent.State]
			tell := agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
				result := next(ctx, s)
				told = agent.Conclude(ctx, s, result)
				return result
			})
			a := build(t, agent.Config{
				Name: "x", Driver: agenttest.Script(agenttest.Say("hi")), AroundRun: []agent.Processor{tell, tc.inner},
			})
			final := a.RunWith(t.Context(), agent.RunSettings{ID: "run_1"}, agent.NewState(agent.UserText("hello")))
			assert.Equal(t, fmt.Sprint(final.Error()), fmt.Sprint(told.Error()), "what it was told is what comes out")
			assert.Equal(t, stateOf(t, final).Status(), stateOf(t, told).Status())
			assert.Equal(t, tc.end, stateOf(t, final).Status())
			if tc.err != nil {
				require.ErrorIs(t, final.Error(), tc.err)
			}
			if tc.says != "" {
				require.ErrorContains(t, final.Error(), tc.says)
			}
		})
	}
}

func stateOf(t *testing.T, result mo.Result[agent.State]) agent.State {
	t.Helper()
	if result.IsOk() {
		return result.MustGet()
	}
	return runError(t, result).State
}

// If a processor saves the state after the run's context ended, the run is cancelled.
func TestASavedStateOfACancelledRunIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	a := build(t, agent.Config{Driver: agenttest.Script(), AroundRun: []agent.Processor{agent.ProcessorFunc(
		func(ctx context.Context, s agent.State, _ agent.Next) mo.Result[agent.State] {
			cancel(errGoneHome)
			return mo.Err[agent.State](&agent.RunError{State: s.With(agent.System("saved")), Err: context.Cause(ctx)})
		},
	)}})
	failed := runError(t, a.Run(ctx, agent.NewState(agent.UserText("hello"))))
	require.ErrorIs(t, failed, errGoneHome)
	assert.Equal(t, agent.StatusCancelled, failed.State.Status())
	assert.Equal(t, []string{"hello", "saved"}, texts(failed.State))
}

func TestARunMayWantAFormOfItsOwn(t *testing.T) {
	driver := agenttest.Script(agenttest.Say("no"), agenttest.Say("yes"), agenttest.Say("no"))
	a := build(t, agent.Config{Name: "clerk", Driver: driver, Request: agent.Request{Model: "m", Tools: tools().Specs()}})
	output := &agent.Output{Name: "yes", Check: func(answer string) error {
		return lo.Ternary(answer == "yes", nil, errors.New("say yes"))
	}}
	session := a.Session(agent.NewState())
	final, err := a.RunWith(t.Context(), agent.RunSettings{Output: output}, session.State(), agent.UserText("well?")).Get()
	require.NoError(t, err)
	assert.Equal(t, "yes", final.Answer())
	assert.Equal(t, output, driver.Calls()[0].Request.Output)
	assert.Equal(t, "m", driver.Calls()[0].Request.Model)

	final, err = a.Run(t.Context(), final, agent.UserText("and now?")).Get()
	require.NoError(t, err)
	assert.Equal(t, "no", final.Answer(), "the agent itself wants no form")
	assert.Equal(t, "clerk", a.Name())
	assert.Nil(t, a.Request().Output)
	var names []string
	for _, spec := range a.Request().Tools.All() {
		names = append(names, spec.Name)
	}
	assert.Equal(t, []string{"add", "fail", "stop"}, names)
}

// Each of many calls in a step has its own id and answer.
func TestAStepMayHaveManyCalls(t *testing.T) {
	for _, n := range []int{1, 3, 4, 5, 16, 17, 200} {
		for name, id := range map[string]func(i int) string{
			"different ids": func(i int) string { return fmt.Sprint("id_", i) },
			"one id":        func(int) string { return "id" },
			"no ids":        func(int) string { return "" },
		} {
			t.Run(fmt.Sprint(n, " calls with ", name), func(t *testing.T) {
				wish := lo.Times(n, func(i int) agent.ToolCall { return agent.ToolCall{ID: id(i), Name: "a", Arguments: fmt.Sprint(i)} })
				driver := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
					if s.RunStepCount() > 0 {
						return agent.Step{Message: agent.Assistant("done")}, nil
					}
					return agent.Step{Message: agent.Assistant("", wish...)}, nil
				})
				echo := executor{execute: func(_ context.Context, _ agent.State, p *agent.Prepared) (*agent.ToolResult, error) {
					return &agent.ToolResult{Content: agent.TextContent(p.Call.Arguments)}, nil
				}}
				final, err := build(t, agent.Config{Driver: driver, Executor: echo, Parallel: 3}).
					Run(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
				require.NoError(t, err)
				require.Equal(t, n+3, final.MessageCount())
				seen := map[string]bool{}
				for i, call := range final.Message(1).Calls() {
					answer := final.Message(2 + i)
					assert.Equal(t, call.ID, answer.CallID())
					assert.Equal(t, fmt.Sprint(i), answer.Text())
					assert.False(t, seen[call.ID])
					seen[call.ID] = true
				}
				requireSame(t, final, throughJSON(t, final))
			})
		}
	}
}

// If an executor leaves the status empty, the loop fills in the usual one.
func TestAStatusThatWasLeftEmptyIsFilledIn(t *testing.T) {
	both := executor{prepare: func(_ context.Context, _ agent.State, c *agent.ToolCall) (*agent.Prepared, error) {
		p := &agent.Prepared{Original: c, Call: c}
		if c.Name == "answered" {
			p.Disposition, p.Answer = agent.DisposeAnswer, &agent.ToolResult{Content: agent.TextContent("no")}
		}
		return p, nil
	}, execute: executed(&agent.ToolResult{})}
	a := build(t, agent.Config{Driver: agenttest.Script(calls("answered", "ran"), agenttest.Say("done")), Executor: both})
	final, err := a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
	require.NoError(t, err)
	assert.Equal(t, []string{"call_1_1 not_executed ", "call_1_2 executed "}, answers(final))
}
