package durabletest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

var claiming = map[string]part{
	"a claimed run stays claimed": func(t *testing.T, s durable.Store) {
		l := createRun(t, s, "r")
		_, err := s.Claim(t.Context(), "r", "two", hour, durable.TakeFree)
		var held *durable.HeldError
		require.ErrorAs(t, err, &held)
		assert.Equal(t, []any{agent.RunID("r"), "one"}, []any{held.Run, held.Owner})
		assert.True(t, l.Expires.Equal(held.Expires), "held until %v, want %v", held.Expires, l.Expires)
		assert.Equal(t, int64(1), getRun(t, s, "r").Epoch)
		writeUpdate(t, s, l, durable.Update{}, newEntry(1))
	},
	"what ran out is free": func(t *testing.T, s durable.Store) {
		old := createAs(t, s, durable.Run{ID: "r"}, "one", gone)
		l := claimRun(t, s, "r", "two", durable.TakeFree)
		assert.Equal(t, []any{agent.RunID("r"), "two", int64(2)}, []any{l.Run, l.Owner, l.Epoch})
		stale(t, s, old)
	},
	"what was released is free": func(t *testing.T, s durable.Store) {
		old := createRun(t, s, "r")
		releaseRun(t, s, old)
		r := getRun(t, s, "r")
		assert.Empty(t, r.Owner)
		assert.Equal(t, int64(1), r.Epoch)
		l := claimRun(t, s, "r", "two", durable.TakeFree)
		assert.Equal(t, int64(2), l.Epoch)
		stale(t, s, old)
	},
	"take over takes what is held": func(t *testing.T, s durable.Store) {
		old := createRun(t, s, "r")
		l := claimRun(t, s, "r", "two", durable.TakeOver)
		assert.Equal(t, []any{"two", int64(2)}, []any{l.Owner, l.Epoch})
		r := getRun(t, s, "r")
		assert.Equal(t, []any{"two", int64(2)}, []any{r.Owner, r.Epoch})
		assert.True(t, l.Expires.Equal(r.Expires))
		stale(t, s, old)
		writeUpdate(t, s, l, durable.Update{}, newEntry(1))
	},
	"an owner may claim what it holds": func(t *testing.T, s durable.Store) {
		old := createRun(t, s, "r")
		l := claimRun(t, s, "r", "one", durable.TakeFree)
		assert.Equal(t, int64(2), l.Epoch)
		stale(t, s, old)
		writeUpdate(t, s, l, durable.Update{}, newEntry(1))
	},
	"what is parked can be claimed": func(t *testing.T, s durable.Store) {
		parkRun(t, s, "r", newQuestion("c"))
		l := claimRun(t, s, "r", "two", durable.TakeFree)
		assert.Equal(t, agent.StatusParked, getRun(t, s, "r").Status, "a claim is no change of status")
		writeUpdate(t, s, l, durable.Update{Status: agent.StatusRunning, Steps: 1}, newEntry(1))
	},
	"what has ended cannot": func(t *testing.T, s durable.Store) {
		writeUpdate(t, s, createRun(t, s, "r"), endUpdate())
		for _, take := range []durable.Take{durable.TakeFree, durable.TakeOver} {
			_, err := s.Claim(t.Context(), "r", "two", hour, take)
			require.ErrorIs(t, err, durable.ErrEnded)
		}
	},
	"a lease that ran out and no process took is good": func(t *testing.T, s durable.Store) {
		l := createAs(t, s, durable.Run{ID: "r"}, "one", gone)
		writeUpdate(t, s, l, durable.Update{}, newEntry(1))
		renewed, err := s.Renew(t.Context(), l, hour)
		require.NoError(t, err)
		_, err = s.Claim(t.Context(), "r", "two", hour, durable.TakeFree)
		require.ErrorAs(t, err, new(*durable.HeldError), "it is held again")
		releaseRun(t, s, renewed)
	},
	"renew counts from now": func(t *testing.T, s durable.Store) {
		l := createRun(t, s, "r")
		longer, err := s.Renew(t.Context(), l, 3*hour)
		require.NoError(t, err)
		assert.Equal(t, []any{l.Run, l.Owner, l.Epoch}, []any{longer.Run, longer.Owner, longer.Epoch})
		assert.WithinDuration(t, l.Expires.Add(2*hour), longer.Expires, time.Minute)
		assert.True(t, longer.Expires.Equal(getRun(t, s, "r").Expires))
		shorter, err := s.Renew(t.Context(), longer, gone)
		require.NoError(t, err)
		assert.True(t, shorter.Expires.Before(l.Expires))
		claimRun(t, s, "r", "two", durable.TakeFree)
	},
	"an epoch that is to come is no lease": func(t *testing.T, s durable.Store) {
		l := createRun(t, s, "r")
		l.Epoch++
		stale(t, s, l)
	},
	"each claim is an epoch": func(t *testing.T, s durable.Store) {
		l := createRun(t, s, "r")
		var old []durable.Lease
		for range 5 {
			old = append(old, l)
			next := claimRun(t, s, "r", "two", durable.TakeOver)
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
	require.ErrorIs(t, s.Append(t.Context(), l, durable.Update{}, next), durable.ErrStale, "append with epoch %d", l.Epoch)
	require.ErrorIs(t, s.Append(t.Context(), l, durable.Update{}), durable.ErrStale, "append nothing with epoch %d", l.Epoch)
	require.ErrorIs(t, s.Append(t.Context(), l, parkUpdate(9, newQuestion("stale"))), durable.ErrStale, "update with epoch %d", l.Epoch)
	require.ErrorIs(t, s.Append(t.Context(), l, endUpdate()), durable.ErrStale, "end with epoch %d", l.Epoch)
	_, err := s.Renew(t.Context(), l, 5*hour)
	require.ErrorIs(t, err, durable.ErrStale, "renew with epoch %d", l.Epoch)
	require.ErrorIs(t, s.Release(t.Context(), l), durable.ErrStale, "release with epoch %d", l.Epoch)
	assert.Equal(t, before, getRun(t, s, l.Run), "the run is as it was")
	assert.Len(t, readJournal(t, s, l.Run), int(before.Entries))
}
