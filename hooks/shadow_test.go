package hooks_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/lo"
	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// inShadow runs one call of bash under the hooks and gives the run and the hook events.
func inShadow(ctx context.Context, t *testing.T, list ...hooks.Hook) (agent.State, []hooks.Event, *agent.Agent) {
	t.Helper()
	record := agenttest.Record()
	bash := toolexec.CallFunc(agent.ToolSpec{Name: "bash"}, func(_ context.Context, _ toolexec.Call, in struct {
		Command string `json:"command"`
	}) (string, error) {
		return "ran " + in.Command, nil
	})
	driver := agenttest.Script(agenttest.Say("").Call("bash", `{"command":"rm x"}`), agenttest.Say("done"))
	a, err := builder.New().WithDriver(driver).With(
		capability.UseTools(bash),
		capability.UseHooks(list...),
		capability.UseObserver(record),
	).Build().Get()
	require.NoError(t, err)
	final, err := a.Run(ctx, agent.NewState(agent.UserText("go"))).Get()
	require.NoError(t, err)
	told := lo.Filter(agenttest.Of[hooks.Event](record), func(e hooks.Event, _ int) bool { return e.Kind != hooks.HookStart })
	return final, told, a
}

// answerOf returns what the model was told of its first call.
func answerOf(s agent.State) string {
	for _, step := range s.Steps() {
		for _, r := range step.Results() {
			return r.Text()
		}
	}
	return ""
}

// A control in shadow is asked, its decision is reported, and has no effect.
func TestAHookInShadowChangesNothing(t *testing.T) {
	for name, say := range map[string]func(c hooks.ToolContext) hooks.Result{
		"deny":    func(c hooks.ToolContext) hooks.Result { return c.Deny("no") },
		"stop":    func(c hooks.ToolContext) hooks.Result { return c.Stop("no") },
		"ask":     func(c hooks.ToolContext) hooks.Result { return c.Ask("may it?") },
		"mock":    func(c hooks.ToolContext) hooks.Result { return c.Mock("mocked") },
		"rewrite": func(c hooks.ToolContext) hooks.Result { return c.Rewrite(map[string]any{"command": "ls"}) },
		"allow":   func(c hooks.ToolContext) hooks.Result { return c.Allow(agent.AddMessage(agent.UserText("psst"))) },
	} {
		t.Run(name, func(t *testing.T) {
			guard := hooks.On(hooks.AtPreToolUse, "guard", func(_ context.Context, c hooks.ToolContext) hooks.Result { return say(c) })
			bare, _, _ := inShadow(t.Context(), t)
			final, told, _ := inShadow(t.Context(), t, guard.InShadow())
			assert.Equal(t, agenttest.Transcript(bare), agenttest.Transcript(final))
			require.Len(t, told, 1)
			assert.True(t, told[0].Shadow)
			assert.Equal(t, hooks.HookComplete, told[0].Kind)
			assert.Equal(t, name, string(told[0].Decision))

			obeyed, _, _ := inShadow(t.Context(), t, guard)
			assert.NotEqual(t, agenttest.Transcript(bare), agenttest.Transcript(obeyed), "the same hook in force")
		})
	}
}

// A control in shadow that cannot decide, or aborts, has no effect either; its retries are made.
func TestAHookInShadowThatFails(t *testing.T) {
	for name, policy := range map[string]hooks.FailurePolicy{"closed": hooks.Closed, "abort": hooks.Abort, "retry": hooks.Retry(2, 0, hooks.Closed)} {
		t.Run(name, func(t *testing.T) {
			guard := hooks.On(hooks.AtPreToolUse, "guard", func(_ context.Context, c hooks.ToolContext) hooks.Result {
				return c.Fail(errors.New("boom"))
			}).WithFailure(policy).InShadow()
			final, told, _ := inShadow(t.Context(), t, guard)
			assert.Equal(t, agent.StatusDone, final.Status())
			assert.Equal(t, "ran rm x", answerOf(final))
			last := lo.LastOrEmpty(told)
			assert.Equal(t, hooks.HookFailed, last.Kind)
			assert.Equal(t, "open", last.Policy)
			assert.Len(t, told, lo.Ternary(name == "retry", 3, 1))
		})
	}
}

