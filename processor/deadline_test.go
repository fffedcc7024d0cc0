package processor_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/continuation"
	"github.com/grapnel-go/grapnel/processor"
)

// wait waits and reports whether it was cut short.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return errors.New("cut short") // as a driver may well say: not in the words of the context
	}
}

// slowly returns a driver whose every turn takes a second.
func slowly(n int) agent.Driver {
	return agent.DriverFunc(func(ctx context.Context, s agent.State) (agent.Step, error) {
		if err := wait(ctx, time.Second); err != nil {
			return agent.Step{}, err
		}
		return asks(n)(ctx, s)
	})
}

func TestDeadlineInterruptsTheRun(t *testing.T) {
	const limit = 2500 * time.Millisecond
	slowTool := tool(func(ctx context.Context) (string, error) { return "late", wait(ctx, time.Minute) })
	brokenTool := tool(func(ctx context.Context) (string, error) {
		_ = wait(ctx, time.Minute)
		return "", &broken{}
	})
	slowBefore := processor.Before(func(ctx context.Context, s agent.State) (agent.State, error) {
		return s, wait(ctx, time.Minute)
	})
	around := []agent.Processor{processor.Deadline(limit)}
	for name, tc := range map[string]struct {
		config agent.Config
		steps  int
		after  time.Duration
	}{
		"in a model call":        {agent.Config{Driver: slowly(9), AroundRun: around}, 2, limit},
		"in a tool":              {agent.Config{Driver: slowly(9), Executor: slowTool, AroundRun: around}, 1, limit},
		"in a tool that breaks":  {agent.Config{Driver: slowly(9), Executor: brokenTool, AroundRun: around}, 1, limit},
		"in another processor":   {agent.Config{Driver: slowly(9), AroundRun: append(around, slowBefore)}, 0, limit},
		"in a wait for a retry":  {agent.Config{Driver: fails(errDown, errDown), AroundRun: around, AroundStep: []agent.Processor{processor.Retry{Delay: limit * 2}}}, 1, limit},
		"in a step's processor":  {agent.Config{Driver: slowly(9), AroundRun: around, AroundStep: []agent.Processor{slowBefore}}, 0, limit},
		"in a criterion":         {agent.Config{Driver: slowly(9), AroundRun: around, Criterion: slowCriterion{}}, 0, limit},
		"step: in a model call":  {agent.Config{Driver: slowly(9), AroundStep: []agent.Processor{processor.Deadline(limit / 5)}}, 0, limit / 5},
		"step: in a tool":        {agent.Config{Driver: slowly(9), Executor: slowTool, AroundStep: around}, 1, limit},
		"step: in a broken tool": {agent.Config{Driver: slowly(9), Executor: brokenTool, AroundStep: around}, 1, limit},
		"nested, inner first":    {agent.Config{Driver: slowly(9), AroundRun: append([]agent.Processor{processor.Deadline(time.Hour)}, around...)}, 2, limit},
		"nested, outer first":    {agent.Config{Driver: slowly(9), AroundRun: append(around, processor.Deadline(time.Hour))}, 2, limit},
		"no time at all":         {agent.Config{Driver: slowly(9), AroundRun: []agent.Processor{processor.Deadline(0)}}, 0, 0},
		"less than no time":      {agent.Config{Driver: slowly(9), AroundRun: []agent.Processor{processor.Deadline(-time.Hour)}}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				final, err := run(t.Context(), t, tc.config)
				require.NoError(t, err)
				assert.Equal(t, tc.after, time.Since(began))
				assert.Equal(t, agent.StatusStopped, final.Status())
				assert.Equal(t, agent.StopTimeLimit, signal(t, final).Reason)
				assert.Equal(t, "processor.Deadline", signal(t, final).Source)
				assert.InDelta(t, tc.after.Seconds(), signal(t, final).Details["elapsedSeconds"], 0.001)
				assert.Equal(t, tc.steps, final.RunStepCount())
				assert.Equal(t, 1+messages(final), final.MessageCount(), "what was done is kept")
			})
		})
	}
}

