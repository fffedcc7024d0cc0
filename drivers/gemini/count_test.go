package gemini_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
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
	"github.com/grapnel-go/grapnel/drivers/gemini"
	"github.com/grapnel-go/grapnel/internal/modeltest"
)

var _ capability.TokenCounter = (*gemini.Driver)(nil)

// What is counted is the whole of what Next would send.
func TestCountTokens(t *testing.T) {
	for name, request := range map[string]agent.Request{
		"nothing but messages": {},
		"all": {
			Instructions: "Be brief.", Temperature: mo.Some(0.5),
			Tools: agent.ToolsOf(agent.ToolSpec{Name: "now", Description: "Says <b>when</b> it is."}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := agent.NewState(agent.UserText("hello"), agent.Assistant("hi"), agent.UserText("go on")).WithRequest(request)
			d, e := newDriver(t, gemini.Config{})
			require.NoError(t, d.Next(t.Context(), s).Error())
			sent := e.Requests()[0].JSON(t)
			sent["model"] = "models/gemini-3.8-flash"

			d, e = newDriver(t, gemini.Config{}, modeltest.Body(200, "application/json", `{"totalTokens":2095}`))
			n, err := d.CountTokens(t.Context(), s)
			require.NoError(t, err)
			assert.EqualValues(t, 2095, n)
			require.Len(t, e.Requests(), 1)
			assert.Equal(t, "/v1beta/models/gemini-3.8-flash:countTokens", e.Requests()[0].Path)
			assert.Equal(t, modeltest.Key, e.Requests()[0].Header.Get("X-Goog-Api-Key"))
			assert.Equal(t, map[string]any{"generateContentRequest": sent}, e.Requests()[0].JSON(t))
		})
	}
}

func TestCountTokensFails(t *testing.T) {
	hello := agent.NewState(agent.UserText("hello"))
	for name, tc := range map[string]struct {
		reply modeltest.Reply
		kind  agent.ErrorKind
	}{
		"not known": {refusal(404, "NOT_FOUND", "no", ""), agent.KindBadRequest},
		"too often": {refusal(429, "RESOURCE_EXHAUSTED", "no", ""), agent.KindRateLimit},
		"no JSON":   {modeltest.Body(200, "text/html", "<html>"), agent.KindBrokenStream},
		"no count":  {modeltest.Body(200, "application/json", `{}`), agent.KindBrokenStream},
		"no number": {modeltest.Body(200, "application/json", `{"totalTokens":"many"}`), agent.KindBrokenStream},
	} {
		t.Run(name, func(t *testing.T) {
			d, e := newDriver(t, gemini.Config{}, tc.reply)
			_, err := d.CountTokens(t.Context(), hello)
			failure := new(drivers.Error)
			require.ErrorAs(t, err, &failure)
			assert.Equal(t, tc.kind, failure.Kind, "%v", err)
			assert.Len(t, e.Requests(), 1, "nothing is asked twice")
		})
	}
	d, e := newDriver(t, gemini.Config{}, modeltest.Body(200, "application/json", `{"totalTokens":1}`))
	require.ErrorContains(t, lo.T2(d.CountTokens(t.Context(), hello.WithRequest(agent.Request{Model: "a?b"}))).B, "is not a model name")
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	require.ErrorIs(t, lo.T2(d.CountTokens(ctx, hello)).B, gone)
	assert.Empty(t, e.Requests(), "neither is sent")
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
		"it counts":       {200, `{"totalTokens":5000}`, 5000},
		"it does not":     {404, `{"error":{"type":"not_found_error","message":"no such page"}}`, estimate},
		"it says nothing": {200, `{}`, estimate},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if strings.HasSuffix(r.URL.Path, ":countTokens") {
					w.WriteHeader(tc.status)
					_, _ = w.Write([]byte(tc.answer))
					return
				}
				_, _ = w.Write([]byte(service.Whole.Body))
			}))
			t.Cleanup(server.Close)
			events := agenttest.Record()
			a := builder.New().WithDriver(service.New(t, server.URL, server.Client())).WithObserver(events).With(capability.UseCompaction{
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
