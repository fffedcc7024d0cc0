package modeltest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// startTime is the maximum time until the server process is ready. An idle machine needs a fraction of a second.
const startTime = time.Minute

// endWithParent makes the server exit when its standard input ends, which happens however this process ends.
const endWithParent = `NODE_OPTIONS=--import=data:text/javascript,process.stdin.resume();process.stdin.on('end',()=>process.exit())`

// MockServer is a process that runs the mock model server from npm.
type MockServer struct {
	base  *url.URL
	key   string
	log   *logged
	plays atomic.Int64
}

// Mock starts a mock server for this test alone and gives it the turns. It combines StartMock and Play.
func Mock(t testing.TB, turns ...agent.Step) *Endpoint {
	t.Helper()
	return StartMock(t).Play(t, turns...)
}

// StartMock starts a mock server, which ends with the test. It skips the test if the npm packages are missing. If the
// test fails, it shows the server's log.
func StartMock(t testing.TB) *MockServer {
	t.Helper()
	return newMockServer(t, "", []fixture{})
}

// newMockServer starts a server with fixtures. If key is not empty, the server accepts only requests with that key.
func newMockServer(t testing.TB, key string, fixtures []fixture) *MockServer {
	t.Helper()
	command := parts.NPM(t, "llmock")
	parts.Command(t, "node", "install Node.js 20 or later")
	file := filepath.Join(t.TempDir(), "fixtures.json")
	require.NoError(t, os.WriteFile(file, encodeFixtures(t, fixtures), 0o600))

	//nolint:gosec // the command is one of the test parts
	cmd := exec.CommandContext(t.Context(), command, "--port", "0", "--fixtures", file, "--journal-max", "0")
	cmd.Env = append(lo.Reject(os.Environ(), func(set string, _ int) bool { return strings.HasPrefix(set, "AIMOCK_") }),
		endWithParent, "AIMOCK_STRICT_TURN_INDEX=1")
	if key != "" {
		cmd.Env = append(cmd.Env, "AIMOCK_API_KEYS="+key)
	}
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	require.NoError(t, cmd.Start(), "start the mock server %s", command)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := cmd.Wait()
		in.CloseWithError(fmt.Errorf("the mock server ended: %w", lo.CoalesceOrEmpty(err, io.EOF)))
	}()

	m := &MockServer{key: key, log: &logged{}}
	ready := make(chan string, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		m.log.follow(out, ready)
	}()
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Process.Kill() // if the server has ended by itself, its log says so
		<-ended
		<-read
		if t.Failed() {
			t.Logf("log of the mock server:\n%s", m.log)
		}
	})
	select {
	case address := <-ready:
		m.base, err = url.Parse(address)
		require.NoError(t, err, "the address of the mock server")
	case <-ended:
		<-read
		require.FailNow(t, "the mock server did not start", "%s", m.log)
	case <-time.After(startTime):
		require.FailNow(t, "the mock server is not ready", "after %v its log is:\n%s", startTime, m.log)
	}
	return m
}

// Play makes the server answer with the turns on a separate endpoint: see the package comment. It uses a turn's text,
// calls, finish reason, model, ID, and input and output tokens; a turn must have text or calls.
func (m *MockServer) Play(t testing.TB, turns ...agent.Step) *Endpoint {
	t.Helper()
	return m.serveFixtures(t, lo.Map(turns, stepFixture))
}

// PlayItems works like Play for drivers of the Responses API, where the server counts a reply with text and two calls
// as three replies.
func (m *MockServer) PlayItems(t testing.TB, turns ...agent.Step) *Endpoint {
	t.Helper()
	fixtures, counted := lo.Map(turns, stepFixture), 0
	for i, turn := range turns {
		fixtures[i].Match.TurnIndex = counted
		counted += turn.Message.CallCount()
		if turn.Message.Text() != "" {
			counted++
		}
	}
	return m.serveFixtures(t, fixtures)
}

// serveFixtures passes the fixtures to the server and starts an endpoint in front of it that records the requests and
// selects the turns.
func (m *MockServer) serveFixtures(t testing.TB, fixtures []fixture) *Endpoint {
	t.Helper()
	name := fmt.Sprintf("%s#%d", url.PathEscape(t.Name()), m.plays.Add(1))
	for i := range fixtures {
		fixtures[i].Match.Context = name
	}
	if lo.SomeBy(fixtures, fixture.malformed) {
		// A running server accepts only well-formed fixtures; a fixture file may contain others.
		return newMockServer(t, m.key, fixtures).endpoint(t, name)
	}
	m.control(t, http.MethodPost, "/fixtures", encodeFixtures(t, fixtures))
	return m.endpoint(t, name)
}

// control sends a control request to the server and returns its answer.
func (m *MockServer) control(t testing.TB, method, path string, body []byte) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, m.base.String()+"/__aimock"+path, bytes.NewReader(body))
	require.NoError(t, err)
	if m.key != "" {
		r.Header.Set("Authorization", "Bearer "+m.key)
	}
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	require.NoError(t, err, "ask the mock server for %s", path)
	defer func() { _ = answer.Body.Close() }()
	said, err := io.ReadAll(answer.Body)
	require.NoError(t, err, "read the mock server's answer for %s", path)
	require.Equal(t, http.StatusOK, answer.StatusCode, "the mock server's answer for %s: %s", path, said)
	return said
}

func (m *MockServer) endpoint(t testing.TB, name string) *Endpoint {
	t.Helper()
	proxy := &httputil.ReverseProxy{
		Transport: &http.Transport{DisableKeepAlives: true},
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(m.base)
			r.Out.Header.Set("X-Aimock-Context", name)
			r.Out.Header.Set("X-Test-Id", name)
			r.Out.Header.Set("X-Aimock-Strict", "true")
		},
		FlushInterval: -1,
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
			m.log.logger().Printf("no answer from the mock server: %v", err)
			panic(http.ErrAbortHandler) // the driver gets no answer either
		},
		ErrorLog: m.log.logger(),
	}
	e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request, _ int) { proxy.ServeHTTP(w, r) })
	e.journal = func(t testing.TB) []byte {
		t.Helper()
		return m.control(t, http.MethodGet, "/journal?testId="+url.QueryEscape(name), nil)
	}
	return e
}
