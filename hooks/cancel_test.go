package hooks_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
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

// LH-45, LH-46: a run that is cancelled while a hook is asked about a call runs none
// of the batch, whatever the hook says then, and is cancelled, not failed.
func TestCancelWhileAHookIsAsked(t *testing.T) {
	gaveUp := errors.New("the user gave up")
	for name, answer := range map[string]func(ctx context.Context, c hooks.ToolContext) hooks.Result{
		"allow":   func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Allow() },
		"its end": func(ctx context.Context, c hooks.ToolContext) hooks.Result { return c.Fail(ctx.Err()) },
		"error":   func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Fail(errPaper) },
		"panic":   func(context.Context, hooks.ToolContext) hooks.Result { panic("boom") },
		"mock":    func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Mock("x") },
		"rewrite": func(_ context.Context, c hooks.ToolContext) hooks.Result {
			return c.Rewrite(map[string]any{"command": "pwd"})
		},
	} {
		for _, policy := range []hooks.FailurePolicy{hooks.Closed, hooks.Open, hooks.Abort, hooks.Retry(5, time.Hour, hooks.Open)} {
			t.Run(name+" "+policy.String(), func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				asked := 0
				w := workIn(t, ctx, []hooks.Hook{
					hooks.On(hooks.AtPreToolUse, "h", func(ctx context.Context, c hooks.ToolContext) hooks.Result {
						asked++
						cancel(gaveUp)
						return answer(ctx, c)
					}, hooks.ToolNamed("bash")).WithFailure(policy),
				}, wants("read_file", file, "bash", ls, "bash", ls))
				require.ErrorIs(t, w.err, gaveUp)
				assert.Equal(t, agent.StatusCancelled, w.Status())
				assert.Equal(t, 1, asked)
				assert.Empty(t, w.ran)
				require.Len(t, w.results(), 3)
				for _, r := range w.results() {
					assert.Equal(t, agent.ReasonCancelled, r.Reason)
				}
				last := w.LastStep()
				assert.NoError(t, errorOf(last.Failure()), "cancelling is no failure of the step")
			})
		}
	}
}

// errorOf returns a failure as an error, nil if there is none.
func errorOf(f *agent.Failure) error {
	if f == nil {
		return nil
	}
	return f
}

// A denial from before the run's cancellation counts.
func TestDenialsBeforeCancellingStand(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := workIn(t, ctx, []hooks.Hook{
		before("guard", deny("no"), hooks.ToolNamed("bash")),
		before("last", func(c hooks.ToolContext) hooks.Result { cancel(); return c.Allow() }, hooks.ToolNamed("read_file")),
	}, wants("bash", ls, "read_file", file))
	assert.Equal(t, agent.ReasonDenied, w.result(0).Reason)
	assert.Equal(t, agent.ReasonCancelled, w.result(1).Reason)
}

// Guards see results while a run is being cancelled, as far as they can decide at once. A guard that cannot decide
// keeps the result back, unless it is open.
func TestGuardsSeeResultsOfCancelledRuns(t *testing.T) {
	for name, tc := range map[string]struct {
		guard func(ctx context.Context, c hooks.ToolResultContext) hooks.Result
		with  func(hooks.Hook) hooks.Hook
		want  string
	}{
		"quick":     {func(_ context.Context, c hooks.ToolResultContext) hooks.Result { return c.Replace("redacted") }, nil, "redacted"},
		"careful":   {func(ctx context.Context, c hooks.ToolResultContext) hooks.Result { return c.Fail(ctx.Err()) }, nil, `tool "bash": result withheld by guard: the run was cancelled before the hook could decide`},
		"open":      {func(ctx context.Context, c hooks.ToolResultContext) hooks.Result { return c.Fail(ctx.Err()) }, func(h hooks.Hook) hooks.Hook { return h.WithFailure(hooks.Open) }, "ran ls"},
		"aborting":  {func(ctx context.Context, c hooks.ToolResultContext) hooks.Result { return c.Fail(ctx.Err()) }, func(h hooks.Hook) hooks.Hook { return h.WithFailure(hooks.Abort) }, `tool "bash": result withheld by guard: the run was cancelled before the hook could decide`},
		"limited":   {func(ctx context.Context, c hooks.ToolResultContext) hooks.Result { <-ctx.Done(); return c.Allow() }, func(h hooks.Hook) hooks.Hook { return h.WithTimeout(time.Hour) }, `tool "bash": result withheld by guard: the run was cancelled before the hook could decide`},
		"late pass": {func(ctx context.Context, c hooks.ToolResultContext) hooks.Result { <-ctx.Done(); return c.Pass() }, func(h hooks.Hook) hooks.Hook { return h.WithTimeout(time.Hour) }, `tool "bash": result withheld by guard: the run was cancelled before the hook could decide`},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			told := ""
			guard := hooks.On(hooks.AtPostToolUse, "guard", func(ctx context.Context, c hooks.ToolResultContext) hooks.Result {
				cancel()
				return tc.guard(ctx, c)
			})
			if tc.with != nil {
				guard = tc.with(guard)
			}
			w := workIn(t, ctx, []hooks.Hook{guard,
				hooks.Observe(hooks.AtPostToolUse, "told", func(_ context.Context, c hooks.ToolResultContext) error { told = c.Text(); return ctx.Err() }),
			}, wants("bash", ls))
			assert.Equal(t, agent.StatusCancelled, w.Status())
			assert.Equal(t, tc.want, w.result(0).Text())
			assert.Equal(t, tc.want, told, "observers are told all the same")
		})
	}
}

