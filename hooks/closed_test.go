package hooks_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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

var errBoom = errors.New("boom")

// failing returns a control at each point around runs, steps, model calls and ends that
// fails in the way f does. F is given what the hook was called with.
func failing(f func(ctx context.Context, c hooks.Context) hooks.Result) map[hooks.PointName]hooks.Hook {
	return map[hooks.PointName]hooks.Hook{
		hooks.InputSubmitted: hooks.On(hooks.AtInputSubmitted, "broken at InputSubmitted", func(ctx context.Context, c hooks.InputContext) hooks.Result { return f(ctx, c) }),
		hooks.ExecutionStart: hooks.On(hooks.AtExecutionStart, "broken at ExecutionStart", func(ctx context.Context, c hooks.ExecutionContext) hooks.Result { return f(ctx, c) }),
		hooks.StepStart:      hooks.On(hooks.AtStepStart, "broken at StepStart", func(ctx context.Context, c hooks.StepContext) hooks.Result { return f(ctx, c) }),
		hooks.PreInference:   hooks.On(hooks.AtPreInference, "broken at PreInference", func(ctx context.Context, c hooks.InferenceContext) hooks.Result { return f(ctx, c) }),
		hooks.PostInference:  hooks.On(hooks.AtPostInference, "broken at PostInference", func(ctx context.Context, c hooks.ReplyContext) hooks.Result { return f(ctx, c) }),
		hooks.PreToolUse:     hooks.On(hooks.AtPreToolUse, "broken at PreToolUse", func(ctx context.Context, c hooks.ToolContext) hooks.Result { return f(ctx, c) }),
		hooks.PostToolUse:    hooks.On(hooks.AtPostToolUse, "broken at PostToolUse", func(ctx context.Context, c hooks.ToolResultContext) hooks.Result { return f(ctx, c) }),
		hooks.StepEnd:        hooks.On(hooks.AtStepEnd, "broken at StepEnd", func(ctx context.Context, c hooks.StepEndContext) hooks.Result { return f(ctx, c) }),
		hooks.Stop:           hooks.On(hooks.AtStop, "broken at Stop", func(ctx context.Context, c hooks.StopContext) hooks.Result { return f(ctx, c) }),
	}
}

// waysToFail lists the ways in which a hook can fail.
var waysToFail = map[string]struct {
	f    func(ctx context.Context, c hooks.Context) hooks.Result
	kind hooks.EventKind
	text string
}{
	"error":  {func(_ context.Context, c hooks.Context) hooks.Result { return failOf(c, errBoom) }, hooks.HookFailed, "boom"},
	"no why": {func(_ context.Context, c hooks.Context) hooks.Result { return failOf(c, nil) }, hooks.HookFailed, "the hook failed with a nil error"},
	"panic":  {func(context.Context, hooks.Context) hooks.Result { panic(errBoom) }, hooks.HookFailed, "panic: boom"},
	"timeout": {func(ctx context.Context, c hooks.Context) hooks.Result { <-ctx.Done(); return failOf(c, ctx.Err()) },
		hooks.HookTimeout, "the hook did not answer in time"},
	"an answer of another point": {func(context.Context, hooks.Context) hooks.Result { return foreign }, hooks.HookFailed, "the answer was made for Stop"},
}

// foreign is an answer that was made at Stop, or at StepStart for the test at Stop.
var foreign = func() (answer hooks.Result) {
	a := lo.Must(agent.New(agent.Config{
		Driver: agenttest.Script(agenttest.Say("x")),
		Criterion: lo.Must(hooks.NewSet(onStop("once", func(c hooks.StopContext) hooks.Result { answer = c.Stop("kept"); return c.Pass() })).
			Compile()).WrapCriterion(agent.Base, 0),
	}).Get())
	a.Run(context.Background(), agent.NewState(agent.UserText("x")))
	return answer
}()

func failOf(c hooks.Context, err error) hooks.Result {
	return c.(interface{ Fail(err error) hooks.Result }).Fail(err)
}

