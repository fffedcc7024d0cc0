package approval_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable/approval"
)

// serve has a server answer until the test ends, or stop is called.
func serve(t *testing.T, s approval.Server) (at string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	listener, err := s.Listen(ctx)
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, listener) }()
	stopped := false
	stop = func() {
		cancel()
		if !stopped {
			stopped = true
			assert.NoError(t, <-served)
		}
	}
	t.Cleanup(stop)
	return listener.Addr().String(), stop
}

// AP-29: it listens on the loopback unless it is told otherwise.
func TestLoopback(t *testing.T) {
	for _, address := range []string{"", "127.0.0.1:0", "localhost:0", "127.1.2.3:0"} {
		l, err := approval.Server{Address: address}.Listen(t.Context())
		require.NoError(t, err, address)
		assert.True(t, l.Addr().(*net.TCPAddr).IP.IsLoopback(), address)
		require.NoError(t, l.Close())
	}
	for _, address := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0", "[2001:db8::1]:80"} {
		_, err := approval.Server{Address: address}.Listen(t.Context())
		require.ErrorContains(t, err, "listening for approvals on "+address+": other machines can reach this address", address)
	}
	_, err := approval.Server{Address: "127.0.0.1"}.Listen(t.Context())
	require.ErrorContains(t, err, "missing port")
	everywhere := approval.Server{Address: "0.0.0.0:0", Remote: true}
	l, err := everywhere.Listen(t.Context())
	require.NoError(t, err)
	err = approval.Server{}.Serve(t.Context(), l)
	require.ErrorContains(t, err, "other machines can reach this address")
	require.ErrorIs(t, l.Close(), net.ErrClosed, "it was closed")

	l, err = approval.Server{}.Listen(t.Context())
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.ErrorIs(t, approval.Server{}.Serve(t.Context(), l), net.ErrClosed)
}

// A server of its own, from the link to the end of the run.
func TestServe(t *testing.T) {
	d := park(t, scenario{question: soon})
	at, stop := serve(t, approval.Server{Store: d.store})
	link := approval.Links("http://" + at).To(d.notice.Calls[0].Token)
	assert.Equal(t, http.StatusOK, see(t, link).StatusCode)
	assert.Equal(t, http.StatusOK, postOnce(t, link, d.form(0, "approve")).StatusCode)
	stop()
	assert.Equal(t, agent.StatusDone, d.goOn(t).Status())
	_, err := net.Dial("tcp", at) //nolint:noctx // no server answers
	require.Error(t, err)
}

// Who is slow is not waited for: with the head, with the body, or with nothing at all.
func TestSlowClients(t *testing.T) {
	d := park(t, scenario{question: soon})
	at, _ := serve(t, approval.Server{Store: d.store, Timeout: 50 * time.Millisecond})
	token := d.notice.Calls[0].Token
	for name, sent := range map[string]string{
		"nothing": "",
		"head":    "GET /approvals/" + token + " HTTP/1.1\r\nHost: x\r\nX-",
		"body": "POST /approvals/" + token + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 500\r\n\r\n" +
			d.form(0, "approve").Encode(),
		"no head at all": strings.Repeat("x", 10),
	} {
		connection, err := net.Dial("tcp", at) //nolint:noctx // the server ends it
		require.NoError(t, err)
		_, err = io.WriteString(connection, sent)
		require.NoError(t, err)
		got, _ := io.ReadAll(connection) // until the server hangs up
		assert.NotContains(t, string(got), "200 OK", name)
		require.NoError(t, connection.Close())
	}
	d.undecided(t, 0)
}

// A head that has no end is cut off.
func TestAHugeHead(t *testing.T) {
	d := park(t, scenario{question: soon})
	at, _ := serve(t, approval.Server{Store: d.store})
	connection, err := net.Dial("tcp", at) //nolint:noctx // the server ends it
	require.NoError(t, err)
	defer connection.Close()
	go func() {
		_, _ = fmt.Fprintf(connection, "GET / HTTP/1.1\r\nHost: x\r\nX: %s\r\n\r\n", strings.Repeat("y", 1<<20))
	}()
	line, err := bufio.NewReader(connection).ReadString('\n')
	require.NoError(t, err)
	assert.Contains(t, line, "431")
}

// When its time is over a server lets those finish who are there, for a while.
func TestShutdown(t *testing.T) {
	for name, grace := range map[string]time.Duration{"in time": time.Minute, "too late": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			d := park(t, scenario{question: soon})
			inside, goOn := make(chan struct{}), make(chan struct{})
			at, stop := serve(t, approval.Server{Store: d.store, Grace: grace, Options: approval.Options{
				Decided: func(context.Context, agent.RunID) { close(inside); <-goOn },
			}})
			link := approval.Links("http://" + at).To(d.notice.Calls[0].Token)
			got := make(chan int, 1)
			go func() {
				request, _ := http.NewRequest(http.MethodPost, link, strings.NewReader(d.form(0, "approve").Encode())) //nolint:noctx // the server ends it
				request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
				if err != nil {
					got <- 0
					return
				}
				_ = response.Body.Close()
				got <- response.StatusCode
			}()
			<-inside
			if grace > time.Second {
				time.AfterFunc(0, func() { close(goOn) })
				stop()
				assert.Equal(t, http.StatusOK, <-got)
				return
			}
			stop()
			assert.Zero(t, <-got, "the connection is closed")
			close(goOn)
		})
	}
}