func TestShadowsOfResults(t *testing.T) {
	withhold := hooks.On(hooks.AtPostToolUse, "guard", func(_ context.Context, c hooks.ToolResultContext) hooks.Result {
		return c.Withhold("secret")
	})
	final, told, _ := inShadow(t.Context(), t, withhold.InShadow())
	assert.Equal(t, "ran rm x", answerOf(final))
	assert.Equal(t, hooks.Withhold, told[0].Decision)
	_, err := hooks.NewSet(hooks.Observe(hooks.AtPostToolUse, "o", func(context.Context, hooks.ToolResultContext) error { return nil }).InShadow()).Compile()
	assert.ErrorContains(t, err, "an observer cannot be in shadow")
}

// The event of a decision has its facts and its rule.
func TestFactsAndOrigins(t *testing.T) {
	origin := &hooks.Origin{Policy: "p", Rule: "r", Hash: "abc", File: "p.yaml", Line: 3}
	deny := hooks.On(hooks.AtPreToolUse, "p/r", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		return hooks.Because(c.Deny("no"), hooks.Fact{Name: "args.command", Value: "rm x"})
	}).From(origin)
	after := hooks.On(hooks.AtPostToolUse, "after", func(_ context.Context, c hooks.ToolResultContext) hooks.Result {
		return hooks.WithReason(hooks.Because(c.Replace("[gone]"), hooks.Fact{Name: "result.text", Value: "a secret"}), "a secret")
	})
	_, told, _ := inShadow(t.Context(), t, deny, after)
	assert.Same(t, origin, told[0].Origin)
	assert.Equal(t, []hooks.Fact{{Name: "args.command", Value: "rm x"}}, told[0].Outcome.Facts())
	assert.Equal(t, "p/r", told[0].Outcome.Hook())
	assert.Empty(t, told[1].Outcome.Facts(), "what was taken out of a result is no fact")
	assert.Empty(t, told[1].Reason, "nor a reason")
	assert.Nil(t, told[1].Origin)
	assert.Equal(t, hooks.Result{}, hooks.Because(hooks.Result{}, hooks.Fact{Name: "x"}))
}

// A func that a hook starts with Detach is drained with the detached hooks, has its own time limit, and its error is
// reported.
func TestDetach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var done atomic.Int32
		ctx, cancel := context.WithCancel(t.Context())
		_, told, a := inShadow(ctx, t, hooks.On(hooks.AtPreToolUse, "starter", func(ctx context.Context, c hooks.ToolContext) hooks.Result {
			assert.True(t, c.Detach(ctx, "later", time.Minute, func(ctx context.Context) error {
				time.Sleep(time.Second)
				done.Add(1)
				return ctx.Err()
			}))
			return c.Pass()
		}))
		assert.Zero(t, done.Load(), "the run does not wait for it")
		cancel()
		require.NoError(t, a.Drain(t.Context()))
		assert.EqualValues(t, 1, done.Load())
		assert.Len(t, told, 1)
	})
	synctest.Test(t, func(t *testing.T) {
		failed := make(chan hooks.Event, 2)
		driver := agenttest.Script(agenttest.Say("done"))
		a, err := builder.New().WithDriver(driver).With(
			capability.UseHooks(hooks.Observe(hooks.AtExecutionEnd, "end", func(ctx context.Context, c hooks.EndContext) error {
				c.Detach(ctx, "slow", time.Second, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
				c.Detach(ctx, "wild", time.Second, func(context.Context) error { panic("boom") })
				return nil
			})),
			capability.UseObserver(agent.ObserverFunc(func(_ context.Context, e agent.Event) {
				if h, ok := e.(hooks.Event); ok && h.Err != nil {
					failed <- h
				}
			})),
		).Build().Get()
		require.NoError(t, err)
		_, err = a.Run(t.Context(), agent.NewState(agent.UserText("go"))).Get()
		require.NoError(t, err)
		require.NoError(t, a.Drain(t.Context()))
		wild, slow := <-failed, <-failed
		assert.Equal(t, []string{"wild", "slow"}, []string{wild.Hook, slow.Hook})
		assert.ErrorContains(t, wild.Err, "boom")
		assert.Equal(t, hooks.HookTimeout, slow.Kind)
		assert.True(t, slow.Detached)
		assert.Equal(t, hooks.ExecutionEnd, slow.Point)
	})
}

