package hookstest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
	"github.com/grapnel-go/grapnel/toolexec"
)

const ls = `{"command":"ls"}`

// answering returns a control at PreToolUse.
func answering(f func(c hooks.ToolContext) hooks.Result) hooks.Hook {
	return hooks.On(hooks.AtPreToolUse, "guard", func(_ context.Context, c hooks.ToolContext) hooks.Result { return f(c) })
}

// Every answer that a hook may give before a call.
func TestDecisionsBeforeACall(t *testing.T) {
	note := agent.SessionKey[string]("note")
	for name, tc := range map[string]struct {
		f      func(c hooks.ToolContext) hooks.Result
		want   hooks.Decision
		reason string
		ran    bool
		text   string
		status agent.Status
	}{
		"nothing": {func(hooks.ToolContext) hooks.Result { return hooks.Result{} }, hooks.Pass, "", true, "ok", agent.StatusDone},
		"pass":    {func(c hooks.ToolContext) hooks.Result { return c.Pass() }, hooks.Pass, "", true, "ok", agent.StatusDone},
		"allow":   {func(c hooks.ToolContext) hooks.Result { return c.Allow() }, hooks.Allow, "", true, "ok", agent.StatusDone},
		"note":    {func(c hooks.ToolContext) hooks.Result { return c.Allow(note.Set("x")) }, hooks.Allow, "", true, "ok", agent.StatusDone},
		"deny":    {func(c hooks.ToolContext) hooks.Result { return c.Deny("no") }, hooks.Deny, "no", false, `tool "bash": denied by guard: no`, agent.StatusDone},
		"stop":    {func(c hooks.ToolContext) hooks.Result { return c.Stop("halt") }, hooks.StopRun, "halt", false, "not executed: run stopped by guard: halt", agent.StatusStopped},
		"ask":     {func(c hooks.ToolContext) hooks.Result { return c.Ask("sure?") }, hooks.Ask, "sure?", false, `tool "bash": denied by guard: needs approval (sure?) and there is no person to ask`, agent.StatusDone},
		"mock":    {func(c hooks.ToolContext) hooks.Result { return c.Mock("fake") }, hooks.Mock, "", false, "fake", agent.StatusDone},
		"rewrite": {func(c hooks.ToolContext) hooks.Result { return c.Rewrite(map[string]any{"command": "pwd"}) }, hooks.Rewrite, "", true, "ran with changed arguments: {\"command\":\"pwd\"}\nok", agent.StatusDone},
		"fail":    {func(c hooks.ToolContext) hooks.Result { return c.Fail(errBoom) }, hooks.Deny, "the hook could not decide: boom", false, `tool "bash": not executed: guard: the hook could not decide: boom`, agent.StatusDone},
		"panic":   {func(hooks.ToolContext) hooks.Result { panic(errBoom) }, hooks.Deny, "the hook could not decide: panic: boom", false, `tool "bash": not executed: guard: the hook could not decide: panic: boom`, agent.StatusDone},
	} {
		t.Run(name, func(t *testing.T) {
			f := hookstest.Fire(t, answering(tc.f), hookstest.ToolCall("bash", ls))
			assert.Equal(t, tc.want, f.Decision)
			assert.Equal(t, tc.reason, f.Reason)
			assert.Equal(t, tc.ran, f.Ran())
			assert.Equal(t, tc.text, f.Text())
			assert.Equal(t, tc.status, f.State.Status())
			assert.Equal(t, []string{"guard"}, f.Called)
			assert.Equal(t, tc.want != hooks.Pass, f.Hook == "guard")
			assert.Equal(t, name == "note", note.Or(f.State, "") == "x")
			assert.Equal(t, name == "note", f.Effects.Len() == 1)
			if name == "rewrite" {
				assert.JSONEq(t, `{"command":"pwd"}`, f.Call.Arguments)
				assert.JSONEq(t, ls, f.Result.Original().Arguments)
			} else {
				assert.Equal(t, ls, f.Call.Arguments)
			}
			failed := name == "fail" || name == "panic"
			assert.Equal(t, failed, f.Err != nil)
			assert.Equal(t, failed, f.Policy == "closed")
			assert.Equal(t, failed, f.Outcome.HookFailed())
		})
	}
}

// If a call breaks its schema, a denial wins, and a rewrite mends it. Otherwise the model receives the error.
func TestInvalidCalls(t *testing.T) {
	wrong := &agent.ArgumentsError{Problems: []agent.ArgumentProblem{{Path: "/command", Message: "is missing"}}}
	call := hookstest.ToolCall("bash", `{}`).Invalid(wrong)
	f := hookstest.Fire(t, answering(func(c hooks.ToolContext) hooks.Result {
		assert.Equal(t, error(wrong), c.Invalid())
		return c.Pass()
	}), call)
	assert.Equal(t, agent.ReasonInvalid, f.Result.Reason)
	assert.False(t, f.Ran())
	assert.Equal(t, "checking arguments: /command: is missing", f.Text())

	f = hookstest.Fire(t, answering(func(c hooks.ToolContext) hooks.Result { return c.Deny("no") }), call)
	assert.Equal(t, agent.ReasonDenied, f.Result.Reason)

	f = hookstest.Fire(t, answering(func(c hooks.ToolContext) hooks.Result { return c.Rewrite(map[string]any{"command": "ls"}) }), call)
	assert.True(t, f.Ran())

	after := hooks.On(hooks.AtPostToolUse, "after", func(_ context.Context, c hooks.ToolResultContext) hooks.Result {
		assert.Equal(t, agent.ToolNotExecuted, c.Status())
		return c.Replace("try again")
	})
	f = hookstest.Fire(t, after, hookstest.ToolResult("bash", `{}`, "never").Invalid(errors.New("no such thing")))
	assert.Equal(t, "try again", f.Text())
	assert.Equal(t, agent.ReasonInvalid, f.Result.Reason)
}

