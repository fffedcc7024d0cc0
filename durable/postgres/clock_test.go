package postgres_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable/postgres"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// Estimates follow the database, and go back only if its clock was set back.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c postgres.Clock
		began := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
		now := func() time.Duration {
			at, known := c.Now()
			if !known {
				return -1
			}
			return at.Sub(began)
		}
		assert.Equal(t, time.Duration(-1), now(), "the database has told nothing")
		c.Set(began)
		time.Sleep(time.Second)
		assert.Equal(t, time.Second, now())
		c.Set(began.Add(900 * time.Millisecond)) // the reply took longer
		assert.Equal(t, time.Second, now())
		time.Sleep(time.Second)
		assert.Equal(t, 1900*time.Millisecond, now())
		c.Set(began.Add(-time.Hour))
		assert.Equal(t, -time.Hour, now(), "the clock was set back")
		time.Sleep(time.Minute)
		assert.Equal(t, time.Duration(-1), now(), "the reply is old")
	})
}

// A question that the database has not answered tells no time.
func TestAFailedQuestionForTheTime(t *testing.T) {
	s := openClosed(t, parts.Postgres(t), postgres.Options{})
	done, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.ReadNow(done)
	require.Error(t, err)
	at, err := s.ReadNow(t.Context())
	require.NoError(t, err)
	assert.WithinDuration(t, time.Now(), at, time.Hour)
}
