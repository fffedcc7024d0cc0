package coordinator_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/registry"
)

// A simple runner parks a run until people have answered; the next one that gets it has the answers, and starts its program.
func TestPark(t *testing.T) {
	b := newBench(t)
	b.create(`{"name": "mailer", "type": "procedural", "command": {"argv": ["true"]}}`)
	s := b.serve()
	p := b.plain(s, wire.RunnerRole)
	id := b.submit("mailer", `{}`)
	first := p.claim("r1").Runs
	require.Len(t, first, 1)
	assert.Empty(t, first[0].Answers)
	epoch := first[0].Epoch
	require.Equal(t, http.StatusNoContent, p.report("r1", id, "started", map[string]any{"epoch": epoch}))
	for name, questions := range map[string]any{
		"none":              []any{},
		"no reason":         []any{map[string]any{"id": "a"}},
		"twice":             []any{map[string]any{"id": "a", "reason": "x"}, map[string]any{"id": "a", "reason": "x"}},
		"no majority":       []any{map[string]any{"id": "a", "reason": "x", "quorum": 2, "approvers": []string{"b", "b"}}},
		"a hidden reason":   []any{map[string]any{"id": "a", "reason": "pay \u202e001"}},
		"a blank approver":  []any{map[string]any{"id": "a", "reason": "x", "approvers": []string{" "}}},
		"a control":         []any{map[string]any{"id": "a\u0001", "reason": "x"}},
		"no object":         []any{map[string]any{"id": "a", "reason": "x", "arguments": []int{1}}},
		"a negative time":   []any{map[string]any{"id": "a", "reason": "x", "within_seconds": -1}},
		"an unknown member": []any{map[string]any{"id": "a", "reason": "x", "colour": "red"}},
	} {
		assert.Equal(t, http.StatusUnprocessableEntity, p.report("r1", id, "park", map[string]any{"epoch": epoch, "questions": questions}), name)
	}
	ask := map[string]any{"epoch": epoch, "questions": []any{
		map[string]any{"id": "send", "reason": "Send it?", "tool": "mail", "arguments": map[string]any{"to": "ann"}},
		map[string]any{"id": "copy", "reason": "Keep a copy?", "approvers": []string{"operator"}},
	}}
	assert.Equal(t, http.StatusConflict, p.report("r2", id, "park", ask), "another runner")
	require.Equal(t, http.StatusNoContent, p.report("r1", id, "park", ask))
	assert.Equal(t, http.StatusConflict, p.report("r1", id, "completed", map[string]any{"epoch": epoch}), "it has the run no more")
	assert.Empty(t, p.claim("r1").Runs)
	d, err := b.c.Run(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, wire.Waiting, d.Status)
	require.Len(t, d.WaitsFor, 2)
	for role, want := range map[wire.Role][]bool{wire.Viewer: {false, false}, wire.Operator: {true, true}, wire.Admin: {true, false}} {
		var seen wire.RunDetail
		var counts wire.Counts
		for path, into := range map[string]any{"/runs/" + string(id): &seen, "/runs/counts": &counts} {
			status, text := b.plain(s, role).send(http.MethodGet, path, "", nil)
			require.Equal(t, http.StatusOK, status)
			require.NoError(t, json.Unmarshal(text, into))
		}
		counts.OldestWaitS = 0
		assert.Equal(t, wire.Counts{Waiting: 1, Inbox: 2, InboxMine: lo.Count(want, true)}, counts, role)
		for i, w := range seen.WaitsFor {
			assert.Equal(t, want[i], w.MayAnswer, "%s: %s", role, w.Tool)
			assert.Equal(t, !want[i], w.WhyNot != "", "%s: %s", role, w.Tool)
		}
		send := seen.WaitsFor[0]
		assert.JSONEq(t, `{"to":"ann"}`, send.Arguments)
		require.Len(t, send.Asked, 1)
		assert.Equal(t, "Send it?", send.Asked[0].Reason)
		assert.Equal(t, 1, send.Asked[0].Quorum)
		assert.Equal(t, []string{"operator"}, seen.WaitsFor[1].Asked[0].Approvers)
	}

	operator := b.plain(s, wire.Operator)
	answer := func(question string, a agent.Approval) int {
		w, err := durabletest.FindWait(t.Context(), b.store, id, question)
		require.NoError(t, err)
		a.Covers = questionsOf(t, w)
		status, _ := operator.send(http.MethodPost, "/runs/"+string(id)+"/questions/"+w.ID+"/answers", "", a)
		return status
	}
	assert.Equal(t, http.StatusUnprocessableEntity, answer("send", agent.Approval{Verdict: agent.RejectAndContinue, Reason: "no\u202e"}))
	require.Equal(t, http.StatusOK, answer("send", agent.Approval{Verdict: agent.Approve, Arguments: `{"to": "bob"}`}))
	assert.Empty(t, p.claim("r1").Runs, "one question is open")
	require.Equal(t, http.StatusOK, answer("copy", agent.Approval{Verdict: agent.RejectAndContinue, Reason: "no"}))
	again := p.claim("r2").Runs
	require.Len(t, again, 1)
	assert.False(t, again[0].Begun, "its program had ended")
	assert.Equal(t, []wire.RunnerAnswer{
		{ID: "send", Approved: true, By: "operator", Arguments: json.RawMessage(`{"to":"bob"}`)}, {ID: "copy", Reason: "no", By: "operator"},
	}, again[0].Answers)
	require.Equal(t, http.StatusNoContent, p.report("r2", id, "started", map[string]any{"epoch": again[0].Epoch}))

	// An answer to an earlier question does not count for another one of the same name.
	same := map[string]any{"epoch": again[0].Epoch, "questions": []any{map[string]any{"id": "send", "reason": "Delete all?", "tool": "mail", "arguments": map[string]any{"to": "ann"}}}}
	require.Equal(t, http.StatusNoContent, p.report("r2", id, "park", same))
	assert.Empty(t, p.claim("r2").Runs)
	require.Equal(t, http.StatusOK, answer("send", agent.Approval{Verdict: agent.RejectAndContinue}))
	again = p.claim("r2").Runs
	require.Len(t, again, 1)
	assert.Equal(t, []wire.RunnerAnswer{{ID: "send", By: "operator"}}, again[0].Answers)

	// Its time may be over, which a process with a worker notices.
	short := map[string]any{"epoch": again[0].Epoch, "questions": []any{map[string]any{"id": "late", "reason": "Now?", "within_seconds": 1}}}
	require.Equal(t, http.StatusNoContent, p.report("r2", id, "park", short))
	var last []wire.ClaimedRun
	w, err := durable.NewWorker(b.store, durable.WorkerOptions{Runners: b.c.HookRunners(durable.Keep(b.c.RunnerStore(), durable.Options{}))})
	require.NoError(t, err)
	for until := time.Now().Add(time.Minute); len(last) == 0 && time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		require.NoError(t, w.ExecuteReady(t.Context()))
		last = p.claim("r1").Runs
	}
	require.Len(t, last, 1)
	assert.Equal(t, []wire.RunnerAnswer{{ID: "late", Reason: "the time for an answer is over"}}, last[0].Answers)
	require.Equal(t, http.StatusNoContent, p.report("r1", id, "completed", map[string]any{"epoch": last[0].Epoch, "result_text": "sent"}))
	assert.Equal(t, wire.Completed, b.work(id).Status)
}

