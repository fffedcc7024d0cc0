package continuation_test

import (
	"context"
	"encoding/json"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/continuation"
)

// IP-79
func TestStepsStopsAtTheLimit(t *testing.T) {
	script := []turn{call("t"), call("t"), answer("done")}
	for limit, want := range map[int]struct {
		steps  int
		status agent.Status
	}{
		-1: {0, agent.StatusStopped},
		0:  {0, agent.StatusStopped},
		2:  {2, agent.StatusStopped},
		3:  {3, agent.StatusStopped}, // a limit that is reached counts more than being done
		4:  {3, agent.StatusDone},
	} {
		final, err := run(t, agent.Config{
			Driver: turns(script...), Executor: works, Criterion: continuation.All(agent.Base, continuation.Steps(limit)),
		})
		require.NoError(t, err)
		assert.Equal(t, want.steps, final.RunStepCount(), "limit %d", limit)
		require.Equal(t, want.status, final.Status(), "limit %d", limit)
		if want.status == agent.StatusStopped {
			got := signal(t, final)
			assert.Equal(t, agent.StopStepsLimit, got.Reason)
			assert.Equal(t, "continuation.Steps", got.Source)
			assert.Equal(t, map[string]any{"currentSteps": want.steps, "maxSteps": max(limit, 0)}, got.Details)
		}
	}
}

// IP-79: also when the state is over the limit already.
func TestStepsOverTheLimit(t *testing.T) {
	final, err := run(t, agent.Config{
		Driver: turns(call("t")), Executor: works, Criterion: continuation.All(agent.Base, continuation.Steps(3)),
	})
	require.NoError(t, err)
	got := continuation.Steps(1).Evaluate(t.Context(), final).MustGet()
	assert.Equal(t, agent.Forbid, got.Verdict)
	assert.Equal(t, map[string]any{"currentSteps": 3, "maxSteps": 1}, got.Signal.Details)
	assert.Equal(t, "3 of at most 1 steps taken", got.Signal.Message)
}

// A second run of the session has all its steps again.
func TestLimitsCountTheRunNotTheSession(t *testing.T) {
	a := agent.New(agent.Config{
		Driver: turns(call("t").using(agent.Usage{InputTokens: 4, Cost: mo.Some(1.0)}), answer("a")), Executor: works,
		Criterion: continuation.All(agent.Base, continuation.Steps(3), continuation.Tokens(5), continuation.Cost(1.5)),
	}).MustGet()
	session := a.Session(agent.NewState())
	for range 3 {
		final, err := session.Run(t.Context(), agent.UserText("again")).Get()
		require.NoError(t, err)
		assert.Equal(t, agent.StatusDone, final.Status())
	}
	assert.Equal(t, 6, session.State().StepCount())
}

// IP-80
func TestTokensStopsAtTheLimit(t *testing.T) {
	step := call("t").using(agent.Usage{InputTokens: 30, OutputTokens: 20, Cost: mo.Some(0.0)})
	for limit, steps := range map[int64]int{0: 0, 1: 1, 99: 2, 100: 2, 101: 3} {
		final, err := run(t, agent.Config{
			Driver: turns(step), Executor: works, Criterion: continuation.All(agent.Base, continuation.Tokens(limit)),
		})
		require.NoError(t, err)
		assert.Equal(t, agent.StatusStopped, final.Status())
		assert.Equal(t, agent.Signal{
			Reason: agent.StopTokenLimit, Source: "continuation.Tokens", Message: signal(t, final).Message,
			Details: map[string]any{
				"totalTokens": int64(50 * steps), "inputTokens": int64(30 * steps), "outputTokens": int64(20 * steps), "maxTokens": limit,
			},
		}, signal(t, final))
	}
}

