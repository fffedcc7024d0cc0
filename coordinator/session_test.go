package coordinator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/memory"
)

// transcript returns the texts of a conversation, with the sources of messages that have one.
func transcript(s agent.State) string {
	var texts []string
	for _, m := range s.Messages() {
		text := m.Text()
		if m.Source() != "" {
			text = m.Source() + ": " + text
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, " | ")
}

func (b *bench) resume(id agent.SessionID, r wire.ResumeRequest) durable.Run {
	b.t.Helper()
	run, err := b.c.Resume(b.t.Context(), id, r, "ann")
	require.NoError(b.t, err)
	return run
}

func (b *bench) submitWith(r wire.RunRequest) durable.Run {
	b.t.Helper()
	run, err := b.c.Submit(b.t.Context(), r, "ann")
	require.NoError(b.t, err)
	return run
}

// CO-02: a session is resumed with its conversation, also while its last run has not ended.
func TestResume(t *testing.T) {
	b := newBench(t)
	b.create(`{"name": "clerk", "type": "autonomous"}`)
	b.replies["clerk"] = func(s agent.State) string { return fmt.Sprintf("<%s>", transcript(s)) }
	first := b.submitWith(wire.RunRequest{AgentName: "clerk", Parameters: json.RawMessage(`{"prompt": "one"}`)})
	second := b.resume(first.Session, wire.ResumeRequest{Prompt: "two", IdempotencyKey: "k"})
	third := b.resume(first.Session, wire.ResumeRequest{Prompt: "three"})
	again := b.resume(first.Session, wire.ResumeRequest{Prompt: "two", IdempotencyKey: "k"})
	assert.Equal(t, second.ID, again.ID)
	_, err := b.c.Resume(t.Context(), first.Session, wire.ResumeRequest{Prompt: "other", IdempotencyKey: "k"}, "ann")
	require.ErrorIs(t, err, coordinator.ErrKeyUsed)
	d := b.work(third.ID)
	require.Equal(t, wire.Completed, d.Status, lo.FromPtr(d.Error))
	assert.Equal(t, "<one | <one> | two | <one | <one> | two> | three>", *d.ResultText)
	assert.JSONEq(t, `{"prompt": "three"}`, string(d.Parameters))
	s, err := b.c.Session(t.Context(), first.Session)
	require.NoError(t, err)
	assert.Equal(t, []agent.RunID{third.ID, second.ID, first.ID}, lo.Map(s.Runs, func(r wire.Run, _ int) agent.RunID { return r.RunID }))
	assert.Equal(t, []any{"clerk", wire.Completed}, []any{s.AgentName, s.Status})

	fourth := b.resume(first.Session, wire.ResumeRequest{Prompt: "four"})
	assert.Contains(t, *b.work(fourth.ID).ResultText, "three> | four>")
}

// CO-02: a session that does not exist or has no conversation cannot be resumed.
func TestResumeRefused(t *testing.T) {
	b := newBench(t)
	b.create(`{"name": "job", "type": "procedural", "command": {"argv": ["true"]}}`, `{"name": "clerk", "type": "autonomous"}`)
	job := b.submitWith(wire.RunRequest{AgentName: "job"})
	_, err := b.c.Resume(t.Context(), "ses_unknown", wire.ResumeRequest{Prompt: "x"}, "ann")
	require.ErrorIs(t, err, durable.ErrNotFound)
	_, err = b.c.Resume(t.Context(), job.Session, wire.ResumeRequest{Prompt: "x"}, "ann")
	require.ErrorContains(t, err, "not autonomous")
	_, err = b.c.Resume(t.Context(), job.Session, wire.ResumeRequest{TimeoutSeconds: -1}, "ann")
	require.ErrorContains(t, err, "prompt: missing")
	require.ErrorContains(t, err, "timeout_seconds: -1")
	_, err = b.c.Resume(t.Context(), job.Session, wire.ResumeRequest{Prompt: "x", TimeoutSeconds: math.MaxInt}, "ann")
	require.ErrorContains(t, err, "timeout_seconds: 9223372036854775807")
	for want, r := range map[string]wire.RunRequest{
		`parent_session_id: no session "ses_unknown"`: {ParentSessionID: "ses_unknown"},
		"parent_session_id: session ":                 {ParentSessionID: job.Session, ExecutionMode: wire.AsyncCallback},
		"execution_mode: async_callback requires":     {ExecutionMode: wire.AsyncCallback},
		`execution_mode: "sync": expected async_poll`: {ExecutionMode: "sync"},
	} {
		r.AgentName = "job"
		_, err := b.c.Submit(t.Context(), r, "ann")
		require.ErrorContains(t, err, want)
	}
}

// A run that was blocked or failed leaves the conversation as it was before.
func TestResumeAfterFailure(t *testing.T) {
	b := newBench(t)
	b.create(`{"name": "clerk", "type": "autonomous", "hooks": {"on_run_start": {
		"type": "shell", "command": "grep -q forbidden && echo '{\"action\": \"block\"}' || echo '{\"action\": \"continue\"}'", "on_error": "block"}}}`)
	b.replies["clerk"] = transcript
	first := b.submitWith(wire.RunRequest{AgentName: "clerk", Parameters: json.RawMessage(`{"prompt": "one"}`)})
	b.work(first.ID)
	blocked := b.work(b.resume(first.Session, wire.ResumeRequest{Prompt: "forbidden"}).ID)
	assert.True(t, blocked.Blocked)
	last := b.work(b.resume(first.Session, wire.ResumeRequest{Prompt: "two"}).ID)
	require.Equal(t, wire.Completed, last.Status, lo.FromPtr(last.Error))
	assert.Equal(t, "one | one | two", *last.ResultText)
	require.Len(t, last.Hooks, 2)
	assert.Equal(t, first.Session, last.Hooks[0].SessionID)
}

// CO-10, CO-27, CO-37: the parent session is told of completed, failed and blocked runs; while it is busy they are queued, and it
// is told of all of them in one run.
func TestCallbacks(t *testing.T) {
	b := newBench(t)
	b.create(`{"name": "boss", "type": "autonomous"}`, `{"name": "good", "type": "procedural", "command": {"argv": ["echo", "done"]}}`,
		`{"name": "bad", "type": "procedural", "command": {"argv": ["sh", "-c", "exit 3"]}}`,
		`{"name": "never", "type": "procedural", "command": {"argv": ["true"]}, "hooks": {
			"on_run_start": {"type": "command", "argv": ["echo", "{\"action\": \"block\", \"block_reason\": \"no\"}"], "on_error": "block"},
			"on_run_finish": {"type": "command", "argv": ["true"], "on_error": "continue"}}}`)
	b.replies["boss"] = func(s agent.State) string { return s.LastMessage().Source() }
	parent := b.submitWith(wire.RunRequest{AgentName: "boss", Parameters: json.RawMessage(`{"prompt": "start"}`)})
	children := map[agent.RunID]string{}
	for _, name := range []string{"good", "bad", "never"} {
		r := b.submitWith(wire.RunRequest{
			AgentName: name, ParentSessionID: parent.Session, ExecutionMode: wire.AsyncCallback, IdempotencyKey: name,
		})
		children[r.ID] = name
		assert.Equal(t, r.ID, b.submitWith(wire.RunRequest{
			AgentName: name, ParentSessionID: parent.Session, ExecutionMode: wire.AsyncCallback, IdempotencyKey: name,
		}).ID)
	}
	b.submitWith(wire.RunRequest{AgentName: "good", ParentSessionID: parent.Session}) // the parent is not told about this run
	b.work(parent.ID)
	s, err := b.c.Session(t.Context(), parent.Session)
	require.NoError(t, err)
	assert.Len(t, s.Children, 4)
	told := map[agent.RunID]wire.Callback{}
	for _, r := range s.Runs {
		d, err := b.c.Run(t.Context(), r.RunID)
		require.NoError(t, err)
		if r.RunID == parent.ID {
			continue
		}
		require.Equal(t, wire.Completed, d.Status, lo.FromPtr(d.Error))
		assert.Equal(t, "callback", *d.ResultText, "the message is not from the user")
		var p struct{ Callbacks []wire.Callback }
		require.NoError(t, json.Unmarshal(d.Parameters, &p))
		for _, c := range p.Callbacks {
			assert.NotContains(t, told, c.RunID, "told twice")
			told[c.RunID] = c
		}
	}
	require.Len(t, told, 3)
	for id, name := range children {
		c := told[id]
		assert.Equal(t, name, c.AgentName)
		switch name {
		case "good":
			assert.Equal(t, []any{wire.Completed, "done\n"}, []any{c.Status, *c.ResultText})
		case "bad":
			assert.Equal(t, []any{wire.Failed, "the command exited with code 3"}, []any{c.Status, *c.Error})
		case "never":
			assert.Equal(t, []any{wire.Failed, true, "Blocked by on_run_start hook: no"}, []any{c.Status, c.Blocked, *c.Error})
		}
	}
}

// CO-37: however callbacks, resumes and workers interleave, one run of a session runs at a time, and each callback is told once.
func TestCallbacksTogether(t *testing.T) {
	b := newBench(t)
	b.create(`{"name": "boss", "type": "autonomous"}`, `{"name": "good", "type": "procedural", "command": {"argv": ["true"]}}`)
	var mu sync.Mutex
	running, most := 0, 0
	b.replies["boss"] = func(agent.State) string {
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		defer func() {
			mu.Lock()
			running--
			mu.Unlock()
		}()
		return "ok"
	}
	parent := b.submitWith(wire.RunRequest{AgentName: "boss", Parameters: json.RawMessage(`{"prompt": "start"}`)})
	const children, resumes = 12, 4
	var group sync.WaitGroup
	for range children {
		group.Go(func() {
			_, err := b.c.Submit(t.Context(), wire.RunRequest{
				AgentName: "good", ParentSessionID: parent.Session, ExecutionMode: wire.AsyncCallback,
			}, "ann")
			assert.NoError(t, err)
		})
	}
	for i := range resumes {
		group.Go(func() {
			_, err := b.c.Resume(t.Context(), parent.Session, wire.ResumeRequest{Prompt: fmt.Sprint("more ", i)}, "ann")
			assert.NoError(t, err)
		})
	}
	for range 2 {
		w := b.worker()
		group.Go(func() { assert.NoError(t, w.ExecuteReady(t.Context())) })
	}
	group.Wait()
	b.work(parent.ID)
	assert.Equal(t, 1, most)
	s, err := b.c.Session(t.Context(), parent.Session)
	require.NoError(t, err)
	told, prompts := map[agent.RunID]bool{}, 0
	for _, r := range s.Runs {
		d, err := b.c.Run(t.Context(), r.RunID)
		require.NoError(t, err)
		if d.Status == wire.Stopped { // there was nothing left to tell
			assert.Contains(t, *d.Error, "another run of the session has done so")
			continue
		}
		require.Equal(t, wire.Completed, d.Status, lo.FromPtr(d.Error))
		var p struct {
			Prompt    string
			Callbacks []wire.Callback
		}
		require.NoError(t, json.Unmarshal(d.Parameters, &p))
		if strings.HasPrefix(p.Prompt, "more ") {
			prompts++
		}
		for _, c := range p.Callbacks {
			assert.False(t, told[c.RunID], "told twice")
			told[c.RunID] = true
		}
	}
	assert.Len(t, told, children)
	assert.Equal(t, resumes, prompts)
}

// A list of sessions shows the last run of each. Blueprints that hooks start have sessions, too; the runs that call hooks have none.
func TestListSessions(t *testing.T) {
	b := newBench(t)
	b.create(`{"name": "check", "type": "procedural", "command": {"argv": ["echo", "{\"action\": \"continue\"}"]}}`,
		`{"name": "clerk", "type": "autonomous", "hooks": {
			"on_run_start": {"type": "agent", "agent_name": "check", "on_error": "block"},
			"on_run_finish": {"type": "command", "argv": ["cat"], "on_error": "continue"}}}`)
	b.answers["clerk"] = func(string) string { return "ok" }
	first := b.submitWith(wire.RunRequest{AgentName: "clerk", Parameters: json.RawMessage(`{"prompt": "one"}`)})
	b.work(first.ID)
	second := b.submitWith(wire.RunRequest{
		AgentName: "clerk", Parameters: json.RawMessage(`{"prompt": "one"}`), ParentSessionID: first.Session,
	})
	b.work(second.ID)
	next := b.resume(first.Session, wire.ResumeRequest{Prompt: "two"})

	p := b.plain(b.serve(), wire.Viewer)
	list := func(query string) (out wire.SessionList) {
		status, text := p.send(http.MethodGet, "/sessions?"+query, "", nil)
		require.Equal(t, http.StatusOK, status, string(text))
		require.NoError(t, json.Unmarshal(text, &out))
		return out
	}
	ids := func(l wire.SessionList) []agent.SessionID {
		return lo.Map(l.Sessions, func(s wire.SessionSummary, _ int) agent.SessionID { return s.SessionID })
	}
	all := list("")
	require.Len(t, all.Sessions, 4, "two, and those of their hooks")
	of := list("agent_name=clerk")
	require.Equal(t, []agent.SessionID{first.Session, second.Session}, ids(of), "the newest run comes first")
	assert.Equal(t, []any{wire.Hooking, wire.Completed, first.Session, next.ID},
		[]any{of.Sessions[0].Status, of.Sessions[1].Status, of.Sessions[1].ParentSessionID, of.Sessions[0].LastRunID})
	assert.True(t, of.Sessions[0].CreatedAt.Equal(first.Created), "the session began with its first run")
	assert.Equal(t, []agent.SessionID{first.Session}, ids(list("agent_name=clerk&status=hooking")))
	assert.Equal(t, []agent.SessionID{second.Session}, ids(list("agent_name=clerk&parent_session_id="+string(first.Session))))
	page := list("agent_name=clerk&limit=1")
	require.Equal(t, []agent.SessionID{first.Session}, ids(page))
	rest := list("agent_name=clerk&before=" + page.Next)
	assert.Equal(t, []agent.SessionID{second.Session}, ids(rest))
	assert.Empty(t, rest.Next)

	later := b.resume(first.Session, wire.ResumeRequest{Prompt: "three"}) // it waits for the run before it
	third := b.submitWith(wire.RunRequest{AgentName: "clerk", Parameters: json.RawMessage(`{"prompt": "one"}`)})
	active := "agent_name=clerk&status=hooking,waiting,pending"
	require.Equal(t, []agent.SessionID{third.Session, first.Session}, ids(list(active)))
	assert.Equal(t, later.ID, list(active).Sessions[1].LastRunID)
	assert.Empty(t, ids(list("agent_name=clerk&status=waiting")))
	page = list(active + "&limit=1")
	require.Equal(t, []agent.SessionID{third.Session}, ids(page))
	rest = list(active + "&before=" + page.Next)
	assert.Equal(t, []agent.SessionID{first.Session}, ids(rest))
	assert.Empty(t, rest.Next)
	require.NoError(t, b.c.Stop(t.Context(), third.ID, "", "ann"))

	status, text := p.send(http.MethodGet, "/runs?status=hooking", "", nil)
	require.Equal(t, http.StatusOK, status)
	var runs wire.RunList
	require.NoError(t, json.Unmarshal(text, &runs))
	require.Len(t, runs.Runs, 2)
	assert.Equal(t, next.ID, runs.Runs[1].RunID)
}

// countingStore counts the lists of runs.
type countingStore struct {
	durable.Store

	lists int
}

func (s *countingStore) List(ctx context.Context, f durable.Filter) ([]durable.Run, error) {
	s.lists++
	return s.Store.List(ctx, f)
}

// However many sessions of several runs a page has, it is read with two queries.
func TestSessionsOfOnePage(t *testing.T) {
	store := &countingStore{Store: memory.New()}
	defer store.Close()
	c, err := coordinator.New(coordinator.Options{Store: store})
	require.NoError(t, err)
	_, err = c.CreateBlueprint(t.Context(), []byte(`{"name": "clerk", "type": "autonomous"}`), "ann")
	require.NoError(t, err)
	var want []time.Time
	for range 3 {
		first, err := c.Submit(t.Context(), wire.RunRequest{AgentName: "clerk", Parameters: json.RawMessage(`{"prompt": "one"}`)}, "ann")
		require.NoError(t, err)
		require.NoError(t, c.Stop(t.Context(), first.ID, "", "ann"))
		_, err = c.Resume(t.Context(), first.Session, wire.ResumeRequest{Prompt: "two"}, "ann")
		require.NoError(t, err)
		want = append([]time.Time{first.Created.UTC()}, want...)
	}
	store.lists = 0
	page, err := c.ListSessions(t.Context(), wire.SessionFilter{Limit: 10})
	require.NoError(t, err)
	assert.Equal(t, want, lo.Map(page.Sessions, func(s wire.SessionSummary, _ int) time.Time { return s.CreatedAt }))
	assert.Equal(t, 2, store.lists)
}

// A session that has started many runs with callbacks is still found, listed and resumed.
func TestSessionWithManyCallbacks(t *testing.T) {
	b := newBench(t)
	b.create(`{"name": "clerk", "type": "autonomous"}`, `{"name": "job", "type": "procedural", "command": {"argv": ["true"]}}`)
	b.answers["clerk"] = func(string) string { return "ok" }
	first := b.submitWith(wire.RunRequest{AgentName: "clerk", Parameters: json.RawMessage(`{"prompt": "one"}`)})
	b.work(first.ID)
	for range durable.DefaultLimit + 1 {
		b.submitWith(wire.RunRequest{AgentName: "job", ParentSessionID: first.Session, ExecutionMode: wire.AsyncCallback})
	}
	p := b.plain(b.serve(), wire.Viewer)
	status, text := p.send(http.MethodGet, "/sessions?agent_name=clerk", "", nil)
	require.Equal(t, http.StatusOK, status, string(text))
	assert.Contains(t, string(text), string(first.Session))
	b.resume(first.Session, wire.ResumeRequest{Prompt: "two"})
}
