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

// Key is the API key for drivers under test. No error may contain it.
const Key = "sk-modeltest-0123456789abcdef"

// Request is a driver's request as it arrived.
type Request struct {
	Method, Path, Query string
	Header              http.Header
	Body                []byte

	gone <-chan struct{}
}

// JSON returns the decoded body. It fails the test if the body is not JSON.
func (r Request) JSON(t testing.TB) map[string]any {
	t.Helper()
	var body map[string]any
	require.NoError(t, json.Unmarshal(r.Body, &body), "the request's body: %s", r.Body)
	return body
}

// ClientGone returns a channel that is closed when the driver has closed the connection or the exchange is over.
func (r Request) ClientGone() <-chan struct{} { return r.gone }

// Endpoint is an address for drivers that records requests.
type Endpoint struct {
	// URL is the address without a trailing slash, such as http://127.0.0.1:4010.
	URL string

	mu       sync.Mutex
	requests []Request
	asked    chan struct{} // receives one element for each request
	close    func()
	journal  func(t testing.TB) []byte
}

// newEndpoint starts an endpoint that records each request and passes it to answer, numbered from zero. It closes the
// endpoint at the end of the test.
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
		server.CloseClientConnections() // ends hanging requests
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

// Requests returns the requests in the order of their arrival.
func (e *Endpoint) Requests() []Request {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.requests)
}

// Arrivals returns a channel that receives one element for each request.
func (e *Endpoint) Arrivals() <-chan struct{} { return e.asked }

// Close closes the endpoint before the end of the test. Later requests fail as if the service were down.
func (e *Endpoint) Close() { e.close() }
