package processor_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/continuation"
	"github.com/grapnel-go/grapnel/processor"
)

var note = agent.SessionKey[string]("note")

func TestFuncSurrounds(t *testing.T) {
	type key struct{}
	seen := ""
	add := processor.Func(func(ctx context.Context, s agent.State, next processor.NextFunc) (agent.State, error) {
		s, err := next(context.WithValue(ctx, key{}, "value"), note.In(s, "in"))
		return note.In(s, note.Or(s, "")+" and out"), err
	})
	final, err := run(t.Context(), t, agent.Config{
		Driver: agent.DriverFunc(func(ctx context.Context, s agent.State) (agent.Step, error) {
			seen, _ = ctx.Value(key{}).(string)
			return asks(0)(ctx, s)
		}),
		AroundStep: []agent.Processor{add},
	})
	require.NoError(t, err)
	assert.Equal(t, "value", seen)
	assert.Equal(t, "in and out", note.Or(final, ""))
}

func TestFuncSeesTheErrorOfAStep(t *testing.T) {
	var seen error
	final, err := run(t.Context(), t, agent.Config{
		Driver: agent.DriverFunc(func(context.Context, agent.State) (agent.Step, error) { return agent.Step{}, errDown }),
		AroundStep: []agent.Processor{
			processor.Func(func(ctx context.Context, s agent.State, next processor.NextFunc) (agent.State, error) {
				s, err := next(ctx, s)
				if failed, ok := errors.AsType[*agent.StepError](err); ok {
					seen = failed
					return s, fmt.Errorf("seen: %w", err)
				}
				return s, err
			}),
		},
	})
	require.ErrorIs(t, seen, errDown)
	require.ErrorIs(t, err, errDown)
	assert.Equal(t, 1, final.RunStepCount(), "a wrapped step error is still the step's, and recorded")
	assert.Equal(t, agent.KindModel, final.LastStep().Failure().Kind)
}

func TestFuncThatForgetsNext(t *testing.T) {
	forgetful := processor.Func(func(_ context.Context, s agent.State, _ processor.NextFunc) (agent.State, error) {
		return s, nil
	})
	for _, config := range []agent.Config{
		{AroundStep: []agent.Processor{forgetful}},
		{AroundRun: []agent.Processor{forgetful}},
	} {
		config.Driver = asks(0)
		final, err := run(t.Context(), t, config)
		require.Error(t, err)
		assert.Equal(t, agent.StatusFailed, final.Status())
	}
}

func TestBeforeChangesTheState(t *testing.T) {
	counted := agent.RunKey[int]("counted")
	count := processor.Before(func(_ context.Context, s agent.State) (agent.State, error) {
		return counted.In(s, counted.Or(s, 0)+1), nil
	})
	final, err := run(t.Context(), t, agent.Config{
		Driver: asks(2), AroundRun: []agent.Processor{count}, AroundStep: []agent.Processor{count},
	})
	require.NoError(t, err)
	assert.Equal(t, 1+3, counted.Or(final, 0), "once around the run and once for each step")
}

func TestBeforeThatFailsPreventsTheStep(t *testing.T) {
	noDisk := errors.New("no disk")
	check := processor.Before(func(_ context.Context, s agent.State) (agent.State, error) {
		if s.RunStepCount() == 1 {
			return s, noDisk
		}
		return s, nil
	})
	final, err := run(t.Context(), t, agent.Config{Driver: asks(5), AroundStep: []agent.Processor{check}})
	require.ErrorIs(t, err, noDisk)
	assert.Equal(t, agent.StatusFailed, final.Status())
	assert.Equal(t, 1, final.RunStepCount())
}

func TestBeforeThatStops(t *testing.T) {
	enough := agent.Signal{Reason: agent.StopRequested, Source: "test", Message: "enough"}
	stop := processor.Before(func(_ context.Context, s agent.State) (agent.State, error) { return s.WithStop(enough), nil })
	for name, config := range map[string]agent.Config{
		"run":  {AroundRun: []agent.Processor{stop}},
		"step": {AroundStep: []agent.Processor{stop}},
	} {
		config.Driver = asks(0)
		final, err := run(t.Context(), t, config)
		require.NoError(t, err, name)
		assert.Equal(t, agent.StatusStopped, final.Status(), name)
		assert.Equal(t, enough, signal(t, final), name)
		assert.Zero(t, final.RunStepCount(), name)
	}
}

