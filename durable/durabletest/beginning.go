package durabletest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

var beginning = map[string]part{
	"a run is running and leased": func(t *testing.T, s durable.Store) {
		l := must(s.Begin(t.Context(), fullJob("r"), "one", hour))(t)
		assert.Equal(t, []any{agent.RunID("r"), "one", int64(1)}, []any{l.Run, l.Owner, l.Epoch}, "lease")

		r := getRun(t, s, "r")
		sameJob(t, fullJob("r"), r)
		assert.Equal(t, []any{durable.StatusRunning, "one", int64(1), 1}, []any{r.Status, r.Owner, r.Epoch, r.Attempts})
		assert.True(t, l.Expires.Equal(r.Expires), "the lease says %v, the run %v", l.Expires, r.Expires)
		assert.WithinDuration(t, r.Created.Add(hour), r.Expires, time.Minute)
		assert.False(t, r.Created.IsZero(), "created")
		assert.Equal(t, []any{int64(0), int64(0), time.Time{}, "", time.Time{}}, []any{r.Entries, r.Events, r.AnswerBy, r.CancelReason, r.Ready})
		assert.Equal(t, string(fullJob("r").Input), readData(t, s.Input, "r"))
	},
	"demands and NotBefore do not matter": func(t *testing.T, s durable.Store) {
		j := newJob("r")
		j.NotBefore, j.Demands = later(), map[string]string{"gpu": "none has it"}
		beginAs(t, s, j, "one", hour)
		requireStatus(t, s, durable.StatusRunning, "r")
	},
	"an ID is taken once": func(t *testing.T, s durable.Store) {
		beginRun(t, s, "r")
		require.ErrorIs(t, second(s.Begin(t.Context(), durable.Job{ID: "r", Name: "other"}, "two", hour)), durable.ErrExists)
		r := getRun(t, s, "r")
		assert.Equal(t, []any{"tester", "one", int64(1)}, []any{r.Name, r.Owner, r.Epoch}, "the first run is as it was")
	},
	"no worker can claim it": func(t *testing.T, s durable.Store) {
		beginRun(t, s, "r")
		assert.Empty(t, claimRuns(t, s, 10, testerKey()))
		assert.Empty(t, readOwed(t, s, hour, 10))
	},
}

// repeating tests idempotency keys.
var repeating = map[string]part{
	"submitted twice is the first run": func(t *testing.T, s durable.Store) {
		first := submitJobs(t, s, keyedJob("r", "k"))[0]
		for name, j := range map[string]durable.Job{
			"the same job": keyedJob("r", "k"),
			"another ID":   keyedJob("other", "k"),
			"no ID":        keyedJob("", "k"),
			"another name": {ID: "x", Name: "other", IdempotencyKey: "k", Input: []byte("other")},
			"another kind": {Kind: durable.KindCommand, IdempotencyKey: "k", NotBefore: later()},
		} {
			assert.Equal(t, first, submitJobs(t, s, j)[0], name)
		}
		assert.Equal(t, "input of r", readData(t, s.Input, "r"))
		assert.Equal(t, []agent.RunID{"r"}, listIDs(t, s, durable.Filter{}))
	},
	"twice in one call": func(t *testing.T, s durable.Store) {
		runs := submitJobs(t, s, newJob("a"), keyedJob("b", "k"), newJob("c"), keyedJob("d", "k"), keyedJob("e", "l"))
		assert.Equal(t, []agent.RunID{"a", "b", "c", "b", "e"}, runIDs(runs))
		assert.ElementsMatch(t, []agent.RunID{"a", "b", "c", "e"}, listIDs(t, s, durable.Filter{}))
		assert.Equal(t, []agent.RunID{"f", "e", "b"}, runIDs(submitJobs(t, s, newJob("f"), keyedJob("g", "l"), keyedJob("h", "k"))))
	},
	"no key means that every job is new": func(t *testing.T, s durable.Store) {
		submitJobs(t, s, keyedJob("a", ""), keyedJob("b", ""))
		beginAs(t, s, keyedJob("c", ""), "one", hour)
		assert.Len(t, listIDs(t, s, durable.Filter{}), 3)
	},
	"in every status": func(t *testing.T, s durable.Store) {
		l := beginAs(t, s, keyedJob("r", "k"), "one", hour)
		check := func(want durable.Status) {
			r := submitJobs(t, s, keyedJob("other", "k"))[0]
			assert.Equal(t, []any{agent.RunID("r"), want}, []any{r.ID, r.Status})
			assert.Equal(t, getRun(t, s, "r"), r)
		}
		check(durable.StatusRunning)
		writeUpdate(t, s, l, waitUpdate(1, newWait("c")))
		check(durable.StatusWaiting)
		endRun(t, s, l)
		check(durable.StatusCompleted)
		require.ErrorIs(t, second(s.Begin(t.Context(), keyedJob("other", "k"), "one", hour)), durable.ErrExists)
	},
	"begin": func(t *testing.T, s durable.Store) {
		submitJobs(t, s, keyedJob("r", "k"))
		require.ErrorIs(t, second(s.Begin(t.Context(), keyedJob("other", "k"), "one", hour)), durable.ErrExists)
		assert.Equal(t, []agent.RunID{"r"}, listIDs(t, s, durable.Filter{}))
		requireStatus(t, s, durable.StatusReady, "r")
	},
	"a commit submits a known key no more": func(t *testing.T, s durable.Store) {
		submitJobs(t, s, keyedJob("first", "k"))
		l := beginRun(t, s, "r")
		writeCommit(t, s, l, durable.Commit{
			Entries: newEntries(1, 1), Jobs: []durable.Job{keyedJob("a", "k"), keyedJob("b", "l"), keyedJob("c", "l"), keyedJob("first", "k")},
		})
		assert.ElementsMatch(t, []agent.RunID{"first", "r", "b"}, listIDs(t, s, durable.Filter{}))
		assert.Len(t, readJournal(t, s, "r"), 1)
	},
	"a deleted run frees its key": func(t *testing.T, s durable.Store) {
		submitJobs(t, s, keyedJob("r", "k"))
		require.NoError(t, s.Delete(t.Context(), "r"))
		assert.Equal(t, agent.RunID("other"), submitJobs(t, s, keyedJob("other", "k"))[0].ID)
	},
}

