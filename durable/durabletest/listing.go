package durabletest

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

var listing = map[string]part{
	"newest first": func(t *testing.T, s durable.Store) {
		want := []agent.RunID{}
		// Neither the names nor the later changes are in the order of creation.
		for _, id := range []agent.RunID{"m", "z", "a", "k", "b"} {
			beginRun(t, s, id)
			want = append(want, id)
		}
		writeUpdate(t, s, acquireRun(t, s, "m", "one", durable.TakeOver), durable.Update{}, newEntry(1))
		slices.Reverse(want)
		assert.Equal(t, want, listIDs(t, s, durable.Filter{}))
	},
	"a listed run equals the run": func(t *testing.T, s durable.Store) {
		q := newWait("c")
		q.Deadline = testTime()
		writeUpdate(t, s, beginAs(t, s, fullJob("r"), "one", hour), waitUpdate(2, q), newEntry(1))
		sendSignal(t, s, "r", durable.SignalCancel, "enough")
		assert.Equal(t, []durable.Run{getRun(t, s, "r")}, must(s.List(t.Context(), durable.Filter{}))(t))
	},
	"filters": func(t *testing.T, s durable.Store) {
		begin := func(j durable.Job, u durable.Update) {
			writeUpdate(t, s, beginAs(t, s, j, "one", hour), u)
		}
		red, blue := map[string]string{"team": "red", "env": "prod"}, map[string]string{"team": "blue"}
		begin(durable.Job{ID: "1", Name: "a", Session: "s", Labels: red}, durable.Update{})
		begin(durable.Job{ID: "2", Name: "b", Session: "s", Parent: "1", Labels: blue}, waitUpdate(1, newWait("c")))
		begin(durable.Job{ID: "3", Name: "a", Session: "u", Parent: "1", Labels: red, Kind: durable.KindCommand}, endUpdate())
		begin(durable.Job{ID: "4", Name: "b", Session: "u", Parent: "2"}, durable.Update{Status: durable.StatusFailed, Blocked: true})
		begin(durable.Job{ID: "5", Labels: map[string]string{"team": ""}}, durable.Update{Status: durable.StatusFailed})
		submitJobs(t, s, durable.Job{ID: "6", Name: "c", Phase: "first"}, durable.Job{ID: "7", Name: "c", NotBefore: later(), Phase: "second"})
		submitJobs(t, s,
			durable.Job{ID: "8", Session: "v", Name: "t", Traits: durable.Traits{Turn: durable.TurnFirst, ParentSession: "u", HasHooks: true}},
			durable.Job{ID: "9", Session: "v", Name: "t", After: "8", Traits: durable.Traits{
				Turn: durable.TurnLater, ParentSession: "u", RequestKey: "k", RetryOf: "8",
			}},
		)
		decided := newEvent("e")
		decided.Decision, decided.Hook = durable.DecisionDenied, "payee"
		decide := func(j durable.Job) {
			writeCommit(t, s, beginAs(t, s, j, "one", hour), durable.Commit{Events: []durable.Event{decided}})
		}
		decide(durable.Job{ID: "10", By: "ann", Parent: "1", Name: "d"})
		decided.Decision = durable.DecisionAsked
		decide(durable.Job{ID: "11", By: "bob", Name: "d"})
		label := func(name, value string) durable.Label { return durable.Label{Name: name, Value: value} }
		for _, c := range []struct {
			filter durable.Filter
			want   []agent.RunID
		}{
			{durable.Filter{Session: "v", Turn: durable.TurnFirst}, []agent.RunID{"8"}},
			{durable.Filter{Session: "v", After: "8"}, []agent.RunID{"9"}},
			{durable.Filter{Sessions: []agent.SessionID{"u", "v", "w"}}, []agent.RunID{"9", "8", "4", "3"}},
			{durable.Filter{Sessions: []agent.SessionID{"u", "v"}, Turn: durable.TurnFirst, Limit: 2}, []agent.RunID{"8"}},
			{durable.Filter{Sessions: []agent.SessionID{"u", "v"}, Session: "u", Before: "4"}, []agent.RunID{"3"}},
			{durable.Filter{Session: "v", RequestKey: "k"}, []agent.RunID{"9"}},
			{durable.Filter{Session: "u", RequestKey: "k"}, []agent.RunID{}},
			{durable.Filter{RetryOf: "8"}, []agent.RunID{"9"}},
			{durable.Filter{RetryOf: "9"}, []agent.RunID{}},
			{durable.Filter{Turn: durable.TurnLater}, []agent.RunID{"9"}},
			{durable.Filter{Turn: durable.TurnLater, Status: []durable.Status{durable.StatusReady}}, []agent.RunID{}},
			{durable.Filter{HasTurn: true}, []agent.RunID{"9", "8"}},
			{durable.Filter{HasTurn: true, Status: []durable.Status{durable.StatusReady}}, []agent.RunID{"8"}},
			{durable.Filter{LastTurn: true}, []agent.RunID{"9"}},
			{durable.Filter{LastTurn: true, Before: "9"}, []agent.RunID{}},
			{durable.Filter{LastTurn: true, Turn: durable.TurnFirst}, []agent.RunID{}},
			{durable.Filter{ParentSession: "u"}, []agent.RunID{"9", "8"}},
			{durable.Filter{ParentSession: "u", Before: "9"}, []agent.RunID{"8"}},
			{durable.Filter{HasHooks: true}, []agent.RunID{"8"}},
			{durable.Filter{HasHooks: true, Status: []durable.Status{durable.StatusWaiting}}, []agent.RunID{}},
			{durable.Filter{HasHooks: true, Turn: durable.TurnFirst, ParentSession: "u", Name: "t"}, []agent.RunID{"8"}},
			{durable.Filter{}, []agent.RunID{"11", "10", "9", "8", "7", "6", "5", "4", "3", "2", "1"}},
			{durable.Filter{Status: []durable.Status{durable.StatusRunning}}, []agent.RunID{"11", "10", "1"}},
			{durable.Filter{Status: []durable.Status{durable.StatusWaiting, durable.StatusCompleted}}, []agent.RunID{"9", "3", "2"}},
			{durable.Filter{Status: []durable.Status{durable.StatusReady}}, []agent.RunID{"8", "6"}},
			{durable.Filter{Status: []durable.Status{durable.StatusPending}}, []agent.RunID{"7"}},
			{durable.Filter{Status: []durable.Status{durable.StatusCancelled}}, []agent.RunID{}},
			{durable.Filter{Status: durable.Statuses}, []agent.RunID{"11", "10", "9", "8", "7", "6", "5", "4", "3", "2", "1"}},
			{durable.Filter{Kind: durable.KindCommand}, []agent.RunID{"3"}},
			{durable.Filter{Kind: durable.KindAgent, Name: "a"}, []agent.RunID{"1"}},
			{durable.Filter{Name: "a"}, []agent.RunID{"3", "1"}},
			{durable.Filter{Name: "c", Status: []durable.Status{durable.StatusPending}}, []agent.RunID{"7"}},
			{durable.Filter{Phase: "first"}, []agent.RunID{"6"}},
			{durable.Filter{Phase: "second", Name: "c", Status: []durable.Status{durable.StatusPending}}, []agent.RunID{"7"}},
			{durable.Filter{Phase: "second", Status: []durable.Status{durable.StatusReady}}, []agent.RunID{}},
			{durable.Filter{Phase: "first", Before: "7", Limit: 1}, []agent.RunID{"6"}},
			{durable.Filter{Phase: "first", Session: "u"}, []agent.RunID{}},
			{durable.Filter{Phase: "agent"}, []agent.RunID{}},
			{durable.Filter{Session: "u"}, []agent.RunID{"4", "3"}},
			{durable.Filter{Parent: "1"}, []agent.RunID{"10", "3", "2"}},
			{durable.Filter{Parent: "1", Name: "b"}, []agent.RunID{"2"}},
			{durable.Filter{Parent: "1", Name: "b", Session: "u"}, []agent.RunID{}},
			{durable.Filter{Name: "a", Status: []durable.Status{durable.StatusCompleted}, Session: "u", Parent: "1"}, []agent.RunID{"3"}},
			{durable.Filter{Label: label("team", "red")}, []agent.RunID{"3", "1"}},
			{durable.Filter{Label: label("team", "blue")}, []agent.RunID{"2"}},
			{durable.Filter{Label: label("team", "")}, []agent.RunID{"5"}},
			{durable.Filter{Label: label("env", "prod")}, []agent.RunID{"3", "1"}},
			{durable.Filter{Label: label("env", "red")}, []agent.RunID{}},
			{durable.Filter{Label: label("team", "red"), Status: []durable.Status{durable.StatusRunning}}, []agent.RunID{"1"}},
			{durable.Filter{Label: label("team", "red"), Before: "3"}, []agent.RunID{"1"}},
			{durable.Filter{Label: label("team", "red"), Limit: 1}, []agent.RunID{"3"}},
			{durable.Filter{Label: label("", "red")}, []agent.RunID{"11", "10", "9", "8", "7", "6", "5", "4", "3", "2", "1"}},
			{durable.Filter{Blocked: true}, []agent.RunID{"4"}},
			{durable.Filter{Decision: durable.DecisionDenied}, []agent.RunID{"10"}},
			{durable.Filter{Hook: "payee"}, []agent.RunID{"11", "10"}},
			{durable.Filter{Hook: "payee", Before: "11"}, []agent.RunID{"10"}},
			{durable.Filter{Hook: "payee", Decision: durable.DecisionAsked, Status: []durable.Status{durable.StatusRunning}}, []agent.RunID{"11"}},
			{durable.Filter{Hook: "other"}, []agent.RunID{}},
			{durable.Filter{Hook: "payee\x00", Decision: "\xff"}, []agent.RunID{}},
			{durable.Filter{By: "ann"}, []agent.RunID{"10"}},
			{durable.Filter{By: "bob", Status: []durable.Status{durable.StatusWaiting}}, []agent.RunID{}},
			{durable.Filter{By: "bob", Decision: durable.DecisionAsked, Name: "d"}, []agent.RunID{"11"}},
			{durable.Filter{Top: true, Limit: 3}, []agent.RunID{"11", "9", "8"}},
			{durable.Filter{Top: true, By: "ann"}, []agent.RunID{}},
			{durable.Filter{Blocked: true, Name: "a"}, []agent.RunID{}},
			{durable.Filter{Before: "4"}, []agent.RunID{"3", "2", "1"}},
			{durable.Filter{Before: "4", Name: "a"}, []agent.RunID{"3", "1"}},
			{durable.Filter{Before: "3", Name: "b"}, []agent.RunID{"2"}},
			{durable.Filter{Before: "4", Limit: 2}, []agent.RunID{"3", "2"}},
			{durable.Filter{Before: "1"}, []agent.RunID{}},
			{durable.Filter{Limit: 1}, []agent.RunID{"11"}},
		} {
			assert.Equal(t, c.want, listIDs(t, s, c.filter), "%+v", c.filter)
		}
	},
	"since and until": func(t *testing.T, s durable.Store) {
		var at []time.Time
		for _, id := range []agent.RunID{"a", "b", "c"} {
			time.Sleep(2 * time.Millisecond) // the runs must not have the same time
			at = append(at, submitJobs(t, s, newJob(id))[0].Created)
		}
		for _, c := range []struct {
			filter durable.Filter
			want   []agent.RunID
		}{
			{durable.Filter{Since: at[1]}, []agent.RunID{"c", "b"}},
			{durable.Filter{Until: at[1]}, []agent.RunID{"a"}},
			{durable.Filter{Since: at[1], Until: at[2]}, []agent.RunID{"b"}},
			{durable.Filter{Since: at[1], Until: at[1]}, []agent.RunID{}},
			{durable.Filter{Since: longAgo(), Until: later()}, []agent.RunID{"c", "b", "a"}},
			{durable.Filter{Since: later()}, []agent.RunID{}},
			{durable.Filter{Until: longAgo()}, []agent.RunID{}},
			{durable.Filter{Since: at[0], Before: "c", Limit: 1}, []agent.RunID{"b"}},
			{durable.Filter{Since: at[1].Add(time.Microsecond), Name: "tester"}, []agent.RunID{"c"}},
		} {
			assert.Equal(t, c.want, listIDs(t, s, c.filter), "%+v", c.filter)
		}
	},
	"summary, outcome, usage and decisions": func(t *testing.T, s durable.Store) {
		input := []byte(`{"messages":[{"role":"user","text":"ignored"},{"role":"user","text":"Pay\n the  rent\u0000"}]}`)
		l := beginAs(t, s, durable.Job{ID: "r", Name: "a", Input: input}, "one", hour)
		assert.Equal(t, "Pay the rent", getRun(t, s, "r").Summary)
		decide := func(d durable.Decision, hook string) durable.Event {
			e := newEvent("e")
			e.Decision, e.Hook = d, hook
			return e
		}
		c := durable.Commit{
			Entries: newEntries(1, 1), Update: durable.Update{Status: durable.StatusRunning, Steps: 1},
			Events: []durable.Event{decide(durable.DecisionDenied, "payee"), newEvent("none"), decide(durable.DecisionDenied, "payee\x00")},
		}
		writeCommit(t, s, l, c)
		assert.Equal(t, []durable.DecisionCount{{Decision: durable.DecisionDenied, Hook: "payee", Count: 2}}, getRun(t, s, "r").Decisions)
		writeCommit(t, s, l, durable.Commit{Entries: newEntries(2, 2), Events: []durable.Event{decide(durable.DecisionAsked, "limit")}})
		result := must(json.Marshal(durable.Result{Text: "Paid.\nAll of it."}))(t)
		used := durable.Usage{InputTokens: 7, OutputTokens: 2, CostUSD: new(0.5)}
		end := durable.Commit{Update: durable.Update{Status: durable.StatusCompleted, Steps: 2, Usage: used, Result: result}}
		writeCommit(t, s, l, end)
		writeCommit(t, s, l, end) // a repetition counts nothing
		r := getRun(t, s, "r")
		assert.Equal(t, []string{"Pay the rent", "Paid. All of it."}, []string{r.Summary, r.Outcome})
		assert.Equal(t, used, r.Usage)
		assert.Equal(t, []durable.DecisionCount{
			{Decision: durable.DecisionDenied, Hook: "payee", Count: 2}, {Decision: durable.DecisionAsked, Hook: "limit", Count: 1},
		}, r.Decisions)
		assert.Equal(t, []durable.Run{r}, must(s.List(t.Context(), durable.Filter{}))(t))
		assert.Equal(t, "input of x", submitJobs(t, s, newJob("x"))[0].Summary)
	},
	"changed since": func(t *testing.T, s durable.Store) {
		ended := beginRun(t, s, "ended")
		running := beginRun(t, s, "running")
		submitJobs(t, s, newJob("ready"))
		submitJobs(t, s, newJob("paused"))
		parked := beginRun(t, s, "waiting")
		endRun(t, s, beginRun(t, s, "old"))
		time.Sleep(2 * time.Millisecond) // the changes below must have another time
		endRun(t, s, ended)
		at := getRun(t, s, "ended").Updated
		sendSignal(t, s, "paused", durable.SignalPause, "")
		writeUpdate(t, s, parked, waitUpdate(1, newWait("c")))
		releaseRun(t, s, parked)
		writeUpdate(t, s, running, durable.Update{}, newEntry(1))
		isEnded := []durable.Status{durable.StatusCompleted, durable.StatusFailed}
		for _, c := range []struct {
			filter durable.Filter
			want   []agent.RunID
		}{
			{durable.Filter{ChangedSince: at}, []agent.RunID{"waiting", "paused", "running", "ended"}},
			{durable.Filter{ChangedSince: at, Status: []durable.Status{durable.StatusWaiting}, Before: "paused"}, []agent.RunID{}},
			{durable.Filter{ChangedSince: at, Status: isEnded}, []agent.RunID{"ended"}},
			{durable.Filter{ChangedSince: at, Status: []durable.Status{durable.StatusReady, durable.StatusRunning}}, []agent.RunID{"running"}},
			{durable.Filter{ChangedSince: longAgo(), Status: isEnded, Before: "old"}, []agent.RunID{"ended"}},
			{durable.Filter{ChangedSince: later(), Status: isEnded}, []agent.RunID{}},
		} {
			assert.Equal(t, c.want, listIDs(t, s, c.filter), "%+v", c.filter)
		}
	},
	"a page behind a run that is gone": func(t *testing.T, s durable.Store) {
		releaseRun(t, s, beginRun(t, s, "r"))
		require.NoError(t, s.Delete(t.Context(), "r"))
		require.ErrorIs(t, second(s.List(t.Context(), durable.Filter{Before: "r"})), durable.ErrNotFound)
	},
	"many runs, page by page": func(t *testing.T, s durable.Store) {
		const n = 1200
		submitted := atOnce(4, func(w int) error {
			var jobs []durable.Job
			for i := w; i < n; i += 4 {
				jobs = append(jobs, durable.Job{ID: agent.RunID(strconv.Itoa(i)), Name: strconv.Itoa(i % 2)})
			}
			return second(s.Submit(t.Context(), jobs...))
		})
		require.NoError(t, errors.Join(submitted...))
		assert.Len(t, listIDs(t, s, durable.Filter{}), durable.DefaultLimit, "zero is the default limit")

		seen := map[agent.RunID]bool{}
		for f := (durable.Filter{Name: "1", Limit: 150}); ; {
			page := listIDs(t, s, f)
			if len(page) == 0 {
				break
			}
			for _, id := range page {
				require.False(t, seen[id], "run %q is on two pages", id)
				seen[id] = true
			}
			f.Before = page[len(page)-1]
			// A run that is added while a reader pages is listed before the pages read so far.
			beginAs(t, s, durable.Job{ID: "new " + f.Before, Name: "1"}, "one", hour)
		}
		assert.Len(t, seen, n/2)
		assert.Len(t, listIDs(t, s, durable.Filter{Limit: 2 * n}), n+4)
	},
}

func listIDs(t *testing.T, s durable.Store, f durable.Filter) []agent.RunID {
	t.Helper()
	runs := must(s.List(t.Context(), f))(t)
	assert.Equal(t, len(runs), must(s.Count(t.Context(), f))(t), "count %+v", f)
	return runIDs(runs)
}
