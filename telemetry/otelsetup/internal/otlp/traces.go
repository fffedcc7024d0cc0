package otlp

import (
	"context"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
)

// Traces returns a span exporter.
func Traces(ctx context.Context) (sdktrace.SpanExporter, error) {
	s, err := newSender(signal{"TRACES", "v1/traces", "trace.v1.TraceService"})
	if err != nil {
		return nil, err
	}
	return otlptrace.New(ctx, spanClient{s})
}

// spanClient sends the requests that OpenTelemetry's own span exporter encodes.
type spanClient struct{ *sender }

func (c spanClient) Start(context.Context) error { return nil }

func (c spanClient) Stop(context.Context) error {
	c.close()
	return nil
}

// UploadTraces sends spans. TracesData has the same form as an export request.
func (c spanClient) UploadTraces(ctx context.Context, spans []*traces.ResourceSpans) error {
	return c.send(ctx, &traces.TracesData{ResourceSpans: spans})
}
