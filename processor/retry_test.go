package processor_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/continuation"
	"github.com/grapnel-go/grapnel/processor"
)

// flaky is a driver whose calls fail with the errors, in order, and then answer;
// it notes when, since its making, it was called.
type flaky struct {
	errs   []error
	from   time.Time
	called []time.Duration
}

func fails(errs ...error) *flaky { return &flaky{errs: errs, from: time.Now()} }

func (f *flaky) Next(ctx context.Context, s agent.State) mo.Result[agent.Step] {
	f.called = append(f.called, time.Since(f.from))
	if i := len(f.called) - 1; i < len(f.errs) {
		return mo.Err[agent.Step](f.errs[i])
	}
	return asks(0).Next(ctx, s)
}

// trouble is an error that knows what is to be done about it.
type trouble struct {
	kind  agent.ErrorKind
	after time.Duration
}

func (e trouble) Error() string              { return "trouble with the service" }
func (e trouble) ErrorKind() agent.ErrorKind { return e.kind }
func (e trouble) RetryAfter() time.Duration  { return e.after }

// hopeless is an error that is not retryable.
type hopeless struct{ error }

func (hopeless) Retryable() bool { return false }

var errDown = errors.New("down")

func TestRetryUntilTheModelAnswers(t *testing.T) {
	seconds := func(s ...float64) []time.Duration {
		out := make([]time.Duration, len(s))
		for i := range s {
			out[i] = time.Duration(s[i] * float64(time.Second))
		}
		return out
	}
	wants := func(after time.Duration) error { return fmt.Errorf("asking: %w", trouble{agent.KindRateLimit, after}) }
	for name, tc := range map[string]struct {
		retry  processor.Retry
		errs   []error
		called []time.Duration
		fails  bool
	}{
		"defaults":                      {processor.Retry{}, []error{errDown, errDown}, seconds(0, 1, 3), false},
		"defaults, used up":             {processor.Retry{}, []error{errDown, errDown, errDown}, seconds(0, 1, 3), true},
		"nothing fails":                 {processor.Retry{}, nil, seconds(0), false},
		"one attempt is no retry":       {processor.Retry{Attempts: 1}, []error{errDown}, seconds(0), true},
		"less than none is one":         {processor.Retry{Attempts: -1}, []error{errDown}, seconds(0), true},
		"delay and backoff":             {processor.Retry{Attempts: 4, Delay: 2 * time.Second, Backoff: 3}, []error{errDown, errDown, errDown}, seconds(0, 2, 8, 26), false},
		"even waits":                    {processor.Retry{Attempts: 4, Backoff: 1}, []error{errDown, errDown, errDown}, seconds(0, 1, 2, 3), false},
		"waits are limited":             {processor.Retry{Attempts: 5, Max: 3 * time.Second}, []error{errDown, errDown, errDown, errDown}, seconds(0, 1, 3, 6, 9), false},
		"no waits":                      {processor.Retry{Delay: -1}, []error{errDown, errDown}, seconds(0, 0, 0), false},
		"the service asks for time":     {processor.Retry{}, []error{wants(30 * time.Second), wants(time.Millisecond)}, seconds(0, 30, 32), false},
		"the service asks for too much": {processor.Retry{}, []error{wants(time.Hour)}, seconds(0), true},
		"too much is up to you":         {processor.Retry{Max: 2 * time.Hour}, []error{wants(time.Hour)}, seconds(0, 3600), false},
		"invalid stays invalid":         {processor.Retry{}, []error{trouble{kind: agent.KindInvalid}}, seconds(0), true},
		"the error says no":             {processor.Retry{}, []error{errDown, hopeless{errDown}}, seconds(0, 1), true},
		"when says no": {processor.Retry{When: func(err error) bool { return agent.KindOf(err) == agent.KindTimeout }},
			[]error{fmt.Errorf("late: %w", context.DeadlineExceeded), errDown}, seconds(0, 1), true},
		"when says yes": {processor.Retry{When: func(error) bool { return true }}, []error{hopeless{errDown}}, seconds(0, 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				driver := fails(tc.errs...)
				final, err := run(t.Context(), t, agent.Config{Driver: driver, AroundStep: []agent.Processor{tc.retry}})
				assert.Equal(t, tc.called, driver.called)
				assert.Equal(t, 1, final.RunStepCount(), "all attempts are one step")
				if tc.fails {
					require.Error(t, err)
					assert.Equal(t, agent.StatusFailed, final.Status())
					assert.Equal(t, 1, final.RunFailures())
					return
				}
				require.NoError(t, err)
				assert.Equal(t, "done", final.Answer())
				assert.Zero(t, final.RunFailures())
			})
		})
	}
}

// Jitter only ever makes a wait shorter, and not by more than was said.
func TestJitterStaysWithinTheWait(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		jitter := rapid.Float64Range(0, 1).Draw(rt, "jitter")
		var waited time.Duration
		synctest.Test(t, func(t *testing.T) {
			driver := fails(errDown)
			_, err := run(t.Context(), t, agent.Config{
				Driver: driver, AroundStep: []agent.Processor{processor.Retry{Delay: time.Minute, Max: time.Hour, Jitter: jitter}},
			})
			require.NoError(t, err)
			waited = driver.called[1]
		})
		assert.LessOrEqual(rt, waited, time.Minute)
		assert.GreaterOrEqual(rt, waited, time.Duration((1-jitter)*float64(time.Minute))-1)
	})
}