// A reply without usage cannot be counted, so the run is stopped. A reply at a known cost of zero counts as zero,
// tokens without a price are counted, and a failed model call does not count as a reply.
func TestTokensStopsWithoutCounts(t *testing.T) {
	for name, tc := range map[string]struct {
		usage agent.Usage
		steps int
	}{
		"no usage":            {agent.Usage{}, 1},
		"free and uncounted":  {agent.Usage{Cost: mo.Some(0.0)}, 5},
		"tokens, no price":    {agent.Usage{InputTokens: 20}, 5},
		"output tokens alone": {agent.Usage{OutputTokens: 20}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			final, err := run(t, agent.Config{
				Driver: turns(call("t").using(tc.usage)), Executor: works,
				Criterion: continuation.All(agent.Base, continuation.Tokens(100), continuation.Steps(5)),
			})
			require.NoError(t, err)
			assert.Equal(t, tc.steps, final.RunStepCount())
			if tc.steps == 1 {
				assert.Equal(t, agent.StopTokenLimit, signal(t, final).Reason)
				assert.Contains(t, signal(t, final).Message, "a reply came without usage")
			}
		})
	}
}

// A usage that cannot be makes no room for more.
func TestLimitsStopWhereTheCountIsWrong(t *testing.T) {
	for name, usage := range map[string]agent.Usage{
		"tokens":   {InputTokens: -50, OutputTokens: 60, Cost: mo.Some(0.0)},
		"cost":     {InputTokens: 1, Cost: mo.Some(-0.5)},
		"overflow": {InputTokens: math.MaxInt64, OutputTokens: 1, Cost: mo.Some(0.0)},
	} {
		for _, limit := range []agent.Criterion{continuation.Tokens(100), continuation.Cost(1)} {
			final, err := run(t, agent.Config{
				Driver: turns(call("t").using(usage)), Executor: works, Criterion: continuation.All(agent.Base, limit, continuation.Steps(5)),
			})
			require.NoError(t, err)
			assert.Equal(t, 1, final.RunStepCount(), "%s: %v", name, limit)
			assert.Contains(t, signal(t, final).Message, "negative")
		}
	}
}

func TestCostStopsAtTheLimit(t *testing.T) {
	step := call("t").using(agent.Usage{Cost: mo.Some(0.25)})
	for limit, steps := range map[float64]int{0: 0, 0.1: 1, 0.5: 2, 0.6: 3} {
		final, err := run(t, agent.Config{
			Driver: turns(step), Executor: works, Criterion: continuation.All(agent.Base, continuation.Cost(limit)),
		})
		require.NoError(t, err)
		assert.Equal(t, agent.StatusStopped, final.Status())
		assert.Equal(t, agent.StopCostLimit, signal(t, final).Reason)
		assert.Equal(t, map[string]any{"currentCost": 0.25 * float64(steps), "maxCost": limit}, signal(t, final).Details)
	}
}

// A limit that cannot be enforced stops the run, with advice.
func TestUnknownCostStops(t *testing.T) {
	priced := call("t").using(agent.Usage{Cost: mo.Some(0.01)})
	unpriced := call("t").using(agent.Usage{})
	named := unpriced
	named.step.Model = "big-1"
	for want, script := range map[string][]turn{
		`the reply of model "big-1" in step 1 came without a cost; have the driver set Usage.Cost`: {priced, named},
		`the model's reply in step 0 came without a cost`:                                          {unpriced},
		`$NaN of at most $1 spent`: {call("t").using(agent.Usage{Cost: mo.Some(math.NaN())})},
	} {
		final, err := run(t, agent.Config{
			Driver: turns(script...), Executor: works, Criterion: continuation.All(agent.Base, continuation.Cost(1)),
		})
		require.NoError(t, err)
		assert.Equal(t, len(script), final.RunStepCount())
		assert.Equal(t, agent.StopCostLimit, signal(t, final).Reason)
		assert.Contains(t, signal(t, final).Message, want)
	}
}

// The message names the reply at fault, and not a call before it that brought none.
func TestUnknownCostNamesTheReply(t *testing.T) {
	final, err := run(t, agent.Config{
		Driver: turns(fail(assert.AnError), call("t").using(agent.Usage{})), Executor: works,
		Criterion: continuation.All(agent.Base, continuation.Cost(1),
			continuation.ErrorPolicy{Model: continuation.Retry, MaxRetries: 1}),
	})
	require.NoError(t, err)
	assert.Contains(t, signal(t, final).Message, "the model's reply in step 1 came without a cost")
}

