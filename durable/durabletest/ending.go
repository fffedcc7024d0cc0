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
		l := create(t, s, "r")
		require.NoError(t, s.Cancel(t.Context(), "r", "enough"))
		require.NoError(t, s.Cancel(t.Context(), "r", "another reason"))
		r := run(t, s, "r")
		assert.Equal(t, []any{agent.StatusRunning, "enough", "one"}, []any{r.Status, r.CancelReason, r.Owner})
		write(t, s, l, durable.Update{}, entry(1))
		_, err := s.Renew(t.Context(), l, hour)
		require.NoError(t, err)
		assert.Equal(t, "enough", run(t, s, "r").CancelReason)
	},
	"cancel without a reason": func(t *testing.T, s durable.Store) {
		create(t, s, "r")
		require.NoError(t, s.Cancel(t.Context(), "r", ""))
		assert.Equal(t, "cancelled", run(t, s, "r").CancelReason)
	},
	"cancel what has ended": func(t *testing.T, s durable.Store) {
		write(t, s, create(t, s, "r"), ended())
		before := run(t, s, "r")
		require.NoError(t, s.Cancel(t.Context(), "r", "enough"))
		assert.Equal(t, before, run(t, s, "r"))
	},
	"delete removes everything": func(t *testing.T, s durable.Store) {
		q := question("c")
		q.TokenHash = sha256.Sum256([]byte("token"))
		l := create(t, s, "r")
		write(t, s, l, parked(1, q), entries(1, 9)...)
		other := create(t, s, "other")
		write(t, s, other, parked(1, question("c")), entry(1))
		release(t, s, l)
		require.NoError(t, s.Delete(t.Context(), "r"))

		_, err := s.Run(t.Context(), "r")
		require.ErrorIs(t, err, durable.ErrNotFound)
		_, err = s.QuestionByToken(t.Context(), q.TokenHash)
		require.ErrorIs(t, err, durable.ErrNotFound)
		require.ErrorIs(t, s.Delete(t.Context(), "r"), durable.ErrNotFound)
		assert.Equal(t, []agent.RunID{"other"}, list(t, s, durable.Filter{}))
		assert.Len(t, journal(t, s, "other"), 1)
		assert.Len(t, questions(t, s, "other"), 1)

		create(t, s, "r")
		assert.Empty(t, journal(t, s, "r"), "the id is free again, and nothing is left of the old run")
		assert.Empty(t, questions(t, s, "r"))
		assert.Equal(t, int64(1), run(t, s, "r").Epoch)
	},
	"delete spares what is held": func(t *testing.T, s durable.Store) {
		l := create(t, s, "r")
		write(t, s, l, durable.Update{}, entry(1))
		err := s.Delete(t.Context(), "r")
		var held *durable.HeldError
		require.ErrorAs(t, err, &held)
		assert.Equal(t, []any{agent.RunID("r"), "one"}, []any{held.Run, held.Owner})
		assert.True(t, l.Expires.Equal(held.Expires))
		assert.Len(t, journal(t, s, "r"), 1)

		_, err = s.Renew(t.Context(), l, gone)
		require.NoError(t, err)
		require.NoError(t, s.Delete(t.Context(), "r"), "a lease that ran out holds nothing")
	},
	"delete what has ended": func(t *testing.T, s durable.Store) {
		write(t, s, create(t, s, "r"), ended(), entry(1))
		require.NoError(t, s.Delete(t.Context(), "r"))
	},
	"prune takes what ended before": func(t *testing.T, s durable.Store) {
		for _, id := range []agent.RunID{"a", "b"} {
			write(t, s, create(t, s, id), ended(), entries(1, 3)...)
		}
		create(t, s, "running")
		createAs(t, s, durable.Run{ID: "ran out"}, "one", gone)
		park(t, s, "parked", question("c"))
		last := run(t, s, "b").Updated

		n, err := s.Prune(t.Context(), last.Add(-hour))
		require.NoError(t, err)
		assert.Zero(t, n)
		n, err = s.Prune(t.Context(), last.Add(hour))
		require.NoError(t, err)
		assert.Equal(t, 2, n)
		assert.ElementsMatch(t, []agent.RunID{"running", "ran out", "parked"}, list(t, s, durable.Filter{}))
		_, err = s.Entries(t.Context(), "a", 0)
		require.ErrorIs(t, err, durable.ErrNotFound)
		create(t, s, "a")
		assert.Empty(t, journal(t, s, "a"))
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
			{On: true, Reason: "it's 🔥", By: "ops", Since: moment()},
			{On: true, Reason: "still", Since: moment().Add(hour)},
			{On: false, Reason: "all clear", By: "ops", Since: moment()},
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
