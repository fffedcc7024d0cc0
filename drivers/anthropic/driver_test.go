package anthropic_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/drivers/anthropic"
	"github.com/grapnel-go/grapnel/internal/modeltest"
)

var hello = agent.NewState(agent.UserText("hello"))

// TestThinkingGoesBack: what the model thought goes back unchanged and in its place,
// also after the state was parked.
func TestThinkingGoesBack(t *testing.T) {
	endpoint := modeltest.Golden(t, modeltest.ReadReply(t, "testdata/replies/stream-thinking.http"),
		modeltest.ReadReply(t, "testdata/replies/stream-unstreamed.http"))
	d := newDriver(t, endpoint.URL)
	step, err := d.Stream(t.Context(), hello, func(agent.Delta) {}).Get()
	require.NoError(t, err)
	s := hello.With(step.Message)
	for _, c := range step.Message.Calls() {
		s = s.With(answer(c, "", agent.Text("rain")))
	}
	parked, err := json.Marshal(s)
	require.NoError(t, err)
	var restored agent.State
	require.NoError(t, json.Unmarshal(parked, &restored))
	for _, s := range []agent.State{s, restored} {
		_, err = d.Stream(t.Context(), s, func(agent.Delta) {}).Get()
		require.NoError(t, err)
		asked := endpoint.Requests()[len(endpoint.Requests())-1]
		golden(t, "testdata/requests/thinking-goes-back.json", asked.Body)
	}
}

// TestAlteredThinking: a hook that changes calls or content does no harm to what is
// left, and what is no block of ours is left out.
func TestAlteredThinking(t *testing.T) {
	ours := agent.Reasoning("thought", `anthropic:7:{"type":"thinking","signature":"sig"}`)
	r := asked(t, hello.With(
		agent.AssistantContent(agent.ContentOf(ours, agent.Reasoning("", "anthropic:x:{}"), agent.Reasoning("", "anthropic:0"),
			agent.Reasoning("", `anthropic:0:"text"`), agent.Reasoning("plain", ""), agent.Text("So.")),
			agent.ToolCall{ID: "a", Name: "now"}),
		agent.UserText("go on"),
	))
	messages, err := json.Marshal(r.JSON(t)["messages"].([]any)[1])
	require.NoError(t, err)
	assert.JSONEq(t, `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"now","input":{}},
		{"type":"thinking","thinking":"thought","signature":"sig"},{"type":"text","text":"So."}]}`, string(messages))
}

// TestKeyGoesWhereItBelongs: the environment's key is for the vendor and for the
// environment's URL, and for no other.
func TestKeyGoesWhereItBelongs(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "sk-of-the-environment")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "token-of-the-environment")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Secret: of the environment")
	endpoint := modeltest.Golden(t, modeltest.Body(200, "application/json", good))
	ask := func(c anthropic.Config) http.Header {
		c.Model = "claude-test"
		client := &http.Client{Transport: &http.Transport{}}
		t.Cleanup(client.CloseIdleConnections)
		c.HTTPClient = client
		d, err := anthropic.New(c)
		require.NoError(t, err)
		require.NoError(t, d.Next(t.Context(), hello).Error())
		h := endpoint.Requests()[len(endpoint.Requests())-1].Header
		assert.NotContains(t, fmt.Sprint(h), "token-of-the-environment")
		assert.NotContains(t, h, "X-Secret")
		return h
	}
	assert.Empty(t, ask(anthropic.Config{BaseURL: endpoint.URL}).Get("X-Api-Key"), "a base URL of one's own")
	assert.Equal(t, "sk-given", ask(anthropic.Config{BaseURL: endpoint.URL, APIKey: "sk-given"}).Get("X-Api-Key"))
	h := ask(anthropic.Config{BaseURL: endpoint.URL, Header: http.Header{"Authorization": {"Bearer other"}}})
	assert.Equal(t, "Bearer other", h.Get("Authorization"))
	t.Setenv("ANTHROPIC_BASE_URL", endpoint.URL)
	assert.Equal(t, "sk-of-the-environment", ask(anthropic.Config{}).Get("X-Api-Key"), "the environment's URL")
	assert.Equal(t, "sk-given", ask(anthropic.Config{APIKey: "sk-given"}).Get("X-Api-Key"))
}