// The executor may break on a shadow control's rewrite. This breaks nothing, because that call is not made.
func TestShadowOfACallThatBreaksTheExecutor(t *testing.T) {
	brittle := capability.Func(func(p capability.Plan) (capability.Plan, error) {
		return p.WrapExecutor(capability.Inside, "brittle", func(inner agent.Executor) agent.Executor { return brittleExecutor{inner} }), nil
	})
	pwd := rewriteTo(map[string]string{"command": "pwd"})
	w := workWith(t, []hooks.Hook{before("watched", pwd).InShadow()}, wants("bash", ls), brittle)
	require.NoError(t, w.err)
	assert.Equal(t, []string{"bash " + ls}, w.ran)
	require.Len(t, w.events(hooks.HookFailed), 1)

	w = workWith(t, []hooks.Hook{before("in force", pwd)}, wants("bash", ls), brittle)
	require.ErrorIs(t, w.err, errPaper)
	assert.Empty(t, w.ran)
}

// brittleExecutor breaks over pwd.
type brittleExecutor struct{ agent.Executor }

func (x brittleExecutor) Prepare(ctx context.Context, s agent.State, c *agent.ToolCall) mo.Result[*agent.Prepared] {
	if strings.Contains(c.Arguments, "pwd") {
		return mo.Err[*agent.Prepared](errPaper)
	}
	return x.Executor.Prepare(ctx, s, c)
}

// If the executor fails on a rewritten call, this does not count as a failure of the hook: the hook and the inner
// controls are not asked again, also in shadow.
func TestRetryIsForFailuresOfTheHook(t *testing.T) {
	for name, shadow := range map[string]bool{"in shadow": true, "enforced": false} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			rewrites := hooks.On(hooks.AtPreToolUse, "rewrites", func(_ context.Context, c hooks.ToolContext) hooks.Result {
				asked++
				return c.Rewrite(map[string]any{"n": 3})
			}).WithFailure(hooks.Retry(2, 0, hooks.Open))
			if shadow {
				rewrites = rewrites.InShadow()
			}
			aborts := hooks.On(hooks.AtPreToolUse, "aborts", func(_ context.Context, c hooks.ToolContext) hooks.Result {
				if c.Call().Arguments != `{"n":0}` {
					return c.Fail(errPaper)
				}
				return c.Pass()
			}).WithFailure(hooks.Abort)
			var x agent.Executor = echoing{}
			for _, h := range []hooks.Hook{aborts, rewrites} {
				compiled, err := hooks.NewSet(h).Compile("tool")
				require.NoError(t, err)
				x = compiled.WrapExecutor(x)
			}
			p, err := x.Prepare(t.Context(), runningState(t), &agent.ToolCall{ID: "1", Name: "tool", Arguments: `{"n":0}`}).Get()
			assert.Equal(t, 1, asked)
			if !shadow {
				require.ErrorIs(t, err, errPaper)
				return
			}
			require.NoError(t, err)
			assert.JSONEq(t, `{"n":0}`, p.Call.Arguments)
		})
	}
}
