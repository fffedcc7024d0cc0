package agent_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
)

var errGoneHome = errors.New("gone home")

// IP-73: a run that is cancelled before it begins takes no step.
func TestCancelledBeforeTheRun(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errGoneHome)
	driver := agenttest.Script()
	events := agenttest.Record()
	a := build(t, agent.Config{Name: "x", Driver: driver, Observer: events})
	failed := runError(t, a.Run(ctx, agent.NewState(), agent.UserText("hello")))
	require.ErrorIs(t, failed, errGoneHome)
	assert.Equal(t, agent.StatusCancelled, failed.State.Status())
	assert.Equal(t, agent.Signal{Reason: agent.StopUser, Message: "gone home", Source: "context"}, signalOf(t, failed.State))
	assert.Zero(t, failed.State.RunStepCount())
	assert.Empty(t, driver.Calls())
	assert.Equal(t, []string{"run.started", "run.completed"}, events.Names())
}

// IP-74: if a run is cancelled during a step, this step is finished as far as possible,
// and no other step begins.
func TestCancelledDuringAStep(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	driver := agenttest.Script(calls("leave", "add"), agenttest.Say("never said"))
	leave := tools()
	leave["leave"] = func(context.Context, agent.ToolCall) (string, error) {
		cancel(errGoneHome)
		return "bye", nil
	}
	a := build(t, agent.Config{Driver: driver, Executor: leave.Executor()})
	failed := runError(t, a.Run(ctx, agent.NewState(), agent.UserText("hello")))
	require.ErrorIs(t, failed, errGoneHome)
	assert.Equal(t, agent.StatusCancelled, failed.State.Status())
	assert.Equal(t, agent.StopUser, signalOf(t, failed.State).Reason)
	assert.Equal(t, 1, failed.State.RunStepCount())
	assert.Equal(t, []string{"call_1_1 executed ", "call_1_2 not_executed cancelled"}, answers(failed.State))
	assert.Len(t, driver.Calls(), 1)
}

func TestCancelledWhileTheModelThinks(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	a := build(t, agent.Config{Driver: agenttest.Script(calls("add"), agenttest.Play(
		func(ctx context.Context, _ agent.State) (agent.Step, error) {
			cancel(errGoneHome)
			<-ctx.Done()
			return agent.Step{}, context.Cause(ctx)
		},
	)), Executor: tools().Executor()})
	failed := runError(t, a.Run(ctx, agent.NewState(), agent.UserText("hello")))
	require.ErrorIs(t, failed, errGoneHome)
	assert.Equal(t, agent.StatusCancelled, failed.State.Status())
	assert.Equal(t, 1, failed.State.RunStepCount(), "a model call that was cut off is no failed step")
	assert.Zero(t, failed.State.RunFailures())
}

// If an error occurs while the context ends, the run ends as cancelled.
func TestAnErrorAfterTheEndIsACancellation(t *testing.T) {
	for name, config := range map[string]func(fail agent.Processor) agent.Config{
		"around a run":  func(fail agent.Processor) agent.Config { return agent.Config{AroundRun: []agent.Processor{fail}} },
		"around a step": func(fail agent.Processor) agent.Config { return agent.Config{AroundStep: []agent.Processor{fail}} },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			c := config(agent.ProcessorFunc(func(context.Context, agent.State, agent.Next) mo.Result[agent.State] {
				cancel(errGoneHome)
				return mo.Err[agent.State](errOutOfPaper)
			}))
			c.Driver = agenttest.Script()
			failed := runError(t, build(t, c).Run(ctx, agent.NewState(), agent.UserText("hello")))
			require.ErrorIs(t, failed, errGoneHome)
			assert.Equal(t, agent.StatusCancelled, failed.State.Status())
		})
	}
	t.Run("in a criterion", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		a := build(t, agent.Config{Driver: agenttest.Script(), Criterion: agent.CriterionFunc(
			func(context.Context, agent.State) (agent.Evaluation, error) {
				cancel(errGoneHome)
				return agent.Evaluation{}, errOutOfPaper
			},
		)})
		failed := runError(t, a.Run(ctx, agent.NewState(), agent.UserText("hello")))
		require.ErrorIs(t, failed, errGoneHome)
	})
}

