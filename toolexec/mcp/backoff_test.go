package mcp

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The pause between reconnects doubles up to a minute. A successful call ends it.
func TestThePauseBetweenReconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Client{}
		for _, seconds := range []float64{0, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60, 60, 60} {
			c.countFailure()
			assert.InDelta(t, seconds, max(0, time.Until(c.notBefore).Seconds()), 0)
		}
		_, err := c.session(t.Context())
		require.EqualError(t, err, "it failed 14 times in a row and is not called for 1m0s: do something else until then")
		time.Sleep(30 * time.Second)
		_, err = c.session(t.Context())
		require.ErrorContains(t, err, "not called for 30s")
		c.resetFailures()
		c.countFailure()
		assert.LessOrEqual(t, time.Until(c.notBefore), time.Duration(0))
	})
}