// IP-91, IP-114, IP-115, X-10: the effect of a failed hook with the policy Closed, for
// every way to fail. Texts and events distinguish a failure from a denial.
func TestClosedFailures(t *testing.T) {
	want := map[hooks.PointName]struct {
		status agent.Status
		steps  int
		reason agent.StopReason
	}{
		hooks.InputSubmitted: {agent.StatusDenied, 0, agent.StopDenied},
		hooks.ExecutionStart: {agent.StatusDenied, 0, agent.StopDenied},
		hooks.StepStart:      {agent.StatusStopped, 0, agent.StopByHook},
		hooks.PreInference:   {agent.StatusStopped, 0, agent.StopByHook},
		hooks.PostInference:  {agent.StatusStopped, 1, agent.StopByHook},
		hooks.PreToolUse:     {agent.StatusDone, 2, agent.StopCompleted},
		hooks.PostToolUse:    {agent.StatusDone, 2, agent.StopCompleted},
		hooks.StepEnd:        {agent.StatusStopped, 1, agent.StopByHook},
		hooks.Stop:           {agent.StatusStopped, 2, agent.StopByHook},
	}
	for way, how := range waysToFail {
		for at, hook := range failing(how.f) {
			if way == "an answer of another point" && at == hooks.Stop {
				continue // it is of that very point
			}
			t.Run(way+" at "+string(at), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					began := time.Now()
					ends := 0
					end := play(t, agenttest.Script(agenttest.Call("echo", `{"text":"secret"}`), agenttest.Say("done")), []hooks.Hook{
						hook, atEnd("end", func(hooks.EndContext) error { ends++; return nil }),
					})
					require.NoError(t, end.err, "a failure of a hook is no failure of the run")
					assert.Equal(t, want[at].status, end.Status())
					assert.Equal(t, want[at].steps, end.RunStepCount())
					assert.Equal(t, want[at].reason, end.signal().Reason)
					assert.Equal(t, 1, ends)
					assert.Equal(t, lo.Ternary(how.kind == hooks.HookTimeout, hooks.DefaultTimeout, 0), time.Since(began))

					failures := lo.Filter(agenttest.Of[hooks.Event](end.recorder), func(e hooks.Event, _ int) bool { return e.Hook == "broken at "+string(at) && e.Kind != hooks.HookStart })
					require.Len(t, failures, 1)
					assert.Equal(t, how.kind, failures[0].Kind)
					assert.Equal(t, at, failures[0].Point)
					assert.Equal(t, "closed", failures[0].Policy)
					require.ErrorContains(t, failures[0].Err, how.text)

					if want[at].reason == agent.StopCompleted { // at a tool call: news for the model
						answer := end.Message(2)
						assert.Equal(t, agent.RoleTool, answer.Role())
						assert.True(t, answer.IsError())
						assert.Contains(t, answer.Text(), "broken at "+string(at)+": the hook could not decide: ")
						assert.NotContains(t, answer.Text(), "secret")
						return
					}
					assert.Equal(t, "broken at "+string(at), end.signal().Source, "the hook is named")
					assert.Contains(t, end.signal().Message, "could not decide: ")
					assert.Contains(t, end.signal().Message, how.text)
					assert.Equal(t, map[string]any{"hook_failed": true}, end.signal().Details)
				})
			})
		}
	}
}

// IP-113: an open hook that fails has no opinion; the others are asked.
func TestOpenFailures(t *testing.T) {
	for way, how := range waysToFail {
		synctest.Test(t, func(t *testing.T) {
			var list []hooks.Hook
			for at, hook := range failing(how.f) {
				if way == "an answer of another point" && at == hooks.Stop {
					continue
				}
				list = append(list, hook.WithFailure(hooks.Open))
			}
			asked := 0
			list = append(list, beforeStep("asked", func(c hooks.StepContext) hooks.Result { asked++; return c.Allow() }))
			end := play(t, agenttest.Script(agenttest.Call("echo", `{"text":"x"}`), agenttest.Say("done")), list)
			require.NoError(t, end.err, way)
			assert.Equal(t, agent.StatusDone, end.Status(), way)
			assert.Equal(t, "user: hello\nassistant calls echo {\"text\":\"x\"}\ntool echo (executed): x\nassistant: done\n", agenttest.Transcript(end.State), way)
			assert.Equal(t, 2, asked)
			for _, e := range agenttest.Of[hooks.Event](end.recorder) {
				if e.Kind == how.kind {
					assert.Equal(t, "open", e.Policy)
				}
			}
		})
	}
}

