package hooks_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/hooks"
)

// The limits of an agent's detached hooks: so many run at once, and so many more wait.
const (
	detachedAtOnce  = 8
	detachedWaiting = 1024
)

// later returns a detached hook at the run's end.
func later(name string, f func(ctx context.Context, c hooks.EndContext) error) hooks.Hook {
	return hooks.Observe(hooks.AtExecutionEnd, name, f).Detach()
}

// detachedAgent runs with detached hooks; each run says "hi".
func detachedAgent(t testing.TB, recorder *agenttest.Recorder, list ...hooks.Hook) (*agent.Agent, func() agent.State) {
	t.Helper()
	a := hookedAgent(t, agenttest.Script().Then(agenttest.Say("hi")), recorder, list)
	return a, func() agent.State {
		final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("hello")).Get()
		require.NoError(t, err)
		return final
	}
}

// SW-02, SW-04, SW-11, SW-17: a run does not wait for a detached hook; the hook gets
// the run; Drain waits for it.
func TestRunDoesNotWaitForDetachedHooks(t *testing.T) {
	for name, at := range map[string]func(f func(c hooks.Context) error) hooks.Hook{
		"before the run": func(f func(c hooks.Context) error) hooks.Hook {
			return hooks.Observe(hooks.AtExecutionStart, "h", func(_ context.Context, c hooks.ExecutionContext) error { return f(c) })
		},
		"after the run": func(f func(c hooks.Context) error) hooks.Hook {
			return hooks.Observe(hooks.AtExecutionEnd, "h", func(_ context.Context, c hooks.EndContext) error {
				assert.Equal(t, "hi", c.Answer())
				return f(c)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{})
			var seen agent.Run
			a, run := detachedAgent(t, nil, at(func(c hooks.Context) error {
				<-release
				seen = c.Run()
				return nil
			}).Detach())
			final := run()
			assert.Equal(t, agent.StatusDone, final.Status())
			assert.Empty(t, seen.ID, "the hook has not gone on yet")
			close(release)
			require.NoError(t, a.Drain(t.Context()))
			assert.Equal(t, final.Run(), seen)
		})
	}
}

// SW-25: in any order of the list, controls are asked first, then observers are called,
// then detached hooks are started.
func TestDetachedHooksAreStartedLast(t *testing.T) {
	recorder := agenttest.Record()
	detached := func(name string) hooks.Hook {
		return hooks.Observe(hooks.AtStepStart, name, func(_ context.Context, c hooks.StepContext) error {
			assert.Equal(t, hooks.StopRun, c.Frozen().Decision(), "it is told what was decided")
			return nil
		}).Detach()
	}
	a, run := detachedAgent(t, recorder,
		detached("d1"),
		hooks.Observe(hooks.AtStepStart, "o1", func(context.Context, hooks.StepContext) error { return nil }),
		beforeStep("c1", func(c hooks.StepContext) hooks.Result { return c.Allow() }),
		detached("d2"),
		beforeStep("c2", func(c hooks.StepContext) hooks.Result { return c.Stop("x") }),
	)
	run()
	require.NoError(t, a.Drain(t.Context()))
	began := map[string]int{}
	for i, e := range recorder.Events() {
		if e, ok := e.(hooks.Event); ok && e.Kind == hooks.HookStart {
			began[e.Hook] = i
			assert.Equal(t, e.Hook[0] == 'd', e.Detached)
		}
	}
	require.Len(t, began, 5)
	assert.Less(t, began["c1"], began["c2"])
	assert.Less(t, began["c2"], began["o1"])
	assert.Less(t, began["o1"], min(began["d1"], began["d2"]))
}

// SW-10: an action that was denied does not start detached hooks.
func TestNothingIsStartedAfterADenial(t *testing.T) {
	a, run := detachedAgent(t, nil,
		onInput("guard", func(c hooks.InputContext) hooks.Result { return c.Deny("no") }),
		hooks.Observe(hooks.AtExecutionStart, "d", func(context.Context, hooks.ExecutionContext) error { assert.Fail(t, "started"); return nil }).Detach(),
	)
	assert.Equal(t, agent.StatusDenied, run().Status())
	require.NoError(t, a.Drain(t.Context()))
}

