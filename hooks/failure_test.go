package hooks_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

func TestFailurePoliciesAsText(t *testing.T) {
	for want, policy := range map[string]hooks.FailurePolicy{
		"default": {}, "closed": hooks.Closed, "open": hooks.Open, "abort": hooks.Abort,
		"retry(2, 1s, open)":     hooks.Retry(2, time.Second, hooks.Open),
		"retry(3, 0s, default)":  hooks.Retry(3, 0, hooks.FailurePolicy{}),
		"retry(-1, 0s, default)": hooks.Retry(-1, 0, hooks.FailurePolicy{}),
	} {
		assert.Equal(t, want, policy.String())
	}
}

// A hook that aborts fails the run with its error, at all of a call's points, whether it is a control or an observer.
// The rest of the batch does not run.
func TestAbortAtACall(t *testing.T) {
	for name, tc := range map[string]struct {
		hook  hooks.Hook
		point hooks.PointName
		ran   int
	}{
		"before":          {before("h", func(c hooks.ToolContext) hooks.Result { return c.Fail(errPaper) }, hooks.ToolNamed("broken")), hooks.PreToolUse, 0},
		"before, invalid": {before("h", rewriteTo("no object"), hooks.ToolNamed("broken")), hooks.PreToolUse, 0},
		"observer before": {hooks.Observe(hooks.AtPreToolUse, "h", func(context.Context, hooks.ToolContext) error { return errPaper }, hooks.ToolNamed("broken")), hooks.PreToolUse, 0},
		"failed": {hooks.On(hooks.AtToolFailed, "h", func(_ context.Context, c hooks.ToolFailureContext) hooks.Result {
			return c.Fail(errPaper)
		}), hooks.ToolFailed, 3},
		"after":          {after("h", func(c hooks.ToolResultContext) hooks.Result { return c.Fail(errPaper) }, hooks.ToolNamed("broken")), hooks.PostToolUse, 3},
		"observer after": {hooks.Observe(hooks.AtPostToolUse, "h", func(context.Context, hooks.ToolResultContext) error { return errPaper }, hooks.ToolNamed("broken")), hooks.PostToolUse, 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := workWith(t, []hooks.Hook{tc.hook.WithFailure(hooks.Abort)}, wants("bash", ls, "broken", `{}`, "bash", ls))
			failed, ok := errors.AsType[*hooks.HookError](w.err)
			require.True(t, ok, "%v", w.err)
			assert.Equal(t, "h", failed.Hook)
			assert.Equal(t, tc.point, failed.Point)
			assert.Equal(t, agent.StatusFailed, w.Status())
			assert.Len(t, w.ran, tc.ran)
			assert.Len(t, w.results(), 3, "every call is answered")
			assert.Equal(t, "abort", w.events(hooks.HookFailed)[0].Policy)
			assert.ErrorContains(t, w.err, `hook "h" at `+string(tc.point)+" could not decide: ")
		})
	}
}

// With an observer that aborts, what the controls decided before is not lost.
func TestDecisionsBeforeAnAbort(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := workIn(t, ctx, []hooks.Hook{
		before("adds", func(c hooks.ToolContext) hooks.Result { return c.Deny("no", note.Set("kept")) }),
		hooks.Observe(hooks.AtPreToolUse, "watch", func(ctx context.Context, _ hooks.ToolContext) error { cancel(); return ctx.Err() }),
	}, wants("bash", ls))
	assert.Equal(t, agent.StatusCancelled, w.Status())
	assert.Equal(t, agent.ReasonDenied, w.result(0).Reason)
	assert.Equal(t, "kept", note.Or(w.State, ""))
}

// A run that is cancelled while a hook waits for its next try does not wait on.
func TestCancelBetweenTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		tries := 0
		w := workIn(t, ctx, []hooks.Hook{
			before("flaky", func(c hooks.ToolContext) hooks.Result { tries++; return c.Fail(errPaper) }).WithFailure(hooks.Retry(9, time.Hour, hooks.Open)),
		}, wants("bash", ls))
		assert.Equal(t, time.Minute, time.Since(began))
		assert.Equal(t, 1, tries)
		assert.Empty(t, w.ran)
		assert.Equal(t, agent.StatusCancelled, w.Status())
		require.Len(t, w.events(hooks.HookSkipped), 1)
		assert.Equal(t, "cancelled before it answered", w.events(hooks.HookSkipped)[0].Reason)
	})
}