// keyedJob returns a job with an idempotency key.
func keyedJob(id agent.RunID, key string) durable.Job {
	j := newJob(id)
	j.IdempotencyKey = key
	return j
}

var acquiring = map[string]part{
	"a released run is ready":                        play(begin, release, isReady, claim),
	"a held run stays held":                          play(begin, isHeld, writeEntry),
	"an expired lease is free":                       play(begin, expire, acquire),
	"a released run is free":                         play(begin, release, acquire),
	"take over takes a held run":                     play(begin, takeOver, writeEntry),
	"an owner may acquire what it holds":             play(begin, reacquire, writeEntry),
	"a waiting run keeps its status":                 play(suspendOn(newWait("c")), acquire, isWaiting, askWaits(newWait("d")), writeEntry),
	"a ready run becomes running":                    play(submit, acquire, isIdle, writeEntry),
	"a pending run becomes running":                  play(submitLater, acquire, isIdle),
	"attempts count executions":                      play(submit, claim, takeOver, renew, release, claim, takeOver, renew, release, claim, takeOver),
	"each lease is an epoch":                         play(begin, takeOver, takeOver, takeOver, takeOver, takeOver, release),
	"an expired lease that no process took is valid": play(begin, expire, writeEntry, renew, isHeld, release),
	"an ended run cannot be acquired": func(t *testing.T, s durable.Store) {
		endRun(t, s, beginRun(t, s, "r"))
		for _, take := range []durable.Take{durable.TakeFree, durable.TakeOver} {
			require.ErrorIs(t, second(s.Acquire(t.Context(), "r", "two", hour, take)), durable.ErrEnded)
		}
	},
	"renew counts from now": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		longer := must(s.Renew(t.Context(), l, 3*hour))(t)
		assert.WithinDuration(t, l.Expires.Add(2*hour), longer.Expires, time.Minute)
		assert.True(t, longer.Expires.Equal(getRun(t, s, "r").Expires))
		shorter := must(s.Renew(t.Context(), longer, gone))(t)
		assert.True(t, shorter.Expires.Before(l.Expires))
		acquireRun(t, s, "r", "two", durable.TakeFree)
	},
	"a future epoch is no lease": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		l.Epoch++
		stale(t, s, l)
	},
	"another owner with the same epoch": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		other := l
		for _, other.Owner = range []string{"two", ""} {
			stale(t, s, other)
		}
		endRun(t, s, l)
		other.Owner = "two"
		stale(t, s, other)
	},
}

// stale checks that a lease is rejected everywhere, and that trying to use it changes nothing.
func stale(t *testing.T, s durable.Store, l durable.Lease) {
	t.Helper()
	next := newEntry(getRun(t, s, l.Run).Entries + 1)
	changesNothing(t, s, func() {
		for what, err := range map[string]error{
			"commit":  add(t.Context(), s, l, durable.Update{}, next),
			"nothing": add(t.Context(), s, l, durable.Update{}),
			"update":  add(t.Context(), s, l, waitUpdate(9, newWait("stale"))),
			"end":     add(t.Context(), s, l, endUpdate()),
			"events and jobs": s.Commit(t.Context(), l, durable.Commit{
				Events: []durable.Event{newEvent("stale")}, Jobs: []durable.Job{newJob("stale")}, HandledSignals: 1000,
			}),
			"renew":   second(s.Renew(t.Context(), l, 5*hour)),
			"release": s.Release(t.Context(), l, 0),
		} {
			require.ErrorIs(t, err, durable.ErrStale, "%s with epoch %d", what, l.Epoch)
		}
	})
}
