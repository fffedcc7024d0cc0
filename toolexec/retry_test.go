package toolexec_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/toolexec"
)

var errBusy = errors.New("busy")

// flaky returns a tool that calls f with the number of the attempt, and an executor of it.
func flaky(t testing.TB, p toolexec.Policy, f func(ctx context.Context, attempt int) (toolexec.Output, error)) *toolexec.Executor {
	t.Helper()
	tool := toolexec.CallFunc(agent.ToolSpec{Name: "flaky"}, func(ctx context.Context, c toolexec.Call, _ nothing) (toolexec.Output, error) {
		return f(ctx, c.Attempt)
	})
	return executor(t, toolexec.Options{}, toolexec.WithPolicy(tool, p))
}

func TestRetryWaits(t *testing.T) {
	for name, test := range map[string]struct {
		retry toolexec.Retry
		waits []time.Duration
	}{
		"not at all":        {toolexec.Retry{}, nil},
		"once is once":      {toolexec.Retry{Attempts: 1, Delay: time.Second}, nil},
		"at once":           {toolexec.Retry{Attempts: 3}, []time.Duration{0, 0}},
		"doubling":          {toolexec.Retry{Attempts: 4, Delay: time.Second}, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}},
		"evenly":            {toolexec.Retry{Attempts: 3, Delay: time.Second, Backoff: 1}, []time.Duration{time.Second, time.Second}},
		"bounded":           {toolexec.Retry{Attempts: 4, Delay: time.Second, Backoff: 10, MaxDelay: 3 * time.Second}, []time.Duration{time.Second, 3 * time.Second, 3 * time.Second}},
		"bounded by itself": {toolexec.Retry{Attempts: 3, Delay: time.Hour}, []time.Duration{30 * time.Second, 30 * time.Second}},
		"no nonsense":       {toolexec.Retry{Attempts: 3, Delay: -time.Hour, Backoff: -1, MaxDelay: -1, Jitter: -1}, []time.Duration{0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var begins []time.Time
				e := flaky(t, toolexec.Policy{Retry: test.retry}, func(_ context.Context, attempt int) (toolexec.Output, error) {
					begins = append(begins, time.Now())
					assert.Len(t, begins, attempt)
					return toolexec.Output{}, errBusy
				})
				r := answer(t, t.Context(), e, call("flaky", ``))
				var waits []time.Duration
				var total time.Duration
				for i := 1; i < len(begins); i++ {
					waits = append(waits, begins[i].Sub(begins[i-1]))
					total += waits[i-1]
				}
				assert.Equal(t, test.waits, waits)
				assert.Equal(t, len(test.waits)+1, r.Attempts)
				assert.Equal(t, total, r.Duration)
				assert.Equal(t, agent.ToolFailed, r.Status)
				assert.ErrorIs(t, r.Err, errBusy)
			})
		})
	}
}

func TestJitterShortensWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := flaky(t, toolexec.Policy{Retry: toolexec.Retry{Attempts: 2, Delay: time.Second, Jitter: 0.5}},
			func(context.Context, int) (toolexec.Output, error) { return toolexec.Output{}, errBusy })
		seen := map[time.Duration]bool{}
		for range 20 {
			wait := answer(t, t.Context(), e, call("flaky", ``)).Duration
			assert.LessOrEqual(t, wait, time.Second)
			assert.GreaterOrEqual(t, wait, time.Second/2)
			seen[wait] = true
		}
		assert.Greater(t, len(seen), 1)
	})
}

func TestRetryUntilItWorks(t *testing.T) {
	e := flaky(t, toolexec.Policy{Retry: toolexec.Retry{Attempts: 5}}, func(_ context.Context, attempt int) (toolexec.Output, error) {
		if attempt < 3 {
			return toolexec.Output{}, errBusy
		}
		return toolexec.TextOutput("there you are"), nil
	})
	r := answer(t, t.Context(), e, call("flaky", ``))
	assert.Equal(t, agent.ToolExecuted, r.Status)
	assert.Equal(t, "there you are", r.Text())
	assert.Equal(t, 3, r.Attempts)
	assert.NoError(t, r.Err)
}