// An executor that breaks while it checks the rewrite of a second try ends the run
// as in the first.
func TestExecutorThatBreaksInARetry(t *testing.T) {
	x := &breaking{onPrepare: 2, err: errors.New("connection lost")}
	tries := 0
	w := runOn(t, wrapped(t, x, before("flaky", func(c hooks.ToolContext) hooks.Result {
		if tries++; tries == 1 {
			return c.Fail(errPaper)
		}
		return c.Rewrite(map[string]any{"command": tries})
	}).WithFailure(hooks.Retry(9, 0, hooks.Open))), wants("bash", ls), agent.Config{})
	require.ErrorIs(t, w.err, x.err)
	assert.Equal(t, 2, tries)
}

// Several goroutines of one hook may look at its context at once.
func TestContextLookedAtByMany(t *testing.T) {
	w := workWith(t, []hooks.Hook{hooks.On(hooks.AtPreToolUse, "busy", func(ctx context.Context, c hooks.ToolContext) hooks.Result {
		var all sync.WaitGroup
		done := make(chan (<-chan struct{}), 8)
		for range 8 {
			all.Go(func() { done <- ctx.Done() })
		}
		all.Wait()
		first := <-done
		for range 7 {
			assert.Equal(t, first, <-done)
		}
		return c.Allow()
	})}, wants("bash", ls))
	assert.Equal(t, "ran ls", w.result(0).Text())
}

// A hook before or after a call may have these facts about it.
func TestFactsOfACall(t *testing.T) {
	started := time.Now()
	w := workWith(t, []hooks.Hook{
		before("h", func(c hooks.ToolContext) hooks.Result {
			var in struct{ Command string }
			require.NoError(t, c.Call().Decode(&in))
			assert.Empty(t, in.Command, "names are case-sensitive")
			var wrong struct {
				Command int `json:"command"`
			}
			assert.ErrorContains(t, c.Call().Decode(&wrong), `reading the arguments of tool "bash": `)
			_, there := c.Call().Text("missing")
			assert.False(t, there)
			raw, there := c.Call().Argument("timeout")
			assert.True(t, there)
			assert.Equal(t, "30", raw)
			_, there = c.Call().Text("timeout")
			assert.False(t, there, "no text")
			assert.False(t, c.Time().Before(started))
			assert.GreaterOrEqual(t, time.Since(started), c.Elapsed())
			assert.Equal(t, hooks.PreToolUse, c.Point())
			assert.Equal(t, "tester", c.Run().Agent)
			assert.Zero(t, c.StepIndex())
			assert.NoError(t, c.Invalid())
			return c.Rewrite(map[string]any{"command": "pwd"})
		}),
		after("a", func(c hooks.ToolResultContext) hooks.Result {
			r := c.Result()
			assert.True(t, r.Rewritten())
			assert.JSONEq(t, `{"command":"ls","timeout":30}`, c.Original().Arguments)
			assert.JSONEq(t, `{"command":"pwd"}`, c.Call().Arguments)
			assert.Equal(t, 1, r.Attempts)
			assert.Equal(t, agent.ToolExecuted, c.Status())
			assert.False(t, c.IsError())
			assert.False(t, c.Denied())
			return c.ReplaceContent(agent.ContentOf(agent.Text("a"), agent.Text("b")))
		}),
	}, wants("bash", `{"command":"ls","timeout":30}`))
	assert.Equal(t, "ran with changed arguments: {\"command\":\"pwd\"}\nab", w.result(0).Text())
	var empty hooks.Call
	var in map[string]any
	require.NoError(t, empty.Decode(&in), "no arguments are none")
	assert.Empty(t, in)
}
