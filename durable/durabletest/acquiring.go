package durabletest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

var acquiring = map[string]part{
	"a released run is ready": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		releaseRun(t, s, l)
		requireStatus(t, s, durable.StatusReady, "r")
		assert.Equal(t, []agent.RunID{"r"}, runIDs(claimRuns(t, s, 10, testerKey())))
		stale(t, s, l)
	},
	"a held run stays held": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		_, err := s.Acquire(t.Context(), "r", "two", hour, durable.TakeFree)
		var held *durable.HeldError
		require.ErrorAs(t, err, &held)
		assert.Equal(t, []any{agent.RunID("r"), "one"}, []any{held.Run, held.Owner})
		assert.True(t, l.Expires.Equal(held.Expires), "held until %v, want %v", held.Expires, l.Expires)
		assert.Equal(t, int64(1), getRun(t, s, "r").Epoch)
		writeUpdate(t, s, l, durable.Update{}, newEntry(1))
	},
	"an expired lease is free": func(t *testing.T, s durable.Store) {
		old := beginAs(t, s, newJob("r"), "one", gone)
		l := acquireRun(t, s, "r", "two", durable.TakeFree)
		assert.Equal(t, []any{agent.RunID("r"), "two", int64(2)}, []any{l.Run, l.Owner, l.Epoch})
		stale(t, s, old)
	},
	"a released run is free": func(t *testing.T, s durable.Store) {
		old := beginRun(t, s, "r")
		releaseRun(t, s, old)
		r := getRun(t, s, "r")
		assert.Empty(t, r.Owner)
		assert.Equal(t, int64(1), r.Epoch)
		l := acquireRun(t, s, "r", "two", durable.TakeFree)
		assert.Equal(t, int64(2), l.Epoch)
		stale(t, s, old)
	},
	"take over takes a held run": func(t *testing.T, s durable.Store) {
		old := beginRun(t, s, "r")
		l := acquireRun(t, s, "r", "two", durable.TakeOver)
		assert.Equal(t, []any{"two", int64(2)}, []any{l.Owner, l.Epoch})
		r := getRun(t, s, "r")
		assert.Equal(t, []any{"two", int64(2)}, []any{r.Owner, r.Epoch})
		assert.True(t, l.Expires.Equal(r.Expires))
		stale(t, s, old)
		writeUpdate(t, s, l, durable.Update{}, newEntry(1))
	},
	"an owner may acquire what it holds": func(t *testing.T, s durable.Store) {
		old := beginRun(t, s, "r")
		l := acquireRun(t, s, "r", "one", durable.TakeFree)
		assert.Equal(t, int64(2), l.Epoch)
		stale(t, s, old)
		writeUpdate(t, s, l, durable.Update{}, newEntry(1))
	},
	"a waiting run keeps its status": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "r", newWait("c"))
		l := acquireRun(t, s, "r", "two", durable.TakeFree)
		r := getRun(t, s, "r")
		assert.Equal(t, []any{durable.StatusWaiting, "two", int64(2), 1}, []any{r.Status, r.Owner, r.Epoch, r.Attempts})
		writeUpdate(t, s, l, durable.Update{Status: durable.StatusRunning, Steps: 1}, newEntry(1))
	},
	"a ready run becomes running": func(t *testing.T, s durable.Store) {
		submitJobs(t, s, newJob("r"))
		l := acquireRun(t, s, "r", "one", durable.TakeFree)
		r := getRun(t, s, "r")
		assert.Equal(t, []any{durable.StatusRunning, "one", int64(1), 1}, []any{r.Status, r.Owner, r.Epoch, r.Attempts})
		assert.Equal(t, l.Epoch, r.Epoch)
		assert.True(t, l.Expires.Equal(r.Expires))
		assert.True(t, r.Ready.IsZero(), "ready")
		assert.Empty(t, claimRuns(t, s, 10, testerKey()))
		writeUpdate(t, s, l, durable.Update{}, newEntry(1))
	},
	"a pending run becomes running": func(t *testing.T, s durable.Store) {
		j := newJob("r")
		j.NotBefore = later()
		submitJobs(t, s, j)
		acquireRun(t, s, "r", "one", durable.TakeFree)
		r := getRun(t, s, "r")
		assert.Equal(t, []any{durable.StatusRunning, "one", int64(1), 1}, []any{r.Status, r.Owner, r.Epoch, r.Attempts})
	},
	"attempts count executions": func(t *testing.T, s durable.Store) {
		submitJobs(t, s, newJob("r"))
		assert.Zero(t, getRun(t, s, "r").Attempts)
		for n := 1; n <= 6; n += 2 {
			claimRuns(t, s, 1, testerKey())
			assert.Equal(t, n, getRun(t, s, "r").Attempts, "claimed")
			l := acquireRun(t, s, "r", "one", durable.TakeOver)
			assert.Equal(t, n+1, getRun(t, s, "r").Attempts, "taken over")
			_, err := s.Renew(t.Context(), l, hour)
			require.NoError(t, err)
			releaseRun(t, s, l)
			assert.Equal(t, []any{n + 1, int64(n + 1)}, []any{getRun(t, s, "r").Attempts, getRun(t, s, "r").Epoch})
		}
	},
	"an ended run cannot be acquired": func(t *testing.T, s durable.Store) {
		writeUpdate(t, s, beginRun(t, s, "r"), endUpdate())
		for _, take := range []durable.Take{durable.TakeFree, durable.TakeOver} {
			_, err := s.Acquire(t.Context(), "r", "two", hour, take)
			require.ErrorIs(t, err, durable.ErrEnded)
		}
	},
	"an expired lease that no process took is valid": func(t *testing.T, s durable.Store) {
		l := beginAs(t, s, newJob("r"), "one", gone)
		writeUpdate(t, s, l, durable.Update{}, newEntry(1))
		renewed, err := s.Renew(t.Context(), l, hour)
		require.NoError(t, err)
		_, err = s.Acquire(t.Context(), "r", "two", hour, durable.TakeFree)
		require.ErrorAs(t, err, new(*durable.HeldError), "it is held again")
		releaseRun(t, s, renewed)
	},
	"renew counts from now": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		longer, err := s.Renew(t.Context(), l, 3*hour)
		require.NoError(t, err)
		assert.Equal(t, []any{l.Run, l.Owner, l.Epoch}, []any{longer.Run, longer.Owner, longer.Epoch})
		assert.WithinDuration(t, l.Expires.Add(2*hour), longer.Expires, time.Minute)
		assert.True(t, longer.Expires.Equal(getRun(t, s, "r").Expires))
		shorter, err := s.Renew(t.Context(), longer, gone)
		require.NoError(t, err)
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
		other.Owner = "two"
		stale(t, s, other)
		other.Owner = ""
		stale(t, s, other)
		writeUpdate(t, s, l, endUpdate())
		other.Owner = "two"
		stale(t, s, other)
	},
	"each lease is an epoch": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		var old []durable.Lease
		for range 5 {
			old = append(old, l)
			next := acquireRun(t, s, "r", "two", durable.TakeOver)
			require.Equal(t, l.Epoch+1, next.Epoch)
			l = next
		}
		for _, o := range old {
			stale(t, s, o)
		}
		releaseRun(t, s, l)
		stale(t, s, l)
	},
}

