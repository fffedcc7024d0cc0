package web

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A stream that always has something to send ends with its session, too.
func TestABusyStreamEndsWithItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, r := New(Options{}), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/ui/live", nil) // which has no session
		s := openStream(httptest.NewRecorder())
		assert.True(t, s.keepAlive(h, r), "it was checked now")
		time.Sleep(beatEvery)
		require.NoError(t, s.write("data: something\n\n"))
		assert.False(t, s.keepAlive(h, r))
	})
}
