package anthropic_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/drivers/anthropic"
	"github.com/grapnel-go/grapnel/internal/modeltest"
)

var _ capability.TokenCounter = (*anthropic.Driver)(nil)

// What is counted is what Next would send, without what the service does not count with.
func TestCountTokens(t *testing.T) {
	s := hello.WithRequest(agent.Request{
		Instructions: "Be brief.", Tools: agent.ToolsOf(weather), Temperature: mo.Some(0.5), MaxOutputTokens: 70,
		Options: agent.Options{}.With("thinking", map[string]any{"type": "adaptive"}).With("top_p", 0.5).With("betas", []string{"b-1"}),
	})
	sent := asked(t, s).JSON(t)
	endpoint := modeltest.Golden(t, modeltest.Body(200, "application/json", `{"input_tokens":2095}`))
	n, err := newDriver(t, endpoint.URL).CountTokens(t.Context(), s)
	require.NoError(t, err)
	assert.EqualValues(t, 2095, n)
	require.Len(t, endpoint.Requests(), 1)
	r := endpoint.Requests()[0]
	assert.Equal(t, "/v1/messages/count_tokens", r.Path)
	assert.Equal(t, "b-1", r.Header.Get("Anthropic-Beta"))
	counted := r.JSON(t)
	assert.Equal(t, []string{"messages", "model", "system", "thinking", "tools"}, slices.Sorted(maps.Keys(counted)))
	for name, value := range counted {
		assert.Equal(t, sent[name], value, name)
	}
}

func TestCountTokensFails(t *testing.T) {
	for name, tc := range map[string]struct {
		reply modeltest.Reply
		kind  agent.ErrorKind
	}{
		"not known":      {modeltest.Body(404, "application/json", `{"type":"error","error":{"type":"not_found_error","message":"no"}}`), agent.KindBadRequest},
		"too often":      {modeltest.Body(429, "application/json", `{"type":"error","error":{"type":"rate_limit_error","message":"no"}}`), agent.KindRateLimit},
		"no JSON":        {modeltest.Body(200, "text/html", "<html>"), agent.KindBrokenStream},
		"no count":       {modeltest.Body(200, "application/json", `{}`), agent.KindBrokenStream},
		"less than none": {modeltest.Body(200, "application/json", `{"input_tokens":-1}`), agent.KindBrokenStream},
	} {
		t.Run(name, func(t *testing.T) {
			endpoint := modeltest.Golden(t, tc.reply)
			_, err := newDriver(t, endpoint.URL).CountTokens(t.Context(), hello)
			failure := new(drivers.Error)
			require.ErrorAs(t, err, &failure)
			assert.Equal(t, tc.kind, failure.Kind, "%v", err)
			assert.Len(t, endpoint.Requests(), 1, "nothing is asked twice")
		})
	}
	endpoint := modeltest.Golden(t, modeltest.Body(200, "application/json", `{"input_tokens":1}`))
	d := newDriver(t, endpoint.URL)
	_, err := d.CountTokens(t.Context(), hello.WithRequest(agent.Request{ToolChoice: agent.ToolsRequired}))
	require.ErrorContains(t, err, "the request has no tools")
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	require.ErrorIs(t, lo.T2(d.CountTokens(ctx, hello)).B, gone)
	assert.Empty(t, endpoint.Requests(), "neither is sent")
}

// An agent that compacts goes by what the service counts, and by its estimate where the
// service does not.
func TestCompactionGoesByTheCount(t *testing.T) {
	long := strings.Repeat("word ", 80)
	talk := agent.NewState(agent.UserText(long), agent.Assistant(long), agent.UserText(long), agent.Assistant(long))
	const estimate = 4*104 + 4 + int64(len("go on")/4)
	for name, tc := range map[string]struct {
		status int
		answer string
		want   int64
	}{
		"it counts":       {200, `{"input_tokens":5000}`, 5000},
		"it does not":     {404, `{"error":{"type":"not_found_error","message":"no such page"}}`, estimate},
		"it says nothing": {200, `{}`, estimate},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if strings.HasSuffix(r.URL.Path, "/count_tokens") {
					w.WriteHeader(tc.status)
					_, _ = w.Write([]byte(tc.answer))
					return
				}
				_, _ = w.Write([]byte(good))
			}))
			t.Cleanup(server.Close)
			events := agenttest.Record()
			a := builder.New().WithDriver(newDriver(t, server.URL)).WithObserver(events).With(capability.UseCompaction{
				Tokens: 200, Keep: 2,
				Summarize: func(context.Context, agent.State, []agent.Message) (string, error) { return "they talked", nil },
			}).Build().MustGet()
			s, err := a.Run(t.Context(), talk, agent.UserText("go on")).Get()
			require.NoError(t, err)
			require.Equal(t, agent.StatusDone, s.Status())
			done := lo.FilterMap(events.Events(), func(e agent.Event, _ int) (capability.CompactionCompleted, bool) {
				c, ok := e.(capability.CompactionCompleted)
				return c, ok
			})
			require.Len(t, done, 1)
			assert.Equal(t, tc.want, done[0].TokensBefore)
		})
	}
}