// SW-09, IP-85, IP-91: a hook that aborts fails the run with its error, at every
// point; the end is told once, and nothing escapes as a panic.
func TestAbortingFailures(t *testing.T) {
	for at, hook := range failing(func(context.Context, hooks.Context) hooks.Result { panic(errBoom) }) {
		t.Run(string(at), func(t *testing.T) {
			ends, failed := 0, 0
			end := play(t, agenttest.Script(agenttest.Call("echo", `{}`), agenttest.Say("done")), []hooks.Hook{
				hook.WithFailure(hooks.Abort),
				atFailure("failed", func(c hooks.FailureContext) hooks.Result { failed++; return c.Pass() }),
				atEnd("end", func(c hooks.EndContext) error { ends++; assert.Equal(t, agent.StatusFailed, c.Status()); return nil }),
			})
			require.Error(t, end.err)
			broken, ok := errors.AsType[*hooks.HookError](end.err)
			require.True(t, ok, end.err)
			assert.Equal(t, "broken at "+string(at), broken.Hook)
			assert.Equal(t, at, broken.Point)
			panicked, ok := errors.AsType[*hooks.PanicError](end.err)
			require.True(t, ok)
			assert.Equal(t, errBoom, panicked.Value)
			assert.Contains(t, string(panicked.Stack), "closed_test.go")
			assert.ErrorContains(t, end.err, fmt.Sprintf(`hook "broken at %s" at %s could not decide: panic: boom`, at, at))
			assert.Equal(t, agent.StatusFailed, end.Status())
			assert.Equal(t, agent.StopError, end.signal().Reason)
			assert.Equal(t, 1, failed)
			assert.Equal(t, 1, ends)
			assert.Equal(t, []string{fmt.Sprintf("hook.failed broken at %s@%s", at, at)}, end.told(hooks.HookFailed))
			completed := agenttest.Of[agent.RunCompleted](end.recorder)
			require.Len(t, completed, 1)
			assert.Equal(t, agent.StatusFailed, completed[0].State.Status())
			if slices.Contains([]hooks.PointName{hooks.InputSubmitted, hooks.ExecutionStart, hooks.StepStart, hooks.PreInference}, at) {
				assert.Empty(t, end.driver.Calls(), "the model is not asked")
			}
		})
	}
}

// IP-115: retries wait, and the first answer that makes sense counts.
func TestRetriedHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, tries := time.Now(), 0
		flaky := beforeStep("flaky", func(c hooks.StepContext) hooks.Result {
			if tries++; tries < 3 {
				return c.Fail(errBoom)
			}
			return c.Stop("third time")
		})
		end := play(t, agenttest.Script(), []hooks.Hook{flaky.WithFailure(hooks.Retry(2, time.Second, hooks.Closed))})
		assert.Equal(t, "third time", end.signal().Message)
		assert.Nil(t, end.signal().Details, "it did decide")
		assert.Equal(t, 2*time.Second, time.Since(began))

		tries = -9
		end = play(t, agenttest.Script(), []hooks.Hook{flaky.WithFailure(hooks.Retry(2, time.Second, hooks.Abort))})
		require.ErrorIs(t, end.err, errBoom)
		assert.Equal(t, -6, tries)
	})
}

// A hook that neither answers nor honors its context is abandoned at its time limit.
func TestTimeLimitHoldsAgainstDeafHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, wake := time.Now(), make(chan struct{})
		deaf := beforeStep("deaf", func(c hooks.StepContext) hooks.Result { <-wake; return c.Allow() }).WithTimeout(3 * time.Second)
		end := play(t, agenttest.Script(), []hooks.Hook{deaf})
		assert.Equal(t, agent.StatusStopped, end.Status())
		assert.Contains(t, end.signal().Message, "could not decide: the hook did not answer in time: 3s")
		assert.Equal(t, 3*time.Second, time.Since(began))
		close(wake)
		synctest.Wait()
	})
}

// An Allow after the run was cancelled does not count as permission.
func TestLateAllowIsNoPermission(t *testing.T) {
	for _, at := range slices.Sorted(maps.Keys(failing(nil))) {
		if at == hooks.Stop {
			continue // the work is done
		}
		t.Run(string(at), func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			hook := failing(func(context.Context, hooks.Context) hooks.Result { cancel(); return hooks.Result{} })[at]
			end := playIn(t, ctx, agenttest.Script(agenttest.Call("echo", `{}`), agenttest.Say("done")), []hooks.Hook{hook})
			require.ErrorIs(t, end.err, context.Canceled)
			assert.Equal(t, agent.StatusCancelled, end.Status())
			assert.LessOrEqual(t, len(end.driver.Calls()), 1)
			if at == hooks.PreToolUse {
				assert.Equal(t, agent.ReasonCancelled, end.LastStep().Result(0).Reason)
			}
		})
	}
}
