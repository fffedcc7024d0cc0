package coordinator_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
)

// Lists show what came of runs and what hooks decided, and find them by it.
func TestListTotals(t *testing.T) {
	b := newBench(t, withFuncs(map[string]action.Body{"judge": func(_ context.Context, r *action.Request) (*action.Decision, error) {
		if strings.Contains(string(r.Parameters), "May") {
			return &action.Decision{Decision: hooks.Deny, Reason: "it is closed"}, nil
		}
		return &action.Decision{Decision: hooks.Allow}, nil
	}}))
	b.create(startHook(`{"type": "func", "func": "judge"}`))
	blocked := b.submit("job", `{"month": "May"}`)
	b.work(blocked)
	done := b.submit("job", `{"month": "June"}`)
	require.Equal(t, wire.Completed, b.work(done).Status)
	stored, err := b.store.Run(t.Context(), blocked)
	require.NoError(t, err)
	require.Len(t, stored.Decisions, 1)
	for query, want := range map[string][]agent.RunID{
		"": {done, blocked}, "decision=blocked": {blocked}, "decision=denied": {}, "q=JUNE": {done}, "q=is+closed": {blocked}, "q=other": {},
		"hook=" + url.QueryEscape(stored.Decisions[0].Hook): {blocked}, "hook=other": {}, "submitted_by=ann": {done, blocked}, "submitted_by=bob": {},
		"mine=true": {}, "top=true": {done, blocked}, "q=job&limit=1": {done}, "q=job&before=" + string(done): {blocked},
	} {
		var list wire.RunList
		b.ask(http.MethodGet, "/runs?"+query, "", &list)
		found := []agent.RunID{}
		for _, r := range list.Runs {
			found = append(found, r.RunID)
		}
		assert.Equal(t, want, found, query)
	}
	var list wire.RunList
	b.ask(http.MethodGet, "/runs?decision=blocked", "", &list)
	r := list.Runs[0]
	assert.Equal(t, map[durable.Decision]int64{durable.DecisionBlocked: 1}, r.Decisions)
	assert.Equal(t, "May", r.Summary)
	assert.Contains(t, r.Outcome, "it is closed")
	require.NotNil(t, r.DurationMS)
	assert.Equal(t, r.UpdatedAt, *r.EndedAt)
	var d wire.RunDetail
	b.ask(http.MethodGet, "/runs/"+string(blocked), "", &d)
	assert.Equal(t, []wire.RuleView{
		{Hook: stored.Decisions[0].Hook, Point: "RunStart", Type: "func", Mode: "enforce", Path: "hooks.on_run_start"},
	}, d.Rules)
}

// filterLog is a store that notes the filters of lists.
type filterLog struct {
	durable.Store

	filters []durable.Filter
}

func (s *filterLog) List(ctx context.Context, f durable.Filter) ([]durable.Run, error) {
	s.filters = append(s.filters, f)
	return s.Store.List(ctx, f)
}

// A list of active runs is in the order in which they were submitted, and reads no runs that wait for people.
func TestActiveRuns(t *testing.T) {
	log := &filterLog{}
	b := newBench(t, withTell(func(*action.Request) {}), func(o *coordinator.Options) {
		log.Store = o.Store
		o.Store = log
	})
	b.create(startHook(tellHook), `{"name": "plain", "type": "procedural", "command": {"argv": ["cat"]}}`)
	ids := []agent.RunID{b.submit("job", `{}`), b.submit("plain", `{}`), b.submit("job", `{}`)}
	list := func(before string) (found []agent.RunID, next string) {
		log.filters = nil
		page, err := b.c.ListRuns(t.Context(), wire.RunFilter{Status: []string{"pending", "hooking", "running"}, Before: before, Limit: 2})
		require.NoError(t, err)
		for _, f := range log.filters {
			assert.True(t, f.Phase != "" || !slices.Contains(f.Status, durable.StatusWaiting), "%+v", f)
		}
		return lo.Map(page.Runs, func(r wire.Run, _ int) agent.RunID { return r.RunID }), page.Next
	}
	found, next := list("")
	assert.Equal(t, []agent.RunID{ids[2], ids[1]}, found)
	found, next = list(next)
	assert.Equal(t, ids[:1], found)
	assert.Empty(t, next)

	log.filters = nil
	counts, err := b.c.Counts(t.Context(), wire.Token{})
	require.NoError(t, err)
	assert.Equal(t, wire.Counts{Pending: 1, Running: 2}, counts)
	for _, f := range log.filters { // newer runs that wait would fill the list
		assert.True(t, len(f.Status) == 1 || !slices.Contains(f.Status, durable.StatusWaiting), "%+v", f)
	}
}

// A stream has every run that changes, and continues after an event. Counts say what runs and waits.
func TestChangedRuns(t *testing.T) {
	b := newBench(t)
	b.create(jobWith(""))
	s := b.serve()
	viewer := b.plain(s, wire.Viewer)
	next := func(last string) (id string, run wire.Run) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/runs/stream", nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+viewer.token)
		r.Header.Set("Last-Event-ID", last)
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer response.Body.Close()
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			if text, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
				id = text
			}
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				require.NoError(t, json.Unmarshal([]byte(text), &run))
				return id, run
			}
		}
		require.Fail(t, "the stream has ended")
		return "", run
	}
	first := b.submit("job", `{}`)
	at, run := next("2000-01-01T00:00:00Z")
	assert.Equal(t, first, run.RunID)
	assert.Equal(t, wire.Pending, run.Status)
	stored, err := b.store.Run(t.Context(), first)
	require.NoError(t, err)
	assert.Equal(t, stored.Updated.UTC().Format(time.RFC3339Nano), at)
	var counts wire.Counts
	b.ask(http.MethodGet, "/runs/counts", "", &counts)
	assert.Equal(t, wire.Counts{Pending: 1}, counts)
	b.work(first)
	_, run = next(at)
	assert.Equal(t, wire.Completed, run.Status)
	status, _ := viewer.sendWith(map[string]string{"Last-Event-ID": "yesterday"}, http.MethodGet, "/runs/stream", nil)
	assert.Equal(t, http.StatusUnprocessableEntity, status)
}

// A search looks at a thousand runs, says so, and continues with older ones.
func TestSearchesAreBounded(t *testing.T) {
	b := newBench(t)
	b.create(jobWith(""))
	old := b.submitWith(wire.RunRequest{AgentName: "job", Labels: map[string]string{"team": "needle"}})
	for range 1000 {
		b.submit("job", `{}`)
	}
	f := wire.RunFilter{Query: "needle", Limit: 10}
	page, err := b.c.ListRuns(t.Context(), f)
	require.NoError(t, err)
	assert.Empty(t, page.Runs)
	assert.Equal(t, 1000, page.Searched)
	f.Before = page.Next
	page, err = b.c.ListRuns(t.Context(), f)
	require.NoError(t, err)
	require.Len(t, page.Runs, 1)
	assert.Equal(t, []any{old.ID, 1, ""}, []any{page.Runs[0].RunID, page.Searched, page.Next})
}