// SW-12: the error of a detached hook is reported only to the observer.
func TestErrorsOfDetachedHooksAreOnlyTold(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error": func() error { return errBoom }, "panic": func() error { panic(errBoom) },
	} {
		recorder := agenttest.Record()
		a, run := detachedAgent(t, recorder,
			later("broken", func(context.Context, hooks.EndContext) error { return fail() }))
		assert.Equal(t, agent.StatusDone, run().Status(), name)
		require.NoError(t, a.Drain(t.Context()))
		failures := lo.Filter(agenttest.Of[hooks.Event](recorder), func(e hooks.Event, _ int) bool { return e.Kind == hooks.HookFailed })
		require.Len(t, failures, 1, name)
		assert.True(t, failures[0].Detached)
		assert.ErrorContains(t, failures[0].Err, "boom")
	}
}

// A detached hook's context has the run context's values, outlives the run and its cancelling, and has its own
// deadline.
func TestDetachedHooksOutliveTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), ctxKey{}, "kept"), time.Second)
		var seen error
		a := hookedAgent(t, agenttest.Script(agenttest.Say("hi")), nil, []hooks.Hook{
			later("slow", func(ctx context.Context, _ hooks.EndContext) error {
				time.Sleep(10 * time.Second)
				seen = ctx.Err()
				assert.Equal(t, "kept", ctx.Value(ctxKey{}))
				deadline, ok := ctx.Deadline()
				assert.True(t, ok)
				assert.Equal(t, hooks.DefaultTimeout-10*time.Second, time.Until(deadline))
				return nil
			}),
		})
		require.NoError(t, a.Run(ctx, agent.NewState(agent.UserText("x"))).Error())
		cancel()
		require.NoError(t, a.Drain(t.Context()))
		assert.NoError(t, seen)
	})
}

// every hook has a time limit, detached ones too: also those that never look at
// their context.
func TestDetachedHooksHaveATimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{})
		for limit, hook := range map[time.Duration]hooks.Hook{
			hooks.DefaultTimeout: later("deaf", func(context.Context, hooks.EndContext) error { <-wake; return nil }),
			5 * time.Second:      later("short", func(context.Context, hooks.EndContext) error { <-wake; return nil }).WithTimeout(5 * time.Second),
			7 * time.Second: later("polite", func(ctx context.Context, _ hooks.EndContext) error {
				<-ctx.Done()
				return ctx.Err()
			}).WithTimeout(7 * time.Second),
		} {
			recorder, began := agenttest.Record(), time.Now()
			a, run := detachedAgent(t, recorder, hook)
			run()
			require.NoError(t, a.Drain(t.Context()))
			assert.Equal(t, limit, time.Since(began))
			late := lo.Filter(agenttest.Of[hooks.Event](recorder), func(e hooks.Event, _ int) bool { return e.Kind == hooks.HookTimeout })
			require.Len(t, late, 1)
			require.ErrorIs(t, late[0].Err, hooks.ErrTimeout)
			assert.Equal(t, hook.Name(), late[0].Hook)
		}
		close(wake)
		synctest.Wait()
	})
}

// A detached hook receives the state at the time of its start.
func TestDetachedHooksSeeTheirMoment(t *testing.T) {
	release := make(chan struct{})
	var mu sync.Mutex
	seen := map[int]string{}
	a := hookedAgent(t, agenttest.Script(agenttest.Call("echo", `{"text":"x"}`), agenttest.Say("done")), nil, []hooks.Hook{
		hooks.Observe(hooks.AtStepEnd, "keeps", func(_ context.Context, c hooks.StepEndContext) error {
			<-release
			mu.Lock()
			defer mu.Unlock()
			seen[c.StepIndex()] = fmt.Sprintf("%d messages, %d calls, %s", c.State().MessageCount(), c.RunToolCalls(), c.Kind())
			return nil
		}).Detach(),
	})
	require.NoError(t, a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).Error())
	close(release)
	require.NoError(t, a.Drain(t.Context()))
	assert.Equal(t, map[int]string{0: "3 messages, 1 calls, tool_execution", 1: "4 messages, 1 calls, final_response"}, seen)
}

func TestDetachedHooksAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most, ran atomic.Int32
		release := make(chan struct{})
		recorder := agenttest.Record()
		set := hooks.NewSet(hooks.Observe(hooks.AtExecutionEnd, "busy", func(context.Context, hooks.EndContext) error {
			most.Store(max(most.Load(), now.Add(1)))
			<-release
			now.Add(-1)
			ran.Add(1)
			return nil
		}).Detach())
		compiled := lo.Must(set.Compile())
		a := lo.Must(agent.New(agent.Config{
			Driver: agenttest.Script().Then(agenttest.Say("hi")), AroundRun: []agent.Processor{compiled.AroundRun()},
			Background: []agent.Background{compiled.Background()}, Observer: recorder,
		}).Get())
		const tooMany = 5
		for range detachedAtOnce + detachedWaiting + tooMany {
			require.NoError(t, a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).Error())
			synctest.Wait()
		}
		assert.EqualValues(t, detachedAtOnce, most.Load())
		assert.EqualValues(t, tooMany, compiled.DroppedCount())
		skipped := lo.Filter(agenttest.Of[hooks.Event](recorder), func(e hooks.Event, _ int) bool { return e.Kind == hooks.HookSkipped })
		require.Len(t, skipped, tooMany)
		assert.Equal(t, "dropped: 1024 detached hooks are already waiting", skipped[0].Reason)
		assert.Equal(t, "busy", skipped[0].Hook)
		assert.Equal(t, hooks.ExecutionEnd, skipped[0].Point)
		close(release)
		require.NoError(t, a.Drain(t.Context()))
		assert.EqualValues(t, detachedAtOnce+detachedWaiting, ran.Load())
		assert.EqualValues(t, detachedAtOnce, most.Load())
	})
}

func TestDrainGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		a, run := detachedAgent(t, nil, later("slow", func(context.Context, hooks.EndContext) error { <-release; return nil }))
		run()
		run()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := a.Drain(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "draining detached hooks: 2 not done")
		close(release)
		require.NoError(t, a.Drain(t.Context()))
		require.NoError(t, a.Drain(ctx), "nothing is left, so there is nothing to wait for")
	})
}

// SW-16, SW-18: Cancel cancels what runs and waits until it has really ended, drops
// what waits, and forgets both.
func TestCancelEndsDetachedHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Int32
		recorder := agenttest.Record()
		a, run := detachedAgent(t, recorder, later("flushes", func(ctx context.Context, _ hooks.EndContext) error {
			<-ctx.Done()
			time.Sleep(time.Second) // it has something to write
			ended.Add(1)
			return ctx.Err()
		}))
		for range detachedAtOnce + 3 {
			run()
		}
		synctest.Wait()
		began := time.Now()
		a.Cancel()
		assert.Equal(t, time.Second, time.Since(began))
		assert.EqualValues(t, detachedAtOnce, ended.Load())
		require.NoError(t, a.Drain(t.Context()), "nothing is left")

		var reasons []string
		for _, e := range agenttest.Of[hooks.Event](recorder) {
			assert.NotContains(t, []hooks.EventKind{hooks.HookFailed, hooks.HookTimeout}, e.Kind, "to be cancelled is no failure")
			if e.Kind == hooks.HookSkipped {
				reasons = append(reasons, e.Reason)
			}
		}
		assert.Equal(t, map[string]int{
			"dropped: cancelled before it began": 3, "cancelled before it answered": detachedAtOnce,
		}, lo.CountValues(reasons))
		a.Cancel() // there is nothing to cancel
	})
}

