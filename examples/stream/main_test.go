package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/evasion"
	"github.com/grapnel-go/grapnel/internal/exampletest"
)

// The program is a server and a client that talk over HTTP.
func TestReadme(t *testing.T) {
	handler, err := newHandler(script)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, showStream(t.Context(), &out, handler))
	exampletest.Readme(t, out.String())
}

func TestPageIsServed(t *testing.T) {
	handler, err := newHandler(script)
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	defer server.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/", nil)
	require.NoError(t, err)
	response, err := server.Client().Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.Equal(t, string(page), string(body))
	assert.Equal(t, "text/html; charset=utf-8", response.Header.Get("Content-Type"))
}

// Events arrive during the run, and a client that leaves cancels it.
func TestLeavingCancelsTheRun(t *testing.T) {
	waiting, cancelled := make(chan struct{}), make(chan struct{})
	handler, err := newHandler(agenttest.Script(
		agenttest.Say("Wait.").Call("open_door", `{"door":"office"}`),
		agenttest.Play(func(ctx context.Context, _ agent.State) (agent.Step, error) {
			close(waiting)
			<-ctx.Done()
			close(cancelled)
			return agent.Step{}, context.Cause(ctx)
		}),
	))
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	defer server.Close()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/run", nil)
	require.NoError(t, err)
	response, err := server.Client().Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	assert.Equal(t, "text/event-stream", response.Header.Get("Content-Type"))
	const first = "event: text\ndata: \"Wait.\"\n\n"
	received := make([]byte, len(first))
	_, err = io.ReadFull(response.Body, received)
	require.NoError(t, err)
	assert.Equal(t, first, string(received))
	<-waiting // the model is asked for its second turn
	leave()
	<-cancelled
}

func TestOnlyOfficeHolds(t *testing.T) {
	t.Parallel()
	evasion.Guard{
		Hooks: []hooks.Hook{onlyOffice}, Tool: "open_door", Argument: "door",
		Allowed: []string{"office"}, Forbidden: []string{"safe", "Office", "office ", "*", ""},
	}.Hold(t)
}