// IP-115: a hook without a time limit has DefaultTimeout, counted from its
// first use of the context.
func TestDefaultTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w := workWith(t, []hooks.Hook{
			hooks.On(hooks.AtPreToolUse, "slow", func(ctx context.Context, c hooks.ToolContext) hooks.Result {
				deadline, ok := ctx.Deadline()
				assert.True(t, ok)
				assert.Equal(t, hooks.DefaultTimeout, time.Until(deadline))
				<-ctx.Done()
				assert.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
				assert.ErrorIs(t, context.Cause(ctx), hooks.ErrTimeout)
				return c.Allow() // too late
			}),
		}, wants("bash", ls))
		require.NoError(t, w.err)
		assert.Equal(t, hooks.DefaultTimeout, time.Since(began))
		assert.Equal(t, agent.ReasonHookFailed, w.result(0).Reason)
		assert.Equal(t, `tool "bash": not executed: slow: the hook could not decide: the hook did not answer in time: 1m0s`, w.result(0).Text())
		timeouts := w.events(hooks.HookTimeout)
		require.Len(t, timeouts, 1)
		assert.Equal(t, hooks.DefaultTimeout, timeouts[0].Duration)
		assert.Equal(t, "closed", timeouts[0].Policy)
	})
}

type valueKey struct{}

// A hook's context has the run context's values, ends with it, and works as other contexts' parent: without a
// goroutine, and cancelled when the hook has returned. It makes no difference whether the run is observed.
func TestContextOfAHook(t *testing.T) {
	for name, recorder := range map[string]*agenttest.Recorder{"observed": agenttest.Record(), "unobserved": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var kept []context.Context
				look := func(ctx context.Context) {
					assert.NoError(t, ctx.Err())
					assert.Equal(t, "v", ctx.Value(valueKey{}))
					before := runtime.NumGoroutine()
					child, cancel := context.WithCancel(ctx)
					defer cancel()
					assert.Equal(t, before, runtime.NumGoroutine(), "no goroutine passes the end on")
					assert.NoError(t, child.Err())
					assert.Equal(t, "v", child.Value(valueKey{}))
					other, stop := context.WithTimeout(ctx, 2*hooks.DefaultTimeout)
					defer stop()
					deadline, _ := other.Deadline()
					assert.Equal(t, hooks.DefaultTimeout, time.Until(deadline), "the tighter limit holds")
					kept = append(kept, ctx, child)
				}
				blind := before("blind", allow) // it never looks
				var shop workshop
				a := hookedAgent(t, agenttest.Script(wants("bash", ls), agenttest.Say("done")), recorder, []hooks.Hook{
					blind.WithPriority(9),
					hooks.On(hooks.AtPreToolUse, "a", func(ctx context.Context, c hooks.ToolContext) hooks.Result { look(ctx); return c.Allow() }),
					hooks.On(hooks.AtPreToolUse, "b", func(ctx context.Context, c hooks.ToolContext) hooks.Result { look(ctx); return c.Allow() }),
					hooks.Observe(hooks.AtPreToolUse, "o", func(ctx context.Context, _ hooks.ToolContext) error { look(ctx); return nil }),
					hooks.On(hooks.AtPostToolUse, "c", func(ctx context.Context, c hooks.ToolResultContext) hooks.Result { look(ctx); return c.Allow() }),
					hooks.On(hooks.AtPostToolUse, "d", func(ctx context.Context, c hooks.ToolResultContext) hooks.Result { look(ctx); return c.Allow() }),
				}, shop.capability())
				final, err := a.Run(context.WithValue(t.Context(), valueKey{}, "v"), agent.NewState(), agent.UserText("go")).Get()
				require.NoError(t, err)
				assert.Equal(t, "ran ls", work{ending{State: final}, nil}.result(0).Text())
				assert.Len(t, kept, 10)
				for _, ctx := range kept {
					assert.ErrorIs(t, ctx.Err(), context.Canceled, "a hook's context ends with it")
				}
			})
		})
	}
}

