package coordinator_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/coordinator/api"
	"github.com/grapnel-go/grapnel/coordinator/wire"
)

// limited serves the API of a coordinator with a limit for reading requests.
func (b *bench) limited(limit time.Duration) *httptest.Server {
	b.t.Helper()
	s := httptest.NewUnstartedServer(api.Handler(b.c, api.Options{Token: "secret"}))
	s.Config.ReadTimeout = limit
	s.Start()
	b.t.Cleanup(s.Close)
	return s
}

// The limit for reading requests does not end a stream, nor a request that waits for work.
func TestReadTimeoutAndStreams(t *testing.T) {
	b := newBench(t)
	const limit = 50 * time.Millisecond
	s := b.limited(limit)
	b.create(`{"name": "job", "type": "procedural", "command": {"argv": ["cat"]}}`)
	id := b.submit("job", `{}`)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/runs/"+string(id)+"/stream", http.NoBody)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer secret")
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()

	c := plain{t, s.URL, "secret"}
	begun := time.Now()
	status, _ := c.send(http.MethodGet, "/runner/runs?wait_seconds=1&limit=0", "r1", nil)
	assert.Equal(t, http.StatusOK, status)
	assert.GreaterOrEqual(t, time.Since(begun), time.Second, "the request has waited")

	require.NoError(t, b.c.Stop(t.Context(), id, "", "ann"))
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.Contains(t, string(text), "event: run_stopped", "the stream has outlived the limit")
}

// A client that sends its request too slowly is cut off, and nothing of the request counts.
func TestSlowRequests(t *testing.T) {
	b := newBench(t)
	s := b.limited(50 * time.Millisecond)
	b.create(`{"name": "job", "type": "procedural", "command": {"argv": ["cat"]}}`)
	for name, c := range map[string]struct{ text, status string }{
		"header": {"POST /runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer sec", ""},
		"body": {"POST /runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n" +
			`{"agent_name": "job", `, "408"},
		"chunks": {"POST /runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" +
			"15\r\n{\"agent_name\": \"job\"}\r\n", "408"},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://")) //nolint:noctx // a local server
			require.NoError(t, err)
			defer conn.Close()
			_, err = fmt.Fprint(conn, c.text)
			require.NoError(t, err)
			require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
			text, err := io.ReadAll(bufio.NewReader(conn)) // until the server closes the connection
			require.NoError(t, err)
			if c.status != "" {
				assert.Contains(t, string(text), "HTTP/1.1 "+c.status)
				assert.Contains(t, string(text), "application/problem+json")
			}
		})
	}
	all, err := b.client(s, wire.Admin).Runs(t.Context(), nil)
	require.NoError(t, err)
	assert.Empty(t, all.Runs)
}
