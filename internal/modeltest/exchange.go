package modeltest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers"
)

// patience is how long a test waits for events that should happen soon. Only a faulty driver makes a test wait that
// long.
var patience = 30 * time.Second

var hello = agent.NewState(agent.UserText("hello"))

// exchange is a driver with its endpoint, either streaming or not.
type exchange struct {
	*Endpoint
	driver    agent.Driver
	client    *http.Client
	streaming bool
	state     agent.State
}

// ask creates a driver for an endpoint that answers with replies.
func (s Service) ask(t *testing.T, streaming bool, replies ...Reply) exchange {
	t.Helper()
	return s.at(t, streaming, Golden(t, replies...))
}

// at creates a driver for an endpoint.
func (s Service) at(t *testing.T, streaming bool, e *Endpoint) exchange {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	a := exchange{e, s.New(t, e.URL, client), client, streaming, hello}
	if _, ok := a.driver.(agent.Streamer); streaming && !ok {
		t.Skip("the driver does not stream")
	}
	return a
}

// next requests a reply; emit may be nil.
func (a exchange) next(ctx context.Context, emit func(agent.Delta)) (agent.Step, error) {
	if !a.streaming {
		return a.driver.Next(ctx, a.state).Get()
	}
	if emit == nil {
		emit = func(agent.Delta) {}
	}
	return agent.Stream(ctx, a.driver, a.state, emit).Get()
}

// soon works like next, but fails the test if the driver does not return.
func (a exchange) soon(ctx context.Context, t *testing.T, emit func(agent.Delta)) (step agent.Step, err error) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		step, err = a.next(ctx, emit)
	}()
	wait(t, done, "the driver did not return")
	return step, err
}

// wait waits for an event that should happen soon.
func wait(t *testing.T, done <-chan struct{}, otherwise string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		require.FailNow(t, otherwise, "waited for %v", patience)
	}
}

// fails makes one request and checks that the driver reports one failure of the given kind.
func (a exchange) fails(t *testing.T, kind agent.ErrorKind) drivers.Error {
	t.Helper()
	_, err := a.soon(t.Context(), t, nil)
	failure := a.checkFailure(t, err, kind)
	assert.Len(t, a.Requests(), 1, "requests: trying again is up to processor.Retry")
	return failure
}

func (a exchange) checkFailure(t *testing.T, err error, kind agent.ErrorKind) drivers.Error {
	t.Helper()
	require.Error(t, err, "the service failed, but the driver returned an answer")
	failure, ok := errors.AsType[*drivers.Error](err)
	require.True(t, ok, "the error is not a *drivers.Error but %T: %v", err, err)
	assert.Equal(t, kind, agent.KindOf(err), "the kind of: %v", err)
	assert.NotEmpty(t, failure.Provider, "the error's provider")
	assert.Less(t, len(err.Error()), 4096, "the error's text is as long as a page: %.200s …", err)
	a.checkSecret(t, err)
	return *failure
}

// checkSecret checks that neither the error nor any error that it wraps contains the key.
func (a exchange) checkSecret(t *testing.T, err error) {
	t.Helper()
	for _, e := range errorChain(err) {
		if strings.Contains(e.Error(), Key) {
			assert.Fail(t, "the API key is in the text of an error", "of type %T: %v", e, e)
		}
	}
}

// checkText compares two long texts without printing them.
func checkText(t *testing.T, want, got string) {
	t.Helper()
	if want != got {
		assert.Fail(t, "another text", "the text of %d bytes differs from the expected text of %d bytes", len(got), len(want))
	}
}

// errorChain returns an error and all errors that it wraps.
func errorChain(err error) []error {
	if err == nil {
		return nil
	}
	out := []error{err}
	switch e := err.(type) { //nolint:errorlint // the loop checks every error
	case interface{ Unwrap() error }:
		out = append(out, errorChain(e.Unwrap())...)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			out = append(out, errorChain(inner)...)
		}
	}
	return out
}

// newObserver returns an observer that calls f.
func newObserver(f func(agent.Event)) agent.Observer {
	return agent.ObserverFunc(func(_ context.Context, e agent.Event) { f(e) })
}

// runWay runs an agent one way and returns the state it ended in.
func runWay(t *testing.T, a *agent.Agent, streaming bool) (final agent.State, err error) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if !streaming {
			final, err = a.Run(t.Context(), agent.NewState(), agent.UserText("hello")).Get()
			return
		}
		var p agent.Progress
		for p, err = range a.Stream(t.Context(), agent.NewState(), agent.UserText("hello")) {
			final = p.State
		}
	}()
	wait(t, done, "the run did not return")
	return final, err
}
