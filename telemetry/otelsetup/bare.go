package otelsetup

import (
	"context"

	"github.com/samber/lo"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/grapnel-go/grapnel/internal/semconv"
)

// bareSpans is an exporter that does not get decision and error texts.
type bareSpans struct{ sdktrace.SpanExporter }

func (e bareSpans) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	return e.SpanExporter.ExportSpans(ctx, lo.Map(spans, func(s sdktrace.ReadOnlySpan, _ int) sdktrace.ReadOnlySpan { return bareSpan{s} }))
}

type bareSpan struct{ sdktrace.ReadOnlySpan }

func (s bareSpan) Attributes() []attribute.KeyValue {
	return lo.Reject(s.ReadOnlySpan.Attributes(), func(kv attribute.KeyValue, _ int) bool { return kv.Key == semconv.KeyReason })
}

// Status returns the error's class instead of its text.
func (s bareSpan) Status() sdktrace.Status {
	status := s.ReadOnlySpan.Status()
	if status.Code == codes.Error {
		set := attribute.NewSet(s.ReadOnlySpan.Attributes()...)
		v, _ := set.Value(semconv.KeyErrorType)
		status.Description = v.AsString()
	}
	return status
}