// messages returns how many messages the run's steps brought.
func messages(s agent.State) int {
	n := 0
	for _, step := range s.RunSteps() {
		if n += step.ResultCount(); step.Message().Role() != "" {
			n++
		}
	}
	return n
}

type slowCriterion struct{}

func (slowCriterion) Evaluate(ctx context.Context, s agent.State) mo.Result[agent.Evaluation] {
	return continuation.All(continuation.UntilCancelled(func(ctx context.Context, _ agent.State) (bool, error) {
		return false, wait(ctx, time.Minute)
	})).Evaluate(ctx, s)
}

func TestDeadlineDetails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := processor.Before(func(ctx context.Context, s agent.State) (agent.State, error) {
			return s, wait(ctx, 3*time.Second) // before the deadline begins
		})
		final, err := run(t.Context(), t, agent.Config{
			Driver: slowly(9), AroundRun: []agent.Processor{start, processor.Deadline(1500 * time.Millisecond)},
		})
		require.NoError(t, err)
		assert.Equal(t, agent.Signal{
			Reason: agent.StopTimeLimit, Source: "processor.Deadline", Message: "the time limit of 1.5s has passed",
			Details: map[string]any{"elapsedSeconds": 4.5, "maxSeconds": 1.5},
		}, signal(t, final))
	})
}

func TestDeadlineInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		final, err := run(t.Context(), t, agent.Config{
			Driver: slowly(2), AroundRun: []agent.Processor{processor.Deadline(time.Minute)},
			AroundStep: []agent.Processor{processor.Deadline(2 * time.Second)},
		})
		require.NoError(t, err)
		assert.Equal(t, agent.StatusDone, final.Status())
	})
}

// Another cancel is not the deadline's doing.
func TestDeadlineLeavesCancelsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, config := range []agent.Config{
			{AroundRun: []agent.Processor{processor.Deadline(time.Minute)}},
			{AroundStep: []agent.Processor{processor.Deadline(time.Minute)}},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
			defer cancel()
			config.Driver = slowly(9)
			final, err := run(ctx, t, config)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			assert.Equal(t, agent.StatusCancelled, final.Status())
		}
	})
}

// Nor is the shorter time that another processor gave.
func TestDeadlineLeavesOtherTimeoutsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hasty := processor.Func(func(ctx context.Context, s agent.State, next processor.NextFunc) (agent.State, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Second/2)
			defer cancel()
			return next(ctx, s)
		})
		final, err := run(t.Context(), t, agent.Config{
			Driver: slowly(9), AroundStep: []agent.Processor{hasty, processor.Deadline(time.Minute)},
		})
		require.ErrorContains(t, err, "cut short")
		assert.Equal(t, agent.StatusFailed, final.Status())
	})
}

// A failure is a failure, whatever the time.
func TestDeadlineLeavesFailuresAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := processor.After(func(ctx context.Context, s agent.State) (agent.State, error) {
			<-ctx.Done()
			return s, errDown
		})
		final, err := run(t.Context(), t, agent.Config{
			Driver: asks(1), AroundRun: []agent.Processor{processor.Deadline(time.Second), store},
		})
		require.ErrorIs(t, err, errDown)
		assert.Equal(t, agent.StatusFailed, final.Status())
		assert.Equal(t, 2, final.RunStepCount())
	})
}

// IP-84: one value, two runs that began at different times.
func TestDeadlineIsEachRunsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := agent.New(agent.Config{
			Driver: slowly(9), Executor: works, AroundRun: []agent.Processor{processor.Deadline(2500 * time.Millisecond)},
		}).MustGet()
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				began := time.Now()
				final := a.Run(t.Context(), agent.NewState()).MustGet()
				assert.Equal(t, 2500*time.Millisecond, time.Since(began))
				assert.Equal(t, 2, final.RunStepCount())
			})
		}
		wg.Wait()
	})
}