// stale checks that a lease is rejected everywhere, and that trying to use it changes nothing.
func stale(t *testing.T, s durable.Store, l durable.Lease) {
	t.Helper()
	before := getRun(t, s, l.Run)
	next := newEntry(before.Entries + 1)
	require.ErrorIs(t, add(t.Context(), s, l, durable.Update{}, next), durable.ErrStale, "commit with epoch %d", l.Epoch)
	require.ErrorIs(t, add(t.Context(), s, l, durable.Update{}), durable.ErrStale, "commit nothing with epoch %d", l.Epoch)
	require.ErrorIs(t, add(t.Context(), s, l, waitUpdate(9, newWait("stale"))), durable.ErrStale, "update with epoch %d", l.Epoch)
	require.ErrorIs(t, add(t.Context(), s, l, endUpdate()), durable.ErrStale, "end with epoch %d", l.Epoch)
	require.ErrorIs(t, s.Commit(t.Context(), l, durable.Commit{
		Events: []durable.Event{newEvent("stale")}, Jobs: []durable.Job{newJob("stale")}, HandledSignals: 1000,
	}), durable.ErrStale, "events and jobs with epoch %d", l.Epoch)
	_, err := s.Renew(t.Context(), l, 5*hour)
	require.ErrorIs(t, err, durable.ErrStale, "renew with epoch %d", l.Epoch)
	require.ErrorIs(t, s.Release(t.Context(), l, 0), durable.ErrStale, "release with epoch %d", l.Epoch)
	assert.Equal(t, before, getRun(t, s, l.Run), "the run is as it was")
	assert.Len(t, readJournal(t, s, l.Run), int(before.Entries))
	assert.NotContains(t, eventNames(t, s, l.Run), "stale")
	assert.ErrorIs(t, second(s.Run(t.Context(), "stale")), durable.ErrNotFound, "the job was not submitted")
}