// A model call that failed cost nothing that is known, and does not make
// the cost unknown.
func TestFailedCallHasNoCost(t *testing.T) {
	final, err := run(t, agent.Config{
		Driver:   turns(fail(assert.AnError), answer("a")),
		Executor: works,
		Criterion: continuation.All(agent.Base, continuation.Cost(1),
			continuation.ErrorPolicy{Model: continuation.Retry, MaxRetries: 1}),
	})
	require.NoError(t, err)
	assert.Equal(t, agent.StatusDone, final.Status())
}

// slow is a driver whose every turn takes a second, and asks for a tool.
var slow = agent.DriverFunc(func(context.Context, agent.State) (agent.Step, error) {
	time.Sleep(time.Second)
	return call("t").step, nil
})

// IP-81
func TestTimeStopsAfterTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		final, err := run(t, agent.Config{
			Driver: slow, Executor: works, Criterion: continuation.All(agent.Base, continuation.Time(2*time.Second)),
		})
		require.NoError(t, err)
		assert.Equal(t, 3, final.RunStepCount(), "after two seconds the limit is met, not passed")
		assert.Equal(t, agent.StatusStopped, final.Status())
		assert.Equal(t, agent.Signal{
			Reason: agent.StopTimeLimit, Source: "continuation.Time", Message: "3s of at most 2s passed",
			Details: map[string]any{"elapsedSeconds": 3.0, "maxSeconds": 2.0},
		}, signal(t, final))
	})
}

// IP-81
func TestTimeNeedsAStart(t *testing.T) {
	assert.Equal(t, agent.Evaluation{}, continuation.Time(-1).Evaluate(t.Context(), agent.NewState()).MustGet())
}

// IP-84: one value, two runs that began at different times.
func TestRunsDoNotShareAClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := agent.New(agent.Config{
			Driver: slow, Executor: works, Criterion: continuation.All(agent.Base, continuation.Time(2*time.Second)),
		}).MustGet()
		finals := make([]agent.State, 3)
		var wg sync.WaitGroup
		for i := range finals {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 1500 * time.Millisecond)
				finals[i] = a.Run(t.Context(), agent.NewState()).MustGet()
			})
		}
		wg.Wait()
		for _, final := range finals {
			assert.Equal(t, 3, final.RunStepCount())
			assert.Equal(t, map[string]any{"elapsedSeconds": 3.0, "maxSeconds": 2.0}, signal(t, final).Details)
		}
	})
}

// IP-83
func TestGuardsUnderTheirLimitsSayNothing(t *testing.T) {
	guards := continuation.All(
		continuation.Steps(10), continuation.Tokens(1000), continuation.Cost(1), continuation.Time(time.Hour),
		continuation.FinishReason(agent.FinishLength), continuation.ErrorPolicy{},
	)
	final, err := run(t, agent.Config{
		Driver: turns(call("t").using(agent.Usage{InputTokens: 10, Cost: mo.Some(0.01)}), answer("a")), Executor: works,
		Criterion: continuation.All(agent.Base, guards),
	})
	require.NoError(t, err)
	assert.Equal(t, agent.StatusDone, final.Status())
	assert.Equal(t, agent.StopCompleted, signal(t, final).Reason)
	assert.Equal(t, agent.Evaluation{}, guards.Evaluate(t.Context(), final).MustGet())
}

// The figures in a signal survive JSON.
func TestSignalsSurviveJSON(t *testing.T) {
	final, err := run(t, agent.Config{
		Driver: turns(call("t")), Executor: works, Criterion: continuation.All(agent.Base, continuation.Steps(1)),
	})
	require.NoError(t, err)
	raw, err := json.Marshal(signal(t, final))
	require.NoError(t, err)
	assert.JSONEq(t, `{"reason":"steps_limit","message":"1 of at most 1 steps taken","source":"continuation.Steps",
		"details":{"currentSteps":1,"maxSteps":1}}`, string(raw))
}
