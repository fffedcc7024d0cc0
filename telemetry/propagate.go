package telemetry

import (
	"context"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Environ returns the environment variables that pass the span in ctx to a child process, as TRACEPARENT=… and, if set,
// TRACESTATE=…. Instrumented programs read them when they start. It is nil if the span is not sampled.
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

// FromEnviron returns ctx with the span that this process's environment names as its parent, so that runs become part
// of the parent process's trace. Lookup is usually os.Getenv.
func FromEnviron(ctx context.Context, lookup func(name string) string) context.Context {
	carrier := propagation.MapCarrier{}
	for _, field := range (propagation.TraceContext{}).Fields() {
		carrier[field] = lookup(strings.ToUpper(field))
	}
	return propagation.TraceContext{}.Extract(ctx, carrier)
}

// setHeaders sets the headers traceparent and tracestate for the span in ctx, sampled or not. Without a span it sets no
// header.
func setHeaders(ctx context.Context, h http.Header) {
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(h))
}

// Transport returns a RoundTripper that sets the headers on every request, for a tool's or driver's HTTP client. A nil
// base means http.DefaultTransport. It does not change a request that already has a traceparent.
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
