package otlp

import (
	"context"
	"time"

	"github.com/samber/lo"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
)

// LogBatch is a batch of log events from one process and one instrumentation scope.
type LogBatch struct {
	Resource *resource.Resource
	Scope    instrumentation.Scope
	Records  []*LogRecord
}

// LogRecord is a log event. Exporters read it and do not keep it.
type LogRecord struct {
	Time, Observed time.Time
	Event          string // the event's name
	Severity       int    // OpenTelemetry's severity, 1 to 24
	SeverityText   string
	Attributes     []attribute.KeyValue
	Span           trace.SpanContext // the event's span
}

// LogExporter sends log events to a collector.
type LogExporter struct{ *sender }

// Logs returns a log event exporter.
func Logs(context.Context) (LogExporter, error) {
	s, err := newSender(signal{"LOGS", "v1/logs", "logs.v1.LogsService"})
	return LogExporter{s}, err
}

// Shutdown makes the exporter refuse later exports.
func (e LogExporter) Shutdown(context.Context) error {
	e.close()
	return nil
}

// Export sends a batch. LogsData has the same form as an export request.
func (e LogExporter) Export(ctx context.Context, b LogBatch) error {
	if len(b.Records) == 0 {
		return nil
	}
	records := lo.Map(b.Records, func(r *LogRecord, _ int) *logs.LogRecord { return r.encode() })
	return e.send(ctx, &logs.LogsData{ResourceLogs: []*logs.ResourceLogs{{
		Resource: resourceOf(b.Resource), SchemaUrl: b.Resource.SchemaURL(),
		ScopeLogs: []*logs.ScopeLogs{{Scope: scopeOf(b.Scope), SchemaUrl: b.Scope.SchemaURL, LogRecords: records}},
	}}})
}

func (r *LogRecord) encode() *logs.LogRecord {
	out := &logs.LogRecord{
		TimeUnixNano: unixNanoseconds(r.Time), ObservedTimeUnixNano: unixNanoseconds(r.Observed),
		EventName: valid(r.Event), SeverityText: valid(r.SeverityText),
		SeverityNumber: logs.SeverityNumber(r.Severity), //nolint:gosec // the numbers are the same, 1 to 24
		Attributes:     pairs(r.Attributes), Flags: uint32(r.Span.TraceFlags()),
	}
	if id := r.Span.TraceID(); id.IsValid() {
		out.TraceId = id[:]
	}
	if id := r.Span.SpanID(); id.IsValid() {
		out.SpanId = id[:]
	}
	return out
}
