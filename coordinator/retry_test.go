package coordinator_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
)

// refusesRetry fails the test unless a retry is refused for a reason.
func (b *bench) refusesRetry(id agent.RunID, r wire.RetryRequest, why string) {
	b.t.Helper()
	_, err := b.c.Retry(b.t.Context(), id, r, "ann")
	var invalid *coordinator.InvalidError
	require.ErrorAs(b.t, err, &invalid)
	require.ErrorContains(b.t, err, why)
}

// A retry has the blueprint version, the submitted parameters and the labels of the run, and nothing that the run did.
func TestRetry(t *testing.T) {
	var blocks atomic.Bool
	blocks.Store(true)
	b := newBench(t, withFuncs(map[string]action.Body{"guard": func(_ context.Context, r *action.Request) (*action.Decision, error) {
		if blocks.Load() {
			return &action.Decision{Decision: hooks.Deny, Reason: "closed"}, nil
		}
		return changeOnce(`{"month":"May"}`, `{"month":"June"}`)(context.Background(), r)
	}}))
	b.create(startHook(`{"type": "func", "func": "guard", "on_error": "block"}`))
	first := b.submitWith(wire.RunRequest{
		AgentName: "job", Parameters: []byte(`{"month": "May"}`), Labels: map[string]string{"team": "finance"}, Priority: 3, TimeoutSeconds: 600,
	})
	b.refusesRetry(first.ID, wire.RetryRequest{}, "has not ended")
	require.True(t, b.work(first.ID).Blocked)
	_, err := b.c.UpdateBlueprint(t.Context(), "job", []byte(`{"command": {"argv": ["false"]}}`), 0, "ann")
	require.NoError(t, err)
	blocks.Store(false)

	again, err := b.c.Retry(t.Context(), first.ID, wire.RetryRequest{IdempotencyKey: "k"}, "bob")
	require.NoError(t, err)
	same, err := b.c.Retry(t.Context(), first.ID, wire.RetryRequest{IdempotencyKey: "k"}, "bob")
	require.NoError(t, err)
	assert.Equal(t, again.ID, same.ID)
	d := b.work(again.ID)
	assert.Equal(t, wire.Completed, d.Status, "the version is the first one")
	assert.JSONEq(t, `{"month":"June"}`, string(d.ResultData))
	assert.JSONEq(t, `{"month":"May"}`, string(d.OriginalParameters))
	assert.Equal(t, first.ID, d.RetryOf)
	assert.Equal(t, "bob", d.SubmittedBy)
	assert.Equal(t, map[string]string{"team": "finance"}, d.Labels)
	assert.NotEqual(t, first.Session, d.SessionID)
	stored, err := b.store.Run(t.Context(), again.ID)
	require.NoError(t, err)
	assert.EqualValues(t, 3, stored.Priority)
	assert.Equal(t, first.Deadline.Sub(first.Created).Round(1e9), stored.Deadline.Sub(stored.Created).Round(1e9))
	old, err := b.c.Run(t.Context(), first.ID)
	require.NoError(t, err)
	require.Len(t, old.Retries, 1)
	assert.Equal(t, again.ID, old.Retries[0].RunID)
	b.refusesRetry(again.ID, wire.RetryRequest{}, "is completed")
	require.NoError(t, b.c.DeleteBlueprint(t.Context(), "job", 0))
	b.refusesRetry(first.ID, wire.RetryRequest{}, "was deleted")
	_, err = b.c.Retry(t.Context(), "run_none", wire.RetryRequest{}, "ann")
	require.ErrorIs(t, err, durable.ErrNotFound)
}

// Runs that hooks have started are not retried by themselves.
func TestRetryOfOtherRuns(t *testing.T) {
	b := newBench(t)
	b.create(validator, report)
	b.submit("report", `{"month": "May"}`)
	require.NoError(t, b.hooksWorker().ExecuteReady(t.Context()))
	list, err := b.c.ListRuns(t.Context(), wire.RunFilter{AgentName: "validator", Limit: 1})
	require.NoError(t, err)
	require.Len(t, list.Runs, 1)
	require.NoError(t, b.c.Stop(t.Context(), list.Runs[0].RunID, "", ""))
	b.work(list.Runs[0].RunID)
	b.refusesRetry(list.Runs[0].RunID, wire.RetryRequest{}, "a hook has started run")
	b.refusesRetry(list.Runs[0].RunID, wire.RetryRequest{PastHook: "x", Reason: "y"}, "no on_run_start hook has blocked run")
}