// The answer of a hook that used its context and answers too late does not count, in
// observed and unobserved runs.
func TestLateAnswersOfUnobservedRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shop workshop
		slow := hooks.On(hooks.AtPreToolUse, "slow", func(ctx context.Context, c hooks.ToolContext) hooks.Result { <-ctx.Done(); return c.Allow() })
		a := hookedAgent(t, agenttest.Script(wants("bash", ls), agenttest.Say("done")), nil, []hooks.Hook{slow}, shop.capability())
		final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
		require.NoError(t, err)
		assert.Equal(t, agent.ReasonHookFailed, work{ending{State: final}, nil}.result(0).Reason)
		assert.Empty(t, shop.ran)
	})
}

// A goroutine that a hook left behind, and that only then looks at the context,
// finds one that works, and that ends by itself.
func TestContextThatIsKeptTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := make(chan context.Context, 1)
		w := workWith(t, []hooks.Hook{
			hooks.On(hooks.AtPreToolUse, "careless", func(ctx context.Context, c hooks.ToolContext) hooks.Result { kept <- ctx; return c.Allow() }),
		}, wants("bash", ls))
		require.NoError(t, w.err)
		began := time.Now()
		<-(<-kept).Done()
		assert.LessOrEqual(t, time.Since(began), hooks.DefaultTimeout)
	})
}

// Hooks of parallel calls have contexts of their own: that one has returned cancels
// no other's, although none had looked at its context when all were called.
func TestContextsOfParallelCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 6
		var called sync.WaitGroup
		called.Add(calls)
		w := workWith(t, []hooks.Hook{
			hooks.On(hooks.AtPostToolUse, "patient", func(ctx context.Context, c hooks.ToolResultContext) hooks.Result {
				called.Done()
				called.Wait()
				select {
				case <-ctx.Done():
					return c.Fail(ctx.Err())
				case <-time.After(time.Duration(c.Index()) * time.Second):
					return c.Allow()
				}
			}),
		}, wants("bash", ls, "bash", ls, "bash", ls, "bash", ls, "bash", ls, "bash", ls), parallel(calls))
		require.NoError(t, w.err)
		for _, r := range w.results() {
			assert.Equal(t, "ran ls", r.Text())
		}
	})
}

// A hook's context is that of its step: what middleware puts into it for one step is
// not seen in another.
func TestContextOfAStep(t *testing.T) {
	numbered := capability.UseStepProcessor("numbers", agent.ProcessorFunc(
		func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
			return next(context.WithValue(ctx, valueKey{}, s.RunStepCount()), s)
		}))
	var seen []any
	see := func(ctx context.Context) { seen = append(seen, ctx.Value(valueKey{})) }
	var shop workshop
	turn := wants("bash", ls, "bash", ls)
	a := hookedAgent(t, agenttest.Script(turn, turn, agenttest.Say("done")), nil, []hooks.Hook{
		hooks.On(hooks.AtPreToolUse, "b", func(ctx context.Context, c hooks.ToolContext) hooks.Result { see(ctx); return c.Allow() }),
		hooks.On(hooks.AtPostToolUse, "a", func(ctx context.Context, c hooks.ToolResultContext) hooks.Result { see(ctx); return c.Allow() }),
	}, shop.capability(), numbered)
	_, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	assert.Equal(t, []any{0, 0, 0, 0, 1, 1, 1, 1}, seen)
}

