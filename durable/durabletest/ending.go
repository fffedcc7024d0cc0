package durabletest

import (
	"crypto/sha256"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

var ending = map[string]part{
	"cancel is a wish": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		require.NoError(t, s.Signal(t.Context(), "r", cancelSignal("enough")))
		require.NoError(t, s.Signal(t.Context(), "r", cancelSignal("another reason")))
		r := getRun(t, s, "r")
		assert.Equal(t, []any{durable.StatusRunning, "enough", "one"}, []any{r.Status, r.CancelReason, r.Owner})
		writeUpdate(t, s, l, durable.Update{}, newEntry(1))
		_, err := s.Renew(t.Context(), l, hour)
		require.NoError(t, err)
		assert.Equal(t, "enough", getRun(t, s, "r").CancelReason)
	},
	"cancel without a reason": func(t *testing.T, s durable.Store) {
		beginRun(t, s, "r")
		require.NoError(t, s.Signal(t.Context(), "r", cancelSignal("")))
		assert.Equal(t, "cancelled", getRun(t, s, "r").CancelReason)
	},
	"cancel what has ended": func(t *testing.T, s durable.Store) {
		writeUpdate(t, s, beginRun(t, s, "r"), endUpdate())
		before := getRun(t, s, "r")
		require.NoError(t, s.Signal(t.Context(), "r", cancelSignal("enough")))
		assert.Equal(t, before, getRun(t, s, "r"))
	},
	"delete removes everything": func(t *testing.T, s durable.Store) {
		q := newQuestion("c")
		q.TokenHash = sha256.Sum256([]byte("token"))
		l := beginRun(t, s, "r")
		writeUpdate(t, s, l, waitUpdate(1, q), newEntries(1, 9)...)
		other := beginRun(t, s, "other")
		writeUpdate(t, s, other, waitUpdate(1, newQuestion("c")), newEntry(1))
		releaseRun(t, s, l)
		require.NoError(t, s.Delete(t.Context(), "r"))

		_, err := s.Run(t.Context(), "r")
		require.ErrorIs(t, err, durable.ErrNotFound)
		_, err = s.QuestionByToken(t.Context(), q.TokenHash)
		require.ErrorIs(t, err, durable.ErrNotFound)
		require.ErrorIs(t, s.Delete(t.Context(), "r"), durable.ErrNotFound)
		assert.Equal(t, []agent.RunID{"other"}, list(t, s, durable.Filter{}))
		assert.Len(t, readJournal(t, s, "other"), 1)
		assert.Len(t, readQuestions(t, s, "other"), 1)

		beginRun(t, s, "r")
		assert.Empty(t, readJournal(t, s, "r"), "the id is free again, and nothing is left of the old run")
		assert.Empty(t, readQuestions(t, s, "r"))
		assert.Equal(t, int64(1), getRun(t, s, "r").Epoch)
	},
	"delete spares what is held": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		writeUpdate(t, s, l, durable.Update{}, newEntry(1))
		err := s.Delete(t.Context(), "r")
		var held *durable.HeldError
		require.ErrorAs(t, err, &held)
		assert.Equal(t, []any{agent.RunID("r"), "one"}, []any{held.Run, held.Owner})
		assert.True(t, l.Expires.Equal(held.Expires))
		assert.Len(t, readJournal(t, s, "r"), 1)

		_, err = s.Renew(t.Context(), l, gone)
		require.NoError(t, err)
		require.NoError(t, s.Delete(t.Context(), "r"), "a lease that ran out holds nothing")
	},
	"delete what has ended": func(t *testing.T, s durable.Store) {
		writeUpdate(t, s, beginRun(t, s, "r"), endUpdate(), newEntry(1))
		require.NoError(t, s.Delete(t.Context(), "r"))
	},
	"prune takes what ended before": func(t *testing.T, s durable.Store) {
		for _, id := range []agent.RunID{"a", "b"} {
			writeUpdate(t, s, beginRun(t, s, id), endUpdate(), newEntries(1, 3)...)
		}
		beginRun(t, s, "running")
		beginAs(t, s, durable.Job{ID: "ran out"}, "one", gone)
		suspendRun(t, s, "parked", newQuestion("c"))
		last := getRun(t, s, "b").Updated

		n, err := s.Prune(t.Context(), last.Add(-hour))
		require.NoError(t, err)
		assert.Zero(t, n)
		n, err = s.Prune(t.Context(), last.Add(hour))
		require.NoError(t, err)
		assert.Equal(t, 2, n)
		assert.ElementsMatch(t, []agent.RunID{"running", "ran out", "parked"}, list(t, s, durable.Filter{}))
		_, err = s.Entries(t.Context(), "a", 0)
		require.ErrorIs(t, err, durable.ErrNotFound)
		beginRun(t, s, "a")
		assert.Empty(t, readJournal(t, s, "a"))
	},
}

var switching = map[string]part{
	"is off at first": func(t *testing.T, s durable.Store) {
		sw, err := s.DenyTools(t.Context())
		require.NoError(t, err)
		assert.Equal(t, durable.Switch{}, sw)
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
			got, err := s.DenyTools(t.Context())
			require.NoError(t, err)
			assert.True(t, want.Since.Equal(got.Since), "since %v, want %v", got.Since, want.Since)
			assert.Equal(t, want.Since.IsZero(), got.Since.IsZero())
			got.Since, want.Since = time.Time{}, time.Time{}
			assert.Equal(t, want, got)
		}
	},
}