// IP-75: once a stop is signalled, the run ends with this signal; criteria are not
// asked for another reason.
func TestASignalThatStandsIsTheEnd(t *testing.T) {
	asked := 0
	source := agent.CriterionFunc(func(_ context.Context, s agent.State) (agent.Evaluation, error) {
		if s.Stopped() {
			return agent.Evaluation{}, nil
		}
		asked++
		return agent.Evaluation{}, nil
	})
	before := agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		return next(ctx, s.WithStop(stopSignal))
	})
	driver := agenttest.Script()
	a := build(t, agent.Config{Driver: driver, Criterion: all(agent.Base, source), AroundRun: []agent.Processor{before}})
	final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("hello")).Get()
	require.NoError(t, err)
	assert.Equal(t, agent.StatusStopped, final.Status())
	assert.Equal(t, stopSignal, signalOf(t, final))
	assert.Zero(t, asked)
	assert.Zero(t, final.RunStepCount())
	assert.Empty(t, driver.Calls())
}

// A deadline with a signal as its cause ends the run as stopped by the signal.
func TestADeadlineMayHaveASignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := agent.Signal{Reason: agent.StopTimeLimit, Message: "a minute is enough", Source: "clock"}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, &agent.SignalError{Signal: limit})
		defer cancel()
		a := build(t, agent.Config{Driver: agenttest.Script(calls("add"), agenttest.Hang()), Executor: tools().Executor()})
		began := time.Now()
		final, err := a.Run(ctx, agent.NewState(), agent.UserText("hello")).Get()
		require.NoError(t, err)
		assert.Equal(t, time.Minute, time.Since(began))
		assert.Equal(t, agent.StatusStopped, final.Status())
		assert.Equal(t, limit, signalOf(t, final))
		assert.Equal(t, 1, final.RunStepCount())

		_, err = a.Run(ctx, agent.NewState(), agent.UserText("hello")).Get()
		require.NoError(t, err, "a run that begins after the deadline ends the same way")
	})
}

func TestAPlainDeadlineIsACancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		a := build(t, agent.Config{Name: "x", Driver: agenttest.Script(agenttest.Hang())})
		failed := runError(t, a.RunWith(ctx, agent.RunSettings{ID: "run_1"}, agent.NewState(), agent.UserText("hello")))
		require.ErrorIs(t, failed, context.DeadlineExceeded)
		assert.Equal(t, agent.KindTimeout, agent.KindOf(failed))
		assert.EqualError(t, failed, `agent "x": run run_1 cancelled at step 0: context deadline exceeded`)
	})
}

// The next run can continue from the state of a cancelled run.
func TestACancelledStateGoesOn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	quit := tools()
	quit["quit"] = func(context.Context, agent.ToolCall) (string, error) {
		cancel()
		return "ok", nil
	}
	a := build(t, agent.Config{Driver: agenttest.Script(calls("quit", "add"), agenttest.Say("welcome back")), Executor: quit.Executor()})
	failed := runError(t, a.Run(ctx, agent.NewState(), agent.UserText("hello")))
	final, err := a.Run(t.Context(), failed.State, agent.UserText("I am back")).Get()
	require.NoError(t, err)
	assert.Equal(t, "welcome back", final.Answer())
	assert.Equal(t, agent.StatusDone, final.Status())
	assert.Equal(t, 2, final.StepCount())
}

func ExampleSignalError() {
	limit := agent.Signal{Reason: agent.StopTimeLimit, Message: "office hours are over", Source: "caretaker"}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(&agent.SignalError{Signal: limit})

	a := agent.New(agent.Config{Driver: agenttest.Script()}).MustGet()
	final, err := a.Run(ctx, agent.NewState(), agent.UserText("hello")).Get()
	printEnd(final, err)
	// Output:
	// stopped time_limit by caretaker: office hours are over
}
