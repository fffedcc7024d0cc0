package modeltest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Key is the API key for drivers under test. No error may repeat it.
const Key = "sk-modeltest-0123456789abcdef"

// Request is what a driver asked, as it came over the wire.
type Request struct {
	Method, Path, Query string
	Header              http.Header
	Body                []byte

	gone <-chan struct{}
}

// JSON returns the body as encoding/json reads it; a body that is not JSON fails the
// test.
func (r Request) JSON(t testing.TB) map[string]any {
	t.Helper()
	var body map[string]any
	require.NoError(t, json.Unmarshal(r.Body, &body), "the request's body: %s", r.Body)
	return body
}

// ClientGone returns a channel that is closed when the driver closed the connection, or the exchange is over.
func (r Request) ClientGone() <-chan struct{} { return r.gone }

// Endpoint is an address that a driver may ask, and what it was asked there.
type Endpoint struct {
	// URL is the address without a slash at its end, such as http://127.0.0.1:4010.
	URL string

	mu       sync.Mutex
	requests []Request
	asked    chan struct{} // has one element for each request
	close    func()
	journal  func(t testing.TB) []byte
}

// newEndpoint starts an endpoint that hands each request, noted down and numbered from
// zero, to answer. It is closed at the end of the test.
func newEndpoint(t testing.TB, answer func(w http.ResponseWriter, r *http.Request, n int)) *Endpoint {
	t.Helper()
	e := &Endpoint{asked: make(chan struct{}, 10_000)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if !assert.NoError(t, err, "read the request") {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer(w, r, e.note(r, body))
	}))
	e.URL = server.URL
	e.close = sync.OnceFunc(func() {
		server.CloseClientConnections() // what hangs sees its client go
		server.Close()
	})
	t.Cleanup(e.close)
	return e
}

func (e *Endpoint) note(r *http.Request, body []byte) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.requests = append(e.requests, Request{
		Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Header: r.Header.Clone(), Body: body,
		gone: r.Context().Done(),
	})
	e.asked <- struct{}{}
	return len(e.requests) - 1
}

// Requests returns what was asked, in the order in which it came.
func (e *Endpoint) Requests() []Request {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.requests)
}

// Arrivals gives one element for each request that came.
func (e *Endpoint) Arrivals() <-chan struct{} { return e.asked }

// Close closes the endpoint before the end of the test: asking it then fails as
// asking a service that is down.
func (e *Endpoint) Close() { e.close() }