func TestAfterChangesTheState(t *testing.T) {
	label := processor.After(func(_ context.Context, s agent.State) (agent.State, error) {
		return note.In(s, note.Or(s, "")+string(s.Status())+","), nil
	})
	final, err := run(t.Context(), t, agent.Config{
		Driver: asks(1), AroundRun: []agent.Processor{label}, AroundStep: []agent.Processor{label},
	})
	require.NoError(t, err)
	assert.Equal(t, "running,"+"running,"+"done,", note.Or(final, ""))
}

func TestAfterIsNotForFailures(t *testing.T) {
	config := agent.Config{
		Driver: agent.DriverFunc(func(context.Context, agent.State) (agent.Step, error) { return agent.Step{}, errDown }),
	}
	never := processor.After(func(_ context.Context, s agent.State) (agent.State, error) {
		assert.Fail(t, "called")
		return s, nil
	})
	config.AroundRun, config.AroundStep = []agent.Processor{never}, []agent.Processor{never}
	_, err := run(t.Context(), t, config)
	require.ErrorIs(t, err, errDown)
}

// What was done before an After failed is not lost.
func TestAfterThatFailsKeepsWhatWasDone(t *testing.T) {
	noDisk := errors.New("no disk")
	store := processor.After(func(context.Context, agent.State) (agent.State, error) { return agent.State{}, noDisk })
	for name, tc := range map[string]struct {
		config agent.Config
		steps  int
	}{
		"run":  {agent.Config{AroundRun: []agent.Processor{store}}, 2},
		"step": {agent.Config{AroundStep: []agent.Processor{store}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var told events
			tc.config.Driver, tc.config.Observer = asks(1), &told
			final, err := run(t.Context(), t, tc.config)
			require.ErrorIs(t, err, noDisk)
			assert.Equal(t, agent.StatusFailed, final.Status())
			assert.Equal(t, agent.StopError, signal(t, final).Reason)
			assert.Contains(t, signal(t, final).Message, "no disk")
			assert.Equal(t, tc.steps, final.RunStepCount())
			assert.Equal(t, "fine", final.Message(2).Text(), "the tool's answer")
			completed := 0
			for _, name := range told.names() {
				if name == "step.completed" {
					completed++
				}
			}
			assert.Equal(t, tc.steps, completed)
			assert.Equal(t, agent.StatusFailed, told[len(told)-1].(agent.RunCompleted).State.Status())
		})
	}
}

// When a processor turns a failed step into the run's end, that is final: no policy lifts it, and no retry gets past
// it.
func TestRunErrorEndsTheRun(t *testing.T) {
	asked := 0
	strict := processor.Func(func(ctx context.Context, s agent.State, next processor.NextFunc) (agent.State, error) {
		s, err := next(ctx, s)
		if failed, ok := errors.AsType[*agent.StepError](err); ok {
			return s, &agent.RunError{State: failed.State, Err: failed}
		}
		return s, err
	})
	final, err := run(t.Context(), t, agent.Config{
		Driver: agent.DriverFunc(func(context.Context, agent.State) (agent.Step, error) {
			asked++
			return agent.Step{}, errDown
		}),
		AroundStep: []agent.Processor{processor.Retry{Delay: -1}, strict},
		Criterion:  continuation.All(agent.Base, continuation.Steps(9), continuation.ErrorPolicy{Model: continuation.Ignore}),
	})
	require.ErrorIs(t, err, errDown)
	assert.Equal(t, 1, asked)
	assert.Equal(t, 1, final.RunStepCount())
	assert.Equal(t, agent.StatusFailed, final.Status())
}

// If a processor started a run, that run's error must not pass for the outer run's own.
func TestErrorOfAnotherRunIsAnErrorLikeAnyOther(t *testing.T) {
	other := agent.New(agent.Config{
		Name:   "other",
		Driver: agent.DriverFunc(func(context.Context, agent.State) (agent.Step, error) { return agent.Step{}, errDown }),
	}).MustGet()
	ask := processor.Before(func(ctx context.Context, s agent.State) (agent.State, error) {
		if _, err := other.Run(ctx, agent.NewState()).Get(); err != nil {
			return s, fmt.Errorf("asking another agent: %w", err)
		}
		return s, nil
	})
	for name, config := range map[string]agent.Config{
		"run":  {AroundRun: []agent.Processor{processor.Deadline(1e12), ask}},
		"step": {AroundStep: []agent.Processor{processor.Usage(nil), ask}},
	} {
		config.Name, config.Driver = "this", asks(0)
		final, err := run(t.Context(), t, config)
		require.ErrorIs(t, err, errDown, name)
		assert.Equal(t, "this", final.Run().Agent, name)
		assert.Equal(t, "go", final.Message(0).Text(), name)
		assert.Zero(t, final.RunStepCount(), name)
	}
}