// A hook that rewrites an invalid call into itself is told of it as invalid again.
func TestRewriteIntoTheSameIsStillInvalid(t *testing.T) {
	f := hookstest.Fire(t, answering(func(c hooks.ToolContext) hooks.Result { return c.Rewrite(map[string]any{}) }),
		hookstest.ToolCall("bash", `{}`).Invalid(errBoom))
	assert.Equal(t, hooks.Deny, f.Decision)
	require.ErrorIs(t, f.Err, errBoom)
}

// What becomes of calls, as hooks behind them see it.
func TestDecisionsAfterACall(t *testing.T) {
	review := func(f func(c hooks.ToolResultContext) hooks.Result) hooks.Hook {
		return hooks.On(hooks.AtPostToolUse, "review", func(_ context.Context, c hooks.ToolResultContext) hooks.Result { return f(c) })
	}
	out := hookstest.ToolResult("bash", ls, "secret")
	f := hookstest.Fire(t, review(func(c hooks.ToolResultContext) hooks.Result { return c.Withhold("it is secret") }), out)
	assert.Equal(t, hooks.Withhold, f.Decision)
	assert.Equal(t, `tool "bash": result withheld by review: it is secret`, f.Text())
	assert.True(t, f.Ran())

	f = hookstest.Fire(t, review(func(c hooks.ToolResultContext) hooks.Result { return c.Stop("seen enough") }), out)
	assert.Equal(t, hooks.StopRun, f.Decision)
	assert.Equal(t, "secret", f.Text())
	assert.Equal(t, agent.StatusStopped, f.State.Status())

	for status, result := range map[agent.ToolStatus]agent.ToolResult{
		agent.ToolExecuted:    {Content: agent.TextContent("x"), Duration: time.Second},
		agent.ToolFailed:      {Content: agent.TextContent("x"), Status: agent.ToolFailed, Reason: agent.ReasonTimeout, Err: errBoom},
		agent.ToolMocked:      {Content: agent.TextContent("x"), Status: agent.ToolMocked, DecidedBy: "fixture"},
		agent.ToolNotExecuted: {Content: agent.TextContent("x"), Status: agent.ToolNotExecuted, Reason: agent.ReasonDenied, DecidedBy: "guard"},
	} {
		t.Run(string(status), func(t *testing.T) {
			f := hookstest.Fire(t, review(func(c hooks.ToolResultContext) hooks.Result {
				r := c.Result()
				assert.Equal(t, status, c.Status())
				assert.Equal(t, result.Reason, r.Reason)
				assert.Equal(t, result.DecidedBy, r.DecidedBy)
				assert.Equal(t, result.Duration, r.Duration)
				assert.Equal(t, r.Executed(), r.Attempts == 1)
				return c.Replace("y")
			}), out.WithResult(result))
			assert.Equal(t, "y", f.Text())
			assert.Equal(t, status, f.Result.Status)
		})
	}
}

func TestToolFailures(t *testing.T) {
	f := hookstest.Fire(t, hooks.On(hooks.AtToolFailed, "helper", func(_ context.Context, c hooks.ToolFailureContext) hooks.Result {
		assert.ErrorIs(t, c.Err(), errBoom)
		assert.Equal(t, "boom", c.Text())
		return c.Replace("try again")
	}), hookstest.ToolFailure("bash", ls, errBoom))
	assert.Equal(t, hooks.Replace, f.Decision)
	assert.Equal(t, "try again", f.Text())
	assert.Equal(t, agent.ToolFailed, f.Result.Status)
	assert.Equal(t, "bash", f.Call.Name)
}

// With real tools, they say what is invalid and what they answer.
func TestRealTools(t *testing.T) {
	box, err := toolexec.NewToolbox(toolexec.Func("bash", "Runs a command.", func(_ context.Context, in struct {
		Command string `json:"command"`
	},
	) (string, error) {
		if in.Command == "false" {
			return "", errBoom
		}
		return "ran " + in.Command, nil
	}))
	require.NoError(t, err)
	x := toolexec.NewExecutor(box, toolexec.Options{})
	watch := func(invalid bool) hooks.Hook {
		return answering(func(c hooks.ToolContext) hooks.Result {
			assert.Equal(t, invalid, c.Invalid() != nil)
			return c.Pass()
		})
	}
	assert.Equal(t, "ran ls", hookstest.Fire(t, watch(false), hookstest.ToolCall("bash", ls).WithExecutor(x)).Text())
	assert.Equal(t, agent.ReasonInvalid, hookstest.Fire(t, watch(true), hookstest.ToolCall("bash", `{"command":7}`).WithExecutor(x)).Result.Reason)
	assert.Equal(t, agent.ReasonUnknownTool, hookstest.Fire(t, watch(true), hookstest.ToolCall("zsh", ls).WithExecutor(x)).Result.Reason)

	failed := hooks.Observe(hooks.AtToolFailed, "failed", func(context.Context, hooks.ToolFailureContext) error { return nil })
	moment := hookstest.ToolFailure("bash", `{"command":"false"}`, errors.New("what the real tool says counts")).WithExecutor(x)
	assert.Equal(t, []string{"failed"}, hookstest.Fire(t, failed, moment).Called)
}