func TestModelIsToldHowOftenItWasTried(t *testing.T) {
	e := flaky(t, toolexec.Policy{Retry: toolexec.Retry{Attempts: 3}}, func(context.Context, int) (toolexec.Output, error) {
		return toolexec.Output{}, errBusy
	})
	assert.Equal(t, `tool "flaky": failed after 3 attempts: busy`, answer(t, t.Context(), e, call("flaky", ``)).Text())
}

func TestWhatIsWorthAnotherAttempt(t *testing.T) {
	always := func(error) bool { return true }
	invalid := &agent.ArgumentsError{Problems: []agent.ArgumentProblem{{Message: "not like that"}}}
	for name, test := range map[string]struct {
		check    func(error) bool
		f        func() (toolexec.Output, error)
		attempts int
	}{
		"an error":                    {nil, func() (toolexec.Output, error) { return toolexec.Output{}, errBusy }, 3},
		"an answer, though a bad one": {always, func() (toolexec.Output, error) { return toolexec.Output{Failed: true}, nil }, 1},
		"a panic":                     {nil, func() (toolexec.Output, error) { panic("boom") }, 1},
		"a panic, if so wished":       {always, func() (toolexec.Output, error) { panic("boom") }, 3},
		"something invalid":           {nil, func() (toolexec.Output, error) { return toolexec.Output{}, invalid }, 1},
		"something else": {
			func(err error) bool { return !errors.Is(err, errBusy) },
			func() (toolexec.Output, error) { return toolexec.Output{}, errBusy }, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := flaky(t, toolexec.Policy{Retry: toolexec.Retry{Attempts: 3, If: test.check}},
				func(context.Context, int) (toolexec.Output, error) { return test.f() })
			assert.Equal(t, test.attempts, answer(t, t.Context(), e, call("flaky", ``)).Attempts)
		})
	}
}

func TestRetryThatPanicsIsNoReasonToPanic(t *testing.T) {
	e := flaky(t, toolexec.Policy{Retry: toolexec.Retry{Attempts: 3, If: func(error) bool { panic("no idea") }}},
		func(context.Context, int) (toolexec.Output, error) { return toolexec.Output{}, errBusy })
	r := answer(t, t.Context(), e, call("flaky", ``))
	assert.Equal(t, 1, r.Attempts)
	assert.Equal(t, agent.ToolFailed, r.Status)
	assert.ErrorIs(t, r.Err, errBusy)
	var panicked *toolexec.PanicError
	assert.ErrorAs(t, r.Err, &panicked)
}

func TestEachAttemptHasItsWholeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := flaky(t, toolexec.Policy{Timeout: time.Second, Retry: toolexec.Retry{Attempts: 3, Delay: 10 * time.Second, Backoff: 1}},
			func(ctx context.Context, attempt int) (toolexec.Output, error) {
				if attempt == 3 {
					return toolexec.TextOutput("third time lucky"), nil
				}
				<-ctx.Done()
				return toolexec.Output{}, ctx.Err()
			})
		r := answer(t, t.Context(), e, call("flaky", ``))
		assert.Equal(t, "third time lucky", r.Text())
		assert.Equal(t, 22*time.Second, r.Duration)
	})
}

func TestAttemptThatWasGivenUpIsTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		e := flaky(t, toolexec.Policy{Timeout: time.Second, Retry: toolexec.Retry{Attempts: 3, If: func(error) bool { return true }}},
			func(context.Context, int) (toolexec.Output, error) { <-release; return toolexec.Output{}, nil })
		assert.Equal(t, 1, answer(t, t.Context(), e, call("flaky", ``)).Attempts, "two at work at the same time")
		close(release)
	})
}

func TestCancelEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		e := flaky(t, toolexec.Policy{Retry: toolexec.Retry{Attempts: 9, Delay: 2 * time.Second}},
			func(context.Context, int) (toolexec.Output, error) { return toolexec.Output{}, errBusy })
		r := answer(t, ctx, e, call("flaky", ``))
		assert.Equal(t, agent.ToolFailed, r.Status)
		assert.Equal(t, agent.ReasonCancelled, r.Reason)
		assert.Equal(t, 2, r.Attempts)
		assert.Equal(t, 3*time.Second, r.Duration)
		assert.Equal(t, `tool "flaky": failed after 2 attempts: the run was cancelled (context deadline exceeded); it said: busy`, r.Text())
		assert.ErrorIs(t, r.Err, errBusy)
	})
}

func TestCancelledAttemptIsTheLast(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	e := flaky(t, toolexec.Policy{Retry: toolexec.Retry{Attempts: 9, If: func(error) bool { return true }}},
		func(context.Context, int) (toolexec.Output, error) { cancel(); return toolexec.Output{}, errBusy })
	assert.Equal(t, 1, answer(t, ctx, e, call("flaky", ``)).Attempts)
}

// What one attempt does to its arguments, the next does not see.
func TestEachAttemptReadsItsArgumentsAnew(t *testing.T) {
	var seen [][]string
	tool := toolexec.Func("eat", "", func(_ context.Context, in struct{ Food []string }) (string, error) {
		seen = append(seen, append([]string(nil), in.Food...))
		in.Food[0] = "eaten"
		return "", errBusy
	})
	e := executor(t, toolexec.Options{Policy: toolexec.Policy{Retry: toolexec.Retry{Attempts: 2}}}, tool)
	answer(t, t.Context(), e, call("eat", `{"Food":["apple"]}`))
	assert.Equal(t, [][]string{{"apple"}, {"apple"}}, seen)
}

func TestToolThatChangesItsMindAboutItsArguments(t *testing.T) {
	asked := 0
	e := executor(t, toolexec.Options{}, foreign{
		spec: agent.ToolSpec{Name: "moody"}, policy: toolexec.Policy{Retry: toolexec.Retry{Attempts: 3}},
		prepare: func(string) (toolexec.Body, error) {
			if asked++; asked > 1 {
				return nil, errors.New("not any more")
			}
			return body(func(toolexec.Call) (toolexec.Output, error) { return toolexec.Output{}, errBusy }), nil
		},
	})
	r := answer(t, t.Context(), e, call("moody", ``))
	require.Equal(t, agent.ToolFailed, r.Status)
	assert.Equal(t, 1, r.Attempts)
	assert.ErrorIs(t, r.Err, errBusy)
	assert.ErrorContains(t, r.Err, "not any more")
}

func TestPolicyOfTheToolGoesFirst(t *testing.T) {
	attempts := func(options, own, inner, outer toolexec.Policy) int {
		tool := foreign{spec: agent.ToolSpec{Name: "moody"}, policy: own, prepare: func(string) (toolexec.Body, error) {
			return body(func(toolexec.Call) (toolexec.Output, error) { return toolexec.Output{}, errBusy }), nil
		}}
		e := executor(t, toolexec.Options{Policy: options}, toolexec.WithPolicy(toolexec.WithPolicy(tool, inner), outer))
		return answer(t, t.Context(), e, call("moody", ``)).Attempts
	}
	of := func(n int) toolexec.Policy { return toolexec.Policy{Retry: toolexec.Retry{Attempts: n}} }
	assert.Equal(t, 1, attempts(of(0), of(0), of(0), of(0)))
	assert.Equal(t, 2, attempts(of(2), of(0), of(0), of(0)))
	assert.Equal(t, 3, attempts(of(2), of(3), of(0), of(0)))
	assert.Equal(t, 4, attempts(of(2), of(3), of(4), of(0)))
	assert.Equal(t, 5, attempts(of(2), of(3), of(4), of(5)))
	assert.Equal(t, 1, attempts(of(2), of(3), of(4), of(1)), "once, said aloud")
}