func TestNew(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "")
	t.Setenv("ANTHROPIC_BASE_URL", "")
	for want, c := range map[string]anthropic.Config{
		"no key":                        {Model: "claude-opus-5"},
		"no model":                      {APIKey: "sk"},
		`unknown cache "2h"`:            {Model: "claude-opus-5", APIKey: "sk", Cache: "2h"},
		"BaseURL is not the address":    {Model: "claude-opus-5", BaseURL: "localhost:4000"},
		"BaseURL is not a URL":          {Model: "claude-opus-5", BaseURL: "http://me:secret@\x00"},
		"has a query or a fragment":     {Model: "claude-opus-5", BaseURL: "https://me:secret@example.com?key=1"},
		"the key contains a line break": {Model: "claude-opus-5", APIKey: "sk-\n1"},
	} {
		_, err := anthropic.New(c)
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "secret")
	}
	_, err := anthropic.New(anthropic.Config{Cache: "2h"})
	for _, want := range []string{"no key", "no model", `unknown cache "2h"`} {
		assert.ErrorContains(t, err, want, "all at once")
	}
}

func TestFeatures(t *testing.T) {
	d, err := anthropic.New(anthropic.Config{Model: "claude-haiku-4-5-20251001", APIKey: "sk-secret"})
	require.NoError(t, err)
	assert.Equal(t, agent.Features{
		Provider: "anthropic", Model: "claude-haiku-4-5-20251001", Endpoint: "https://api.anthropic.com", Streaming: true, Tools: true,
		ParallelCalls: true, StructuredOutput: true, Images: true, Files: true, Reasoning: true,
		ContextTokens: 200_000, MaxOutputTokens: 64_000, Priced: true,
	}, d.Features())
	assert.Equal(t, "anthropic/claude-haiku-4-5-20251001", d.String())

	d, err = anthropic.New(anthropic.Config{
		Model: "claude-haiku-4-5", BaseURL: "https://me:secret@example.com/claude/", Prices: nil,
		Features: func(f *agent.Features) { f.Provider, f.StructuredOutput, f.Priced = "example", false, true },
	})
	require.NoError(t, err)
	f := d.Features()
	assert.Equal(t, "https://example.com/claude", f.Endpoint)
	assert.Equal(t, "example", f.Provider)
	assert.False(t, f.StructuredOutput)
	assert.False(t, f.Priced, "list prices are the vendor's")
	for _, d := range []any{d, f} {
		for _, verb := range []string{"%v", "%+v"} {
			assert.NotContains(t, fmt.Sprintf(verb, d), "secret")
		}
	}
}

