package telemetry

import (
	"context"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Environ returns the variables that tell a child process which span it belongs to, as
// TRACEPARENT=… and, where there is one, TRACESTATE=…: what a program that is
// instrumented reads at its start. It is nil when the span in ctx is not sampled.
func Environ(ctx context.Context) []string {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return nil
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	var out []string
	for _, field := range (propagation.TraceContext{}).Fields() {
		if value := carrier[field]; value != "" {
			out = append(out, strings.ToUpper(field)+"="+value)
		}
	}
	return out
}

// FromEnviron returns ctx with the span that the environment of this process names
// as its parent, so that runs become part of the trace of who started the process.
// Lookup is os.Getenv.
func FromEnviron(ctx context.Context, lookup func(name string) string) context.Context {
	carrier := propagation.MapCarrier{}
	for _, field := range (propagation.TraceContext{}).Fields() {
		carrier[field] = lookup(strings.ToUpper(field))
	}
	return propagation.TraceContext{}.Extract(ctx, carrier)
}

// setHeaders sets the headers traceparent and tracestate to the span in ctx, sampled or
// not. Without a span it sets none.
func setHeaders(ctx context.Context, h http.Header) {
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(h))
}

// Transport returns a RoundTripper that sets the headers on every request, for the HTTP
// client of a tool or of a driver. Nil means http.DefaultTransport. Of a request
// that has a traceparent, nothing is changed.
func Transport(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return transport{base}
}

type transport struct{ base http.RoundTripper }

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Traceparent") == "" && trace.SpanContextFromContext(r.Context()).IsValid() {
		r = r.Clone(r.Context())
		setHeaders(r.Context(), r.Header)
	}
	return t.base.RoundTrip(r)
}
