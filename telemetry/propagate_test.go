package telemetry_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/grapnel-go/grapnel/telemetry"
)

func within(t *testing.T, flags trace.TraceFlags) context.Context {
	t.Helper()
	state, err := trace.ParseTraceState("vendor=1")
	require.NoError(t, err)
	return trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: flags, TraceState: state,
	}))
}

const parent = "00-01000000000000000000000000000000-0200000000000000-0"

func TestEnviron(t *testing.T) {
	assert.Equal(t, []string{"TRACEPARENT=" + parent + "1", "TRACESTATE=vendor=1"}, telemetry.Environ(within(t, trace.FlagsSampled)))
	assert.Nil(t, telemetry.Environ(within(t, 0)), "not sampled")
	assert.Nil(t, telemetry.Environ(t.Context()), "no span")
}

func TestFromEnviron(t *testing.T) {
	has := map[string]string{"TRACEPARENT": parent + "1", "TRACESTATE": "vendor=1"}
	got := trace.SpanContextFromContext(telemetry.FromEnviron(t.Context(), func(name string) string { return has[name] }))
	assert.Equal(t, trace.SpanID{2}, got.SpanID())
	assert.True(t, got.IsRemote() && got.IsSampled())
	assert.Equal(t, "1", got.TraceState().Get("vendor"))

	none := telemetry.FromEnviron(t.Context(), func(string) string { return "nonsense" })
	assert.False(t, trace.SpanContextFromContext(none).IsValid())
}

func TestTransport(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Traceparent")+" "+r.Header.Get("Tracestate"))
	}))
	defer server.Close()
	client := server.Client()
	client.Transport = telemetry.Transport(client.Transport)
	send := func(ctx context.Context, own string) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		require.NoError(t, err)
		if own != "" {
			r.Header.Set("Traceparent", own)
		}
		response, err := client.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, own, r.Header.Get("Traceparent"), "the caller's request stays as it is")
	}
	send(within(t, trace.FlagsSampled), "")
	send(within(t, 0), "")
	send(within(t, 0), "mine")
	send(t.Context(), "")
	assert.Equal(t, []string{parent + "1 vendor=1", parent + "0 vendor=1", "mine ", " "}, got)
}