// The retry of a session's last run follows it, with the conversation before it. A run that another one follows is not retried.
func TestRetryOfALaterRun(t *testing.T) {
	b := newBench(t)
	b.create(`{"name": "clerk", "type": "autonomous"}`)
	var prompts []string
	fails := false
	b.replies["clerk"] = func(s agent.State) string {
		prompts = nil
		for _, m := range s.Messages() {
			if m.Role() == agent.RoleUser {
				prompts = append(prompts, m.Text())
			}
		}
		if fails {
			return ""
		}
		return "done"
	}
	first := b.submitWith(wire.RunRequest{AgentName: "clerk", Parameters: []byte(`{"prompt": "x"}`)})
	b.work(first.ID)
	fails = true
	later := b.resume(first.Session, wire.ResumeRequest{Prompt: "y"})
	require.Equal(t, wire.Failed, b.work(later.ID).Status)
	again, err := b.c.Retry(t.Context(), later.ID, wire.RetryRequest{IdempotencyKey: "k"}, "bob")
	require.NoError(t, err)
	same, err := b.c.Retry(t.Context(), later.ID, wire.RetryRequest{IdempotencyKey: "k"}, "bob")
	require.NoError(t, err)
	assert.Equal(t, again.ID, same.ID)
	require.Equal(t, wire.Failed, b.work(again.ID).Status)
	b.refusesRetry(later.ID, wire.RetryRequest{}, fmt.Sprintf("is followed by run %s", again.ID))
	fails = false
	third, err := b.c.Retry(t.Context(), again.ID, wire.RetryRequest{}, "bob")
	require.NoError(t, err)
	d := b.work(third.ID)
	assert.Equal(t, wire.Completed, d.Status)
	assert.Equal(t, []any{first.Session, again.ID}, []any{d.SessionID, d.RetryOf})
	assert.Equal(t, []string{"x", "y"}, prompts)
	b.work(b.resume(first.Session, wire.ResumeRequest{Prompt: "z"}).ID)
	assert.Equal(t, []string{"x", "y", "z"}, prompts)
}

// An operator lets one run pass the hook that has blocked it, with a reason. Its other hooks are asked, and so is that hook about later runs.
func TestRetryPastAHook(t *testing.T) {
	asked := map[string]int{}
	answer := func(name string, d action.Decision) action.Body {
		return func(context.Context, *action.Request) (*action.Decision, error) {
			asked[name]++
			return &d, nil
		}
	}
	b := newBench(t, withFuncs(map[string]action.Body{
		"first": answer("first", action.Decision{Decision: hooks.Allow}), "second": answer("second", action.Decision{Decision: hooks.Deny, Reason: "closed"}),
	}))
	b.create(startHook(`[{"type": "func", "func": "first", "on_error": "block"}, {"type": "func", "func": "second", "on_error": "block"}]`))
	id := b.submit("job", `{}`)
	blocked := b.work(id)
	require.True(t, blocked.Blocked)
	hook := blocked.Hooks[len(blocked.Hooks)-1].Hook
	b.refusesRetry(id, wire.RetryRequest{PastHook: blocked.Hooks[0].Hook, Reason: "x"}, fmt.Sprintf("has not blocked run %s: %q has", id, hook))
	b.refusesRetry(id, wire.RetryRequest{PastHook: hook, Reason: " "}, "say in at most")

	again, err := b.c.Retry(t.Context(), id, wire.RetryRequest{PastHook: "second", Reason: "open again"}, "bob") // by what it calls, as lists show it
	require.NoError(t, err)
	d := b.work(again.ID)
	assert.Equal(t, wire.Completed, d.Status)
	assert.Equal(t, []string{hook, "open again"}, []string{d.PastHook, d.Because})
	assert.Equal(t, map[string]int{"first": 2, "second": 1}, asked)
	old, err := b.c.Run(t.Context(), id)
	require.NoError(t, err)
	require.Len(t, old.Retries, 1)
	assert.Equal(t, []string{hook, "open again", "bob"}, []string{old.Retries[0].PastHook, old.Retries[0].Because, old.Retries[0].SubmittedBy})

	plain, err := b.c.Retry(t.Context(), id, wire.RetryRequest{}, "bob")
	require.NoError(t, err)
	assert.True(t, b.work(plain.ID).Blocked)
	b.refusesRetry(again.ID, wire.RetryRequest{PastHook: hook, Reason: "x"}, "is completed")
}
