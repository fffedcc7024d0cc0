package postgres_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/durable/postgres"
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
