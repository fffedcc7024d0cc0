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

// within returns an executor of one tool that has five seconds, and two to notice that they are over.
func within(t testing.TB, f func(ctx context.Context) (string, error)) *toolexec.Executor {
	t.Helper()
	tool := toolexec.Func("slow", "", func(ctx context.Context, _ nothing) (string, error) { return f(ctx) })
	return executor(t, toolexec.Options{}, toolexec.WithPolicy(tool, toolexec.Policy{Timeout: 5 * time.Second, Grace: 2 * time.Second}))
}

func TestTimeoutReachesTheTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		e := within(t, func(ctx context.Context) (string, error) {
			deadline, ok := ctx.Deadline()
			assert.True(t, ok)
			assert.Equal(t, start.Add(5*time.Second), deadline)
			<-ctx.Done()
			assert.Equal(t, &toolexec.TimeoutError{After: 5 * time.Second}, context.Cause(ctx))
			return "", ctx.Err()
		})
		r := answer(t, t.Context(), e, call("slow", ``))
		assert.Equal(t, agent.ToolFailed, r.Status)
		assert.Equal(t, agent.ReasonTimeout, r.Reason)
		assert.Equal(t, `tool "slow": failed: no answer within 5s`, r.Text())
		assert.Equal(t, 1, r.Attempts)
		assert.Equal(t, start, r.Started)
		assert.Equal(t, 5*time.Second, r.Duration)
		assert.ErrorIs(t, r.Err, context.DeadlineExceeded)
		assert.Equal(t, agent.KindTimeout, agent.KindOf(r.Err))
		var timeout interface{ Timeout() bool }
		require.ErrorAs(t, r.Err, &timeout)
		assert.True(t, timeout.Timeout())
		assert.Zero(t, e.AbandonedCalls())
	})
}

func TestToolThatIgnoresItsTimeoutIsGivenUp(t *testing.T) {
	for name, end := range map[string]func(){"returns at last": func() {}, "panics at last": func() { panic("late") }} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				e := within(t, func(context.Context) (string, error) { <-release; end(); return "too late", nil })
				r := answer(t, t.Context(), e, call("slow", ``))
				assert.Equal(t, agent.ToolFailed, r.Status)
				assert.Equal(t, agent.ReasonTimeout, r.Reason)
				assert.Equal(t, `tool "slow": failed: no answer within 5s; it was abandoned and may still be running`, r.Text())
				assert.Equal(t, 7*time.Second, r.Duration)
				assert.Equal(t, 1, e.AbandonedCalls())
				close(release)
				synctest.Wait()
				assert.Zero(t, e.AbandonedCalls(), "it has returned")
			})
		})
	}
}

func TestAnswerWithinTheGraceCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := func(out string, err error) *toolexec.Executor {
			return within(t, func(ctx context.Context) (string, error) {
				<-ctx.Done()
				time.Sleep(time.Second)
				return out, err
			})
		}
		r := answer(t, t.Context(), late("just in time", nil), call("slow", ``))
		assert.Equal(t, agent.ToolExecuted, r.Status)
		assert.Equal(t, "just in time", r.Text())
		assert.Equal(t, 6*time.Second, r.Duration)

		busy := errors.New("the line is busy")
		r = answer(t, t.Context(), late("", busy), call("slow", ``))
		assert.Equal(t, agent.ReasonTimeout, r.Reason)
		assert.Equal(t, `tool "slow": failed: no answer within 5s; it said: the line is busy`, r.Text())
		assert.ErrorIs(t, r.Err, busy)
	})
}

func TestNoGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		tool := toolexec.Func("slow", "", func(context.Context, nothing) (string, error) { <-release; return "", nil })
		e := executor(t, toolexec.Options{Policy: toolexec.Policy{Timeout: time.Second, Grace: -1}}, tool)
		assert.Equal(t, time.Second, answer(t, t.Context(), e, call("slow", ``)).Duration)
		close(release)
	})
}

func TestPanicAfterTheTimeoutIsAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := answer(t, t.Context(), within(t, func(ctx context.Context) (string, error) { <-ctx.Done(); panic("late") }), call("slow", ``))
		assert.Equal(t, agent.ReasonPanic, r.Reason)
	})
}

func TestCancelledRunDoesNotWaitForABoundedTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		release := make(chan struct{})
		e := within(t, func(context.Context) (string, error) { cancel(); <-release; return "", nil })
		r := answer(t, ctx, e, call("slow", ``))
		assert.Equal(t, agent.ToolFailed, r.Status)
		assert.Equal(t, agent.ReasonCancelled, r.Reason)
		assert.Equal(t, `tool "slow": failed: the run was cancelled (context canceled); it was abandoned and may still be running`, r.Text())
		assert.Equal(t, 2*time.Second, r.Duration)
		assert.Equal(t, 1, e.AbandonedCalls())
		close(release)
	})
}

func TestDeadlineOfTheRunIsNoTimeoutOfTheTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r := answer(t, ctx, within(t, func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }), call("slow", ``))
		assert.Equal(t, agent.ReasonCancelled, r.Reason)
		assert.Equal(t, `tool "slow": failed: the run was cancelled (context deadline exceeded)`, r.Text())
	})
}

// A tool's own timeout error is an ordinary error of the tool.
func TestToolWithATimeoutOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := answer(t, t.Context(), within(t, func(ctx context.Context) (string, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			<-ctx.Done()
			return "", ctx.Err()
		}), call("slow", ``))
		assert.Equal(t, agent.ReasonError, r.Reason)
		assert.Equal(t, `tool "slow": failed: context deadline exceeded`, r.Text())
	})
}

// A tool that returns at the moment when it is abandoned has either answered or was abandoned, never both.
func TestReturnAtTheLastMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := within(t, func(context.Context) (string, error) { time.Sleep(7 * time.Second); return "here I am", nil })
		outcomes := map[agent.ToolStatus]bool{}
		for range 200 {
			r := answer(t, t.Context(), e, call("slow", ``))
			outcomes[r.Status] = true
			if r.Status == agent.ToolExecuted {
				assert.Equal(t, "here I am", r.Text())
			} else {
				assert.Equal(t, agent.ReasonTimeout, r.Reason)
			}
			synctest.Wait()
			assert.Zero(t, e.AbandonedCalls())
		}
		t.Log(outcomes)
	})
}
