package sqlite_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/sqlite"
)

// A context that ends at any moment of a write: what was reported is what happened.
func TestContextEndsMidway(t *testing.T) {
	s := open(t, tempFile(t), sqlite.Options{Sync: sqlite.SyncNormal})
	l := park(t, s, "r")
	seq, failed := int64(0), 0
	for i := range 400 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Microsecond)
		err := commit(ctx, s, l, durable.Update{
			Status: durable.StatusWaiting, Steps: int(seq) + 2, Waits: []durable.Wait{wait("c")},
		}, entry(seq+1), entry(seq+2))
		cancel()
		if err == nil {
			seq += 2
		} else {
			failed++
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		r, err := s.Run(t.Context(), "r")
		require.NoError(t, err)
		require.Equal(t, seq, r.Entries, "try %d", i)
		require.Equal(t, int(seq), r.Steps)
	}
	entries, err := s.Entries(t.Context(), "r", 0)
	require.NoError(t, err)
	assert.Len(t, entries, int(seq))
	assert.Positive(t, failed)
	require.NoError(t, commit(t.Context(), s, l, durable.Update{}, entry(seq+1)), "the store is as good as before")
	require.NoError(t, s.Close())
}
