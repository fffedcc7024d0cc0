package postgres_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/postgres"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// The pause before an offer is made again is as long as the run had been ready when the offer was made, at least the retry,
// and at most an hour.
func TestPausesBetweenOffers(t *testing.T) {
	s := openClosed(t, parts.Postgres(t), postgres.Options{})
	_, err := s.Submit(t.Context(), durable.Job{ID: "r"})
	require.NoError(t, err)
	age := func(by time.Duration) { // as if that time had passed
		_, err := s.Pool().Exec(t.Context(), `UPDATE runs SET ready = ready - $1::interval, offered = offered - $1::interval`, by)
		require.NoError(t, err)
	}
	const slow = 30 * time.Second // the test takes less
	var ready time.Duration
	for _, pause := range []struct{ ready, next time.Duration }{
		{0, 2 * time.Minute}, {10 * time.Minute, 10 * time.Minute}, {50 * time.Minute, 50 * time.Minute}, {9 * time.Hour, time.Hour},
	} {
		age(pause.ready - ready)
		require.NoError(t, s.RecordOffers(t.Context(), durable.OfferID{Run: "r", Seq: 1}))
		age(pause.next - slow)
		owed, err := s.Owed(t.Context(), 2*time.Minute, 10)
		require.NoError(t, err)
		assert.Empty(t, owed, "%v after it became ready", pause.ready)
		age(2 * slow)
		owed, err = s.Owed(t.Context(), 2*time.Minute, 10)
		require.NoError(t, err)
		assert.Len(t, owed, 1, "%v after it became ready", pause.ready)
		ready = pause.ready + pause.next + slow
	}
}
