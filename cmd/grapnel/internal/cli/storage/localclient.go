package storage

import (
	"bytes"
	"crypto/rand"
	"io"
	"net/http"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/agents"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/api"
	"github.com/grapnel-go/grapnel/coordinator/client"
	"github.com/grapnel-go/grapnel/durable"
)

// localClient returns a client of a coordinator in this process, on a store.
func localClient(store durable.Store) (*client.Client, error) {
	c, err := coordinator.New(coordinator.Options{Store: store, Host: HookHost(true)})
	if err != nil {
		return nil, err
	}
	token := rand.Text()
	return client.New(client.Options{
		URL: "http://localhost", Token: token,
		HTTP: &http.Client{Transport: inProcess{api.Handler(c, api.Options{Token: token})}},
	})
}

// inProcess sends requests to a handler.
type inProcess struct{ http.Handler }

// RoundTrip returns the response of the handler when it is complete.
func (h inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	w := &recorder{header: http.Header{}, status: http.StatusOK}
	if r = r.Clone(r.Context()); r.Body == nil {
		r.Body = http.NoBody
	}
	h.ServeHTTP(w, r)
	return &http.Response{
		StatusCode: w.status, Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// recorder keeps a response.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header returns the header of the response.
func (w *recorder) Header() http.Header { return w.header }

// WriteHeader sets the status.
func (w *recorder) WriteHeader(status int) { w.status = status }

// Write adds to the body.
func (w *recorder) Write(p []byte) (int, error) { return w.body.Write(p) }

// HookHost returns what performs the actions of the hooks of blueprints. Parks says that gates wait in the store.
func HookHost(parks bool) action.Host {
	return action.Host{Secrets: action.Secrets{File: agents.SecretsFile()}, Parks: parks}
}