// TestErrors: a failed call's error describes more than its kind.
func TestErrors(t *testing.T) {
	endpoint := modeltest.Golden(t, modeltest.Body(401, "application/json",
		`{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key `+modeltest.Key+`"},"request_id":"req_body"}`).
		With("Request-Id", "req_head"))
	err := newDriver(t, endpoint.URL).Next(t.Context(), hello).Error()
	require.EqualError(t, err, `asking anthropic model "claude-test": not authorized (401 authentication_error): invalid x-api-key [redacted]; `+
		`check that the key belongs to this service and is still valid [request req_head]`)
	failure, ok := errors.AsType[*drivers.Error](err)
	require.True(t, ok)
	assert.Equal(t, 401, failure.Status)

	endpoint = modeltest.Golden(t, modeltest.SSE(event(start),
		event(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_body"}`)))
	err = newDriver(t, endpoint.URL).Stream(t.Context(), hello, func(agent.Delta) {}).Error()
	require.EqualError(t, err, `asking anthropic model "claude-test": the service is overloaded (overloaded_error): Overloaded [request req_body]`)

	err = newDriver(t, modeltest.Golden(t, modeltest.SSE(event(start), event(`{"type":"content_block_delta","index":3,"delta":{}}`))).URL).
		Stream(t.Context(), hello, func(agent.Delta) {}).Error()
	assert.Equal(t, agent.KindBrokenStream, agent.KindOf(err))
	assert.ErrorContains(t, err, "content block 3 before its beginning")

	nameless := `{"type":"tool_use","id":"toolu_1","name":"","input":{}}`
	for _, reply := range []modeltest.Reply{
		modeltest.Body(200, "application/json", `{"type":"message","content":[`+nameless+`],"stop_reason":"tool_use"}`),
		modeltest.SSE(events(start, `{"type":"content_block_start","index":0,"content_block":`+nameless+`}`, ends("tool_use"), stop)...),
	} {
		err = newDriver(t, modeltest.Golden(t, reply).URL).Stream(t.Context(), hello, func(agent.Delta) {}).Error()
		assert.Equal(t, agent.KindBrokenStream, agent.KindOf(err), "%v", err)
	}
}

// TestRedirect: the key is not taken elsewhere.
func TestRedirect(t *testing.T) {
	elsewhere := modeltest.Golden(t, modeltest.Body(200, "application/json", good))
	for _, status := range []int{301, 307, 308} {
		endpoint := modeltest.Golden(t, modeltest.Reply{Status: status, Header: http.Header{"Location": {elsewhere.URL + "/v1/messages"}}})
		err := newDriver(t, endpoint.URL).Next(t.Context(), hello).Error()
		assert.Equal(t, agent.KindBadRequest, agent.KindOf(err))
		assert.ErrorContains(t, err, "redirects are not followed")
	}
	assert.Empty(t, elsewhere.Requests())
}

// TestLongReplies: what may take longer than the service waits is streamed, also by
// Next, unless the endpoint does not stream.
func TestLongReplies(t *testing.T) {
	whole := modeltest.ReadReply(t, "testdata/replies/stream-thinking.http")
	streams := func(body map[string]any) bool { return body["stream"] == true }
	for _, c := range []struct {
		model     string
		limit     int
		features  func(*agent.Features)
		max       float64
		streaming bool
	}{
		{model: "claude-opus-5", max: 32_000, streaming: true},
		{model: "claude-opus-5", limit: 21_333, max: 21_333},
		{model: "claude-test", max: 8_192},
		{model: "claude-test", limit: 21_334, max: 21_334, streaming: true},
		{model: "claude-opus-5", features: func(f *agent.Features) { f.Streaming = false }, max: 32_000},
	} {
		reply := modeltest.Body(200, "application/json", good)
		if c.streaming {
			reply = whole
		}
		endpoint := modeltest.Golden(t, reply)
		d := newDriver(t, endpoint.URL, func(config *anthropic.Config) { config.Features = c.features })
		s := hello.WithRequest(agent.Request{Model: c.model, MaxOutputTokens: c.limit})
		require.NoError(t, d.Next(t.Context(), s).Error())
		body := endpoint.Requests()[0].JSON(t)
		assert.Equal(t, c.streaming, streams(body), "%v", c)
		assert.InDelta(t, c.max, body["max_tokens"], 0)
	}
}

// TestNoStreaming: a driver whose endpoint does not stream tells of the whole reply.
func TestNoStreaming(t *testing.T) {
	endpoint := modeltest.Golden(t, modeltest.Body(200, "application/json", good))
	d := newDriver(t, endpoint.URL, func(c *anthropic.Config) { c.Features = func(f *agent.Features) { f.Streaming = false } })
	var text strings.Builder
	require.NoError(t, d.Stream(t.Context(), hello, func(d agent.Delta) { text.WriteString(d.Text) }).Error())
	assert.Equal(t, "ok", text.String())
	assert.Equal(t, false, endpoint.Requests()[0].JSON(t)["stream"])
}

// TestCancelled: the error is the cause for which the context ended.
func TestCancelled(t *testing.T) {
	why := errors.New("enough")
	reply := modeltest.SSE(events(start, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Good"}}`)...)
	reply.Then = modeltest.Hangs
	endpoint := modeltest.Golden(t, reply)
	ctx, cancel := context.WithCancelCause(t.Context())
	err := newDriver(t, endpoint.URL).Stream(ctx, hello, func(agent.Delta) { cancel(why) }).Error()
	require.ErrorIs(t, err, why)
	require.ErrorIs(t, newDriver(t, endpoint.URL).Next(ctx, hello).Error(), why)
}

// TestConnectionServesTheNextStep: a stream is read to its end, so that its connection
// can be used again; but not waited for where the end does not come.
func TestConnectionServesTheNextStep(t *testing.T) {
	frames := modeltest.ReadReply(t, "testdata/replies/stream-thinking.http")
	d := newDriver(t, modeltest.Golden(t, frames).URL)
	reused := 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		if i.Reused {
			reused++
		}
	}})
	for range 3 {
		require.NoError(t, d.Stream(ctx, hello, func(agent.Delta) {}).Error())
	}
	assert.Equal(t, 2, reused)

	frames.Then = modeltest.Hangs
	began := time.Now()
	require.NoError(t, newDriver(t, modeltest.Golden(t, frames).URL).Stream(t.Context(), hello, func(agent.Delta) {}).Error())
	assert.Less(t, time.Since(began), time.Minute)
}

// TestRunWithThinking: a whole run over HTTP, with a tool that fails and one that the
// model calls wrongly.
func TestRunWithThinking(t *testing.T) {
	call := func(arguments string) []string {
		quoted, err := json.Marshal(arguments)
		require.NoError(t, err)
		return events(start,
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"weather","input":{}}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":`+string(quoted)+`}}`,
			`{"type":"content_block_stop","index":1}`, ends("tool_use"), stop)
	}
	endpoint := modeltest.Golden(t, modeltest.SSE(call(`{"city": "Be`)...), modeltest.SSE(call(`{"city":"Bern"}`)...),
		modeltest.ReadReply(t, "testdata/replies/whole-window.http"))
	executor := agenttest.Tools{"weather": func(_ context.Context, c agent.ToolCall) (string, error) {
		var in struct{ City string }
		if err := json.Unmarshal([]byte(c.Arguments), &in); err != nil {
			return "", err
		}
		return "rain in " + in.City, nil
	}}.Executor()
	a, err := agent.New(agent.Config{
		Driver: newDriver(t, endpoint.URL), Executor: executor, Request: agent.Request{Tools: agent.ToolsOf(weather)},
	}).Get()
	require.NoError(t, err)
	var final agent.State
	for p, err := range a.Stream(t.Context(), agent.NewState(), agent.UserText("rain?")) {
		require.NoError(t, err)
		if p.Delta == nil {
			final = p.State
		}
	}
	assert.Equal(t, "The first and the second.", final.Answer())
	require.Len(t, executor.Calls(), 2)
	assert.Equal(t, `{"city": "Be`, executor.Calls()[0].Arguments)
	golden(t, "testdata/requests/after-a-malformed-call.json", endpoint.Requests()[2].Body)
}

// TestOwnClient: without a client of one's own the driver has one that is shared.
func TestOwnClient(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Connection", "close")
		_, _ = w.Write([]byte(good))
	}))
	defer server.Close()
	d, err := anthropic.New(anthropic.Config{Model: "claude-test", BaseURL: server.URL})
	require.NoError(t, err)
	require.NoError(t, d.Next(t.Context(), hello).Error())
}