// The time limit of an outer hook does not count as a failure of an inner hook: a run
// that a hook starts ends with the hook.
func TestLimitOfAnOuterHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inner work
		waits := func(ctx context.Context, c hooks.ToolContext) hooks.Result { <-ctx.Done(); return c.Fail(ctx.Err()) }
		w := workWith(t, []hooks.Hook{
			hooks.On(hooks.AtPreToolUse, "starts-a-run", func(ctx context.Context, c hooks.ToolContext) hooks.Result {
				inner = workIn(t, ctx, []hooks.Hook{
					hooks.On(hooks.AtPreToolUse, "default", waits, hooks.ToolNamed("read_file")),
					hooks.On(hooks.AtPreToolUse, "limited", waits).WithTimeout(time.Hour),
				}, wants("bash", ls))
				return c.Fail(inner.err)
			}).WithTimeout(time.Second),
		}, wants("bash", ls))
		synctest.Wait()
		assert.Equal(t, agent.ReasonHookFailed, w.result(0).Reason)
		assert.Len(t, w.events(hooks.HookTimeout), 1)
		assert.Equal(t, agent.StatusCancelled, inner.Status())
		assert.Empty(t, inner.events(hooks.HookTimeout))
		skipped := inner.events(hooks.HookSkipped)
		require.Len(t, skipped, 1)
		assert.NotErrorIs(t, skipped[0].Err, hooks.ErrTimeout, "it was not its own limit")
	})
}

// A hook that ends its goroutine, as testing's FailNow does, has failed at once, if
// it has a time limit of its own.
func TestHookThatEndsItsGoroutine(t *testing.T) {
	w := workWith(t, []hooks.Hook{
		before("gone", func(hooks.ToolContext) hooks.Result { runtime.Goexit(); return hooks.Result{} }).WithTimeout(time.Hour),
	}, wants("bash", ls))
	assert.Equal(t, agent.ReasonHookFailed, w.result(0).Reason)
	assert.Contains(t, w.result(0).Text(), "the hook ended its goroutine")
}

// An Err with a nil error is a failure, although Get returns it as a success.
func TestErrWithoutAnError(t *testing.T) {
	w := workWith(t, []hooks.Hook{before("guard", func(hooks.ToolContext) hooks.Result { return mo.Err[*hooks.Outcome](nil) })}, wants("bash", ls))
	assert.Empty(t, w.ran)
	assert.Contains(t, w.result(0).Text(), "the hook failed with a nil error")
}

// IP-113, IP-114, IP-115: a hook whose answer makes no sense is asked again as one
// that failed is; an invalid rewrite is such an answer.
func TestRetryAfterAnInvalidRewrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, tries := time.Now(), 0
		clumsy := before("clumsy", func(c hooks.ToolContext) hooks.Result {
			if tries++; tries < 3 {
				return c.Rewrite(map[string]any{"command": tries}, note.Set("wrong"))
			}
			return c.Rewrite(map[string]any{"command": "pwd"}, note.Set("right"))
		}).WithFailure(hooks.Retry(2, time.Second, hooks.Closed))
		w := workWith(t, []hooks.Hook{clumsy}, wants("bash", ls))
		require.NoError(t, w.err)
		assert.Equal(t, []string{`bash {"command":"pwd"}`}, w.ran)
		assert.Equal(t, 2*time.Second, time.Since(began))
		assert.Equal(t, "right", note.Or(w.State, ""))
		failed := w.events(hooks.HookFailed)
		require.Len(t, failed, 2)
		assert.Equal(t, []any{"retry", 1, "retry", 2}, []any{failed[0].Policy, failed[0].Attempt, failed[1].Policy, failed[1].Attempt})
		assert.Equal(t, 3, w.events(hooks.HookComplete)[0].Attempt)

		tries = -9
		w = workWith(t, []hooks.Hook{clumsy}, wants("bash", ls))
		assert.Equal(t, agent.ReasonHookFailed, w.result(0).Reason)
		assert.Equal(t, -6, tries)
		_, there := note.From(w.State)
		assert.False(t, there, "a hook that could not decide adds nothing")
	})
}

// a run whose guards all time out under load runs nothing.
func TestGuardsUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := hooks.On(hooks.AtPreToolUse, "guard", func(ctx context.Context, c hooks.ToolContext) hooks.Result {
			<-ctx.Done()
			return c.Allow()
		}).WithTimeout(time.Second)
		var shop workshop
		recorder := agenttest.Record()
		a := hookedAgent(t, agenttest.Script(wants("bash", ls, "write_file", file), agenttest.Say("done")), recorder,
			[]hooks.Hook{stuck}, shop.capability())
		const runs = 50
		var all sync.WaitGroup
		for range runs {
			all.Go(func() {
				final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
				assert.NoError(t, err)
				assert.Equal(t, agent.StatusDone, final.Status())
			})
		}
		all.Wait()
		assert.Empty(t, shop.ran)
		assert.Len(t, agenttest.Of[hooks.Event](recorder), runs*4)
	})
}
