package durabletest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

var ending = map[string]part{
	"delete removes everything": func(t *testing.T, s durable.Store) {
		q := newWait("c")
		q.TokenHash = [32]byte{3}
		l := beginAs(t, s, fullJob("r"), "one", hour)
		sendSignal(t, s, "r", durable.SignalContext, "text")
		writeCommit(t, s, l, durable.Commit{Entries: newEntries(1, 9), Events: []durable.Event{newEvent("e")}, Update: waitUpdate(1, q)})
		other := beginRun(t, s, "other")
		writeUpdate(t, s, other, waitUpdate(1, newWait("c")), newEntry(1))
		releaseRun(t, s, l)
		require.NoError(t, s.Delete(t.Context(), "r"))
		require.ErrorIs(t, second(s.WaitByToken(t.Context(), q.TokenHash)), durable.ErrNotFound)
		require.ErrorIs(t, s.Delete(t.Context(), "r"), durable.ErrNotFound)
		assert.Len(t, readJournal(t, s, "other"), 1)
		assert.Len(t, readWaits(t, s, "other"), 1)
		isForgotten(t, s, "r")
	},
	"delete refuses a held run": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		writeUpdate(t, s, l, durable.Update{}, newEntry(1))
		err := s.Delete(t.Context(), "r")
		var held *durable.HeldError
		require.ErrorAs(t, err, &held)
		assert.Equal(t, []any{agent.RunID("r"), "one"}, []any{held.Run, held.Owner})
		assert.True(t, l.Expires.Equal(held.Expires))
		assert.Len(t, readJournal(t, s, "r"), 1)

		require.NoError(t, second(s.Renew(t.Context(), l, gone)))
		require.NoError(t, s.Delete(t.Context(), "r"), "an expired lease holds nothing")
	},
	"delete of an ended run": func(t *testing.T, s durable.Store) {
		writeUpdate(t, s, beginRun(t, s, "r"), endUpdate(), newEntry(1))
		require.NoError(t, s.Delete(t.Context(), "r"))
	},
	"delete of runs that no process holds": func(t *testing.T, s durable.Store) {
		submitJobs(t, s, newJob("ready"), newLaterJob("pending"))
		suspendRun(t, s, "waiting", newWait("c"))
		for _, id := range []agent.RunID{"ready", "pending", "waiting"} {
			require.NoError(t, s.Delete(t.Context(), id), id)
		}
		assert.Empty(t, listIDs(t, s, durable.Filter{}))
		assert.Empty(t, claimRuns(t, s, 10, testerKey()))
		assert.Empty(t, readOwed(t, s, hour, 10))
	},
	"prune deletes runs that ended before": func(t *testing.T, s durable.Store) {
		for _, id := range []agent.RunID{"a", "b"} {
			l := beginAs(t, s, fullJob(id), "one", hour)
			sendSignal(t, s, id, durable.SignalContext, "text")
			u := endUpdate()
			u.Result = []byte("result")
			writeCommit(t, s, l, durable.Commit{Entries: newEntries(1, 3), Events: []durable.Event{newEvent("e")}, Update: u})
		}
		beginRun(t, s, "running")
		beginAs(t, s, newJob("expired"), "one", gone)
		suspendRun(t, s, "waiting", newWait("c"))
		submitJobs(t, s, newJob("ready"), newLaterJob("pending"))
		last := getRun(t, s, "b").Updated

		assert.Zero(t, must(s.Prune(t.Context(), last.Add(-hour)))(t))
		assert.Equal(t, 2, must(s.Prune(t.Context(), last.Add(hour)))(t))
		assert.ElementsMatch(t, []agent.RunID{"running", "expired", "waiting", "ready", "pending"}, listIDs(t, s, durable.Filter{}))
		require.ErrorIs(t, second(s.Entries(t.Context(), "a", 0)), durable.ErrNotFound)
		require.ErrorIs(t, second(s.Events(t.Context(), "a", 0, 1)), durable.ErrNotFound)
		isForgotten(t, s, "a")
	},
}

// isForgotten checks that nothing is left of the only job of fullJob: its ID and key are free again.
func isForgotten(t *testing.T, s durable.Store, id agent.RunID) {
	t.Helper()
	require.ErrorIs(t, second(s.Run(t.Context(), id)), durable.ErrNotFound)
	labelled := durable.Filter{Label: durable.Label{Name: "team", Value: "red"}}
	assert.Empty(t, listIDs(t, s, labelled))
	l := beginAs(t, s, durable.Job{ID: id}, "one", hour)
	assert.Empty(t, readJournal(t, s, id))
	assert.Empty(t, eventNames(t, s, id))
	assert.Empty(t, readSignals(t, s, "one")[id])
	assert.Empty(t, readWaits(t, s, id))
	assert.Empty(t, readData(t, s.Input, id)+readData(t, s.SubmittedInput, id)+readData(t, s.Result, id))
	r := getRun(t, s, id)
	assert.Equal(t, []int{0, 0, 1}, []int{len(r.Labels), len(r.Demands), int(l.Epoch)})
	assert.Empty(t, listIDs(t, s, labelled))
	assert.Equal(t, agent.RunID("again"), submitJobs(t, s, keyedJob("again", fullJob(id).IdempotencyKey))[0].ID)
}

var switching = map[string]part{
	"is off at first": func(t *testing.T, s durable.Store) {
		assert.Equal(t, durable.Switch{}, must(s.DenyTools(t.Context()))(t))
	},
	"is what it was set to": func(t *testing.T, s durable.Store) {
		for _, want := range []durable.Switch{
			{On: true, Reason: "it's 🔥", By: "ops", Since: testTime()},
			{On: true, Reason: "still", Since: testTime().Add(hour)},
			{On: false, Reason: "all clear", By: "ops", Since: testTime()},
			{On: true},
			{},
		} {
			require.NoError(t, s.SetDenyTools(t.Context(), want))
			got := must(s.DenyTools(t.Context()))(t)
			assert.True(t, want.Since.Equal(got.Since), "since %v, want %v", got.Since, want.Since)
			assert.Equal(t, want.Since.IsZero(), got.Since.IsZero())
			got.Since, want.Since = time.Time{}, time.Time{}
			assert.Equal(t, want, got)
		}
	},
}