// A run that a program has parked is not executed by runners that could not tell their program what people have decided.
func TestParkedRunsAreForTheirRunners(t *testing.T) {
	b := newBench(t)
	b.create(`{"name": "mailer", "type": "procedural", "command": {"argv": ["true"], "repeat": true}}`)
	s := b.serve()
	p := b.plain(s, wire.RunnerRole)
	id := b.submit("mailer", `{}`)
	epoch := p.claim("r1").Runs[0].Epoch
	require.Equal(t, http.StatusNoContent, p.report("r1", id, "park", map[string]any{"epoch": epoch, "questions": []any{map[string]any{"id": "send", "reason": "Send it?"}}}))
	waits, err := b.store.Waits(t.Context(), id)
	require.NoError(t, err)
	require.NoError(t, durabletest.Approve(t.Context(), b.store, id, waits[0].ID, agent.Approval{Verdict: agent.RejectAndContinue}))
	require.NoError(t, b.worker().ExecuteReady(t.Context()))
	d, err := b.c.Run(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, wire.Pending, d.Status)
	assert.Contains(t, d.LastError, "was parked by a runner that asks people")
}

// A run whose agent cannot be built says why, is tried again, and can be stopped.
func TestRunThatCannotBeExecuted(t *testing.T) {
	b := newBench(t)
	b.create(`{"name": "clerk", "type": "autonomous"}`)
	k := durable.Keep(b.c.RunnerStore(), durable.Options{})
	o := coordinator.RunnerOptions{Agents: func(context.Context, registry.Definition, []hooks.Hook) (*agent.Agent, func() error, error) {
		return nil, nil, errors.New("no key")
	}}
	w, err := durable.NewWorker(b.store, durable.WorkerOptions{Runners: b.c.Runners(k, o), Labels: b.c.Labels(o, nil)})
	require.NoError(t, err)
	id := b.submit("clerk", `{"prompt": "x"}`)
	require.NoError(t, w.ExecuteReady(t.Context()))
	d, err := b.c.Run(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, wire.Pending, d.Status)
	assert.Contains(t, d.LastError, `agent of blueprint "clerk": no key`)
	require.NoError(t, b.c.Stop(t.Context(), id, "enough", "ann"))
	require.NoError(t, w.ExecuteReady(t.Context()))
	d, err = b.c.Run(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, wire.Stopped, d.Status)
	assert.Empty(t, d.LastError)
}

// noKeyError is the error of a runner that lacks a key.
type noKeyError struct{}

func (noKeyError) Error() string   { return "no key is set" }
func (noKeyError) Retryable() bool { return false }

// A run whose agent can never be built has failed with the reason, which its on_result hooks have seen, and is not tried again.
func TestRunThatCanNeverBeExecuted(t *testing.T) {
	b := newBench(t)
	b.create(`{"name": "clerk", "type": "autonomous", "hooks": {
		"on_result": {"type": "command", "argv": ["echo", "{\"action\": \"continue\"}"], "on_error": "block"}}}`)
	k := durable.Keep(b.c.RunnerStore(), durable.Options{})
	o := coordinator.RunnerOptions{Agents: func(context.Context, registry.Definition, []hooks.Hook) (*agent.Agent, func() error, error) {
		return nil, nil, noKeyError{}
	}}
	runners := b.c.Runners(k, o)
	maps.Copy(runners, b.c.HookRunners(k))
	w, err := durable.NewWorker(b.store, durable.WorkerOptions{Runners: runners, Labels: b.c.Labels(o, nil)})
	require.NoError(t, err)
	id := b.submit("clerk", `{"prompt": "x"}`)
	for range 3 {
		require.NoError(t, w.ExecuteReady(t.Context()))
	}
	d, err := b.c.Run(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, wire.Failed, d.Status)
	assert.Contains(t, lo.FromPtr(d.Error), `agent of blueprint "clerk": no key is set`)
	assert.Equal(t, []string{"hook_start", "hook_complete"}, eventTypes(d))
}
