package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// endpoint is the connection to a server over HTTP. When it is closed, all its requests end.
type endpoint struct {
	origin  *url.URL
	headers http.Header
	most    int64
	grace   time.Duration
	base    http.RoundTripper
	own     *http.Transport // closed with the endpoint; nil when the caller supplied the client
	life    context.Context //nolint:containedctx // lives as long as the connection
	end     context.CancelFunc
	version atomic.Value // the protocol version, once it is agreed
	gone    atomic.Bool  // the server does not know the session
}

// versionHeader is the header with the protocol version. The SDK sets it only on a connection without a gate.
const versionHeader = "Mcp-Protocol-Version"

func (e *endpoint) setVersion(version string) { e.version.Store(version) }

// exchange records a call's last request.
type exchange struct {
	status atomic.Int64 // zero when no answer came
	gone   atomic.Bool  // refused because of an unknown session, so the call did not run
}

type exchangeKey struct{}

func newEndpoint(s Server) *endpoint {
	e := &endpoint{headers: s.Headers, most: int64(s.MaxMessageBytes), grace: s.CloseGrace}
	e.origin, _ = url.Parse(s.URL) // checked
	e.life, e.end = context.WithCancel(context.Background())
	if s.HTTPClient != nil && s.HTTPClient.Transport != nil {
		e.base = s.HTTPClient.Transport
		return e
	}
	e.own = &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: time.Minute,
	}
	e.base = e.own
	return e
}

// transport returns the SDK's transport over the endpoint. It does not open the stream for the server's unsolicited
// messages, because the server could keep it open without answering.
func (e *endpoint) transport(s Server) sdk.Transport {
	client := http.Client{CheckRedirect: e.redirect}
	if s.HTTPClient != nil {
		client = *s.HTTPClient
		if client.CheckRedirect == nil {
			client.CheckRedirect = e.redirect
		}
	}
	client.Transport = e
	return &sdk.StreamableClientTransport{
		Endpoint: s.URL, HTTPClient: &client, DisableStandaloneSSE: true, MaxEventSize: s.MaxMessageBytes,
	}
}

func (e *endpoint) redirect(r *http.Request, via []*http.Request) error {
	switch {
	case !e.isOrigin(r.URL):
		return fmt.Errorf("it redirects to another origin (%s): set that as the URL if this is intended", r.URL.Host)
	case len(via) >= 5:
		return errors.New("it redirects in a cycle")
	}
	return nil
}

func (e *endpoint) isOrigin(u *url.URL) bool {
	return u.Scheme == e.origin.Scheme && u.Host == e.origin.Host
}

// RoundTrip sends a request that ends when the endpoint is closed, and limits the answer's length.
func (e *endpoint) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	if r.Method == http.MethodDelete { // the request ends the session, and the SDK waits for it
		cancel()
		ctx, cancel = context.WithTimeout(r.Context(), e.grace)
	}
	unhook := context.AfterFunc(e.life, cancel)
	done := func() { unhook(); cancel() }
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	r = r.Clone(ctx)
	if e.isOrigin(r.URL) {
		for name, values := range e.headers {
			r.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	if version, ok := e.version.Load().(string); ok && r.Header.Get(versionHeader) == "" {
		r.Header.Set(versionHeader, version)
	}
	resp, err := e.base.RoundTrip(r)
	if err != nil {
		done()
		if e.life.Err() != nil {
			err = errors.New("the connection was closed")
		}
		return nil, err
	}
	most := e.most
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		most *= maxNoise
	}
	resp.Body = &capped{ReadCloser: resp.Body, left: most, done: done}
	forgotten := r.Header.Get("Mcp-Session-Id") != "" && r.Method != http.MethodDelete && isForgotten(resp)
	if forgotten {
		e.gone.Store(true)
	}
	if x != nil {
		x.status.Store(int64(resp.StatusCode))
		x.gone.Store(forgotten && r.Method == http.MethodPost) // a GET continues an earlier call
	}
	return resp, nil
}

// isForgotten reports whether a server says that it does not know the session. The protocol requires status 404. Some
// servers return status 400 and a sentence about the session.
func isForgotten(resp *http.Response) bool {
	if resp.StatusCode != http.StatusBadRequest {
		return resp.StatusCode == http.StatusNotFound
	}
	start, _ := io.ReadAll(io.LimitReader(resp.Body, maxSaid))
	resp.Body = &rest{io.MultiReader(bytes.NewReader(start), resp.Body), resp.Body}
	return bytes.Contains(bytes.ToLower(start), []byte("session"))
}

// rest is a body whose start has been read.
type rest struct {
	io.Reader
	io.Closer
}

// stop ends all requests.
func (e *endpoint) stop() {
	e.end()
	if e.own != nil {
		e.own.CloseIdleConnections()
	}
}

// capped is an answer's body with a maximum length. A message stream has a larger maximum, because the SDK limits each
// message.
type capped struct {
	io.ReadCloser

	left int64
	done func()
}

func (c *capped) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errors.New("the server sent too much data: request less, or raise MaxMessageBytes")
	}
	n, err := c.ReadCloser.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}

// Close ends the request.
func (c *capped) Close() error {
	defer c.done()
	return c.ReadCloser.Close()
}