// Once the model answered, tools may have run: nothing is done twice.
func TestStepWhoseToolsRanIsNotRetried(t *testing.T) {
	for name, prepares := range map[string]bool{"executing": true, "preparing": false} {
		t.Run(name, func(t *testing.T) {
			ran := 0
			var executor agent.Executor = tool(func(context.Context) (string, error) {
				ran++
				return "", &broken{}
			})
			if !prepares {
				executor = unprepared{executor}
			}
			asked := 0
			final, err := run(t.Context(), t, agent.Config{
				Driver: agent.DriverFunc(func(ctx context.Context, s agent.State) (agent.Step, error) {
					asked++
					return asks(1)(ctx, s)
				}),
				Executor:   executor,
				AroundStep: []agent.Processor{processor.Retry{When: func(error) bool { return true }}},
			})
			_, ok := errors.AsType[*broken](err)
			require.True(t, ok, err)
			assert.Equal(t, 1, asked)
			if prepares {
				assert.Equal(t, 1, ran)
			}
			assert.Equal(t, 1, final.RunStepCount())
		})
	}
}

// unprepared fails before anything runs.
type unprepared struct{ agent.Executor }

func (unprepared) Prepare(context.Context, agent.State, *agent.ToolCall) mo.Result[*agent.Prepared] {
	return mo.Err[*agent.Prepared](&broken{})
}

// Errors other than the failure of the step are not retried.
func TestOtherErrorsAreNotRetried(t *testing.T) {
	calls := 0
	inner := processor.Before(func(_ context.Context, s agent.State) (agent.State, error) {
		calls++
		return s, errDown
	})
	_, err := run(t.Context(), t, agent.Config{Driver: asks(0), AroundStep: []agent.Processor{processor.Retry{}, inner}})
	require.ErrorIs(t, err, errDown)
	assert.Equal(t, 1, calls)
}

// A failed tool does not count as a failed model call.
func TestFailedToolsAreNotRetried(t *testing.T) {
	ran := 0
	final, err := run(t.Context(), t, agent.Config{
		Driver: asks(1), AroundStep: []agent.Processor{processor.Retry{}},
		Executor: tool(func(context.Context) (string, error) { ran++; return "", errDown }),
	})
	require.NoError(t, err)
	assert.Equal(t, 1, ran)
	assert.Equal(t, 2, final.RunStepCount())
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	stop := agent.Signal{Reason: agent.StopTimeLimit, Source: "test"}
	for name, tc := range map[string]struct {
		cause  error
		status agent.Status
	}{
		"cancelled": {nil, agent.StatusCancelled},
		"stopped":   {&agent.SignalError{Signal: stop}, agent.StatusStopped},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(10*time.Second, func() { cancel(tc.cause) })
				driver := fails(errDown, errDown, errDown)
				final, _ := run(ctx, t, agent.Config{
					Driver: driver, AroundStep: []agent.Processor{processor.Retry{Delay: 7 * time.Second}},
				})
				assert.Equal(t, []time.Duration{0, 7 * time.Second}, driver.called)
				assert.Equal(t, 10*time.Second, time.Since(driver.from), "the wait is cut short")
				assert.Equal(t, tc.status, final.Status())
				require.Equal(t, 1, final.RunStepCount(), "the failure is kept")
				assert.Contains(t, final.LastStep().Failure().Text, "down")
			})
		})
	}
}

// A cancelled call is not repeated.
func TestCancelledCallIsNotRetried(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	final, err := run(ctx, t, agent.Config{
		Driver: agent.DriverFunc(func(ctx context.Context, _ agent.State) (agent.Step, error) {
			asked++
			cancel()
			return agent.Step{}, ctx.Err()
		}),
		AroundStep: []agent.Processor{processor.Retry{Delay: -1}},
	})
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, agent.StatusCancelled, final.Status())
	assert.Equal(t, 1, asked)
}

func TestRetriesAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told events
		final, err := run(t.Context(), t, agent.Config{
			Driver: fails(errDown), AroundStep: []agent.Processor{processor.Retry{}}, Observer: &told,
		})
		require.NoError(t, err)
		assert.Equal(t, []string{
			"run.started", "judged", "step.started",
			"inference.started", "inference.completed", "inference.retrying", "inference.started", "inference.completed",
			"step.completed", "judged", "run.completed",
		}, told.names())
		got := told[5].(processor.Retrying)
		require.ErrorIs(t, got.Err, errDown)
		got.Err = nil
		assert.Equal(t, processor.Retrying{Run: final.Run(), Step: 0, Attempt: 1, Wait: time.Second}, got)
	})
}

// What still fails after all attempts is left to the criteria: here it is one
// failed step of two that may fail.
func TestErrorPolicyJudgesWhatRetryGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		driver := fails(errDown, errDown, errDown, errDown)
		final, err := run(t.Context(), t, agent.Config{
			Driver: driver, AroundStep: []agent.Processor{processor.Retry{Attempts: 2}},
			Criterion: continuation.All(agent.Base, continuation.ErrorPolicy{Model: continuation.Retry, MaxRetries: 2}),
		})
		require.NoError(t, err)
		assert.Equal(t, "done", final.Answer())
		assert.Len(t, driver.called, 5)
		assert.Equal(t, 3, final.RunStepCount())
		assert.Equal(t, 2, final.RunFailures())
	})
}

// One value serves many runs at the same time, each with its own count.
func TestRunsDoNotShareAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := agent.NewScratch[int](nil)
		a := agent.New(agent.Config{
			Driver: agent.DriverFunc(func(ctx context.Context, s agent.State) (agent.Step, error) {
				if n := failed.Get(s); *n < 2 {
					*n++
					return agent.Step{}, errDown
				}
				return asks(0)(ctx, s)
			}),
			AroundStep: []agent.Processor{processor.Retry{Attempts: 3}},
		}).MustGet()
		done := make(chan error)
		for range 50 {
			go func() { done <- a.Run(t.Context(), agent.NewState()).Error() }()
		}
		for range 50 {
			assert.NoError(t, <-done)
		}
	})
}