// Cancel does not wait for ever for a hook that does not listen.
func TestCancelWaitsNoLongerThanTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{})
		a, run := detachedAgent(t, nil, later("deaf", func(context.Context, hooks.EndContext) error { <-wake; return nil }).WithTimeout(4*time.Second))
		run()
		synctest.Wait()
		began := time.Now()
		a.Cancel()
		assert.Equal(t, 4*time.Second, time.Since(began))
		close(wake)
		synctest.Wait()
	})
}

// What is started after a Cancel is not cancelled, and Cancel does not wait for it:
// the agent can go on serving runs.
func TestAgentGoesOnAfterCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cancelled, finished := 0, 0
		a, run := detachedAgent(t, nil, later("h", func(ctx context.Context, _ hooks.EndContext) error {
			select {
			case <-ctx.Done():
				cancelled++
			case <-time.After(time.Second):
				finished++
			}
			return nil
		}))
		run()
		synctest.Wait()
		a.Cancel()
		run()
		require.NoError(t, a.Drain(t.Context()))
		assert.Equal(t, 1, cancelled)
		assert.Equal(t, 1, finished)
	})
}

// SW-19: without hooks there is nothing to wait for.
func TestAgentWithoutDetachedHooks(t *testing.T) {
	a, run := detachedAgent(t, nil)
	assert.Equal(t, "hi", run().Answer())
	require.NoError(t, a.Drain(t.Context()))
	a.Cancel()
}

// Many concurrent runs can start, drain and cancel detached hooks.
func TestDetachedHooksOfManyRuns(t *testing.T) {
	var started, ended atomic.Int64
	a, run := detachedAgent(t, agenttest.Record(), later("h", func(ctx context.Context, c hooks.EndContext) error {
		started.Add(1)
		defer ended.Add(1)
		if err := c.Err(); err != nil {
			return err
		}
		return ctx.Err()
	}), hooks.ObserveAll("all", func(context.Context, hooks.Context) error { return nil }).Detach())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				run()
			}
		})
		wg.Go(func() { assert.NoError(t, a.Drain(t.Context())) })
		wg.Go(a.Cancel)
	}
	wg.Wait()
	require.NoError(t, a.Drain(t.Context()))
	assert.Equal(t, started.Load(), ended.Load())
}

// The error that a detached hook is told of may be read while Run makes its own of it.
func TestDetachedHooksReadTheError(t *testing.T) {
	a := hookedAgent(t, agenttest.Script().Then(agenttest.Fail(errors.New("down"))), nil, []hooks.Hook{
		later("reads", func(_ context.Context, c hooks.EndContext) error {
			assert.ErrorContains(t, c.Err(), "down")
			return nil
		}),
		hooks.Observe(hooks.AtAgentFailed, "reads too", func(_ context.Context, c hooks.FailureContext) error {
			assert.ErrorContains(t, c.Err(), "down")
			return nil
		}).Detach(),
		atFailure("adds", func(c hooks.FailureContext) hooks.Result { return c.Allow(agent.AddContext("x")) }),
	})
	for range 20 {
		require.Error(t, a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).Error())
	}
	require.NoError(t, a.Drain(t.Context()))
}

// A detached hook that ends its goroutine, as testing's FailNow does, has failed at once:
// the run does not wait until its time is up.
func TestDetachedHookThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder := agenttest.Record()
		a, run := detachedAgent(t, recorder, later("gone", func(context.Context, hooks.EndContext) error { runtime.Goexit(); return nil }))
		began := time.Now()
		run()
		require.NoError(t, a.Drain(t.Context()))
		assert.Zero(t, time.Since(began))
		failed := lo.Filter(agenttest.Of[hooks.Event](recorder), func(e hooks.Event, _ int) bool { return e.Kind == hooks.HookFailed })
		require.Len(t, failed, 1)
		assert.ErrorContains(t, failed[0].Err, "the hook ended its goroutine")
	})
}
