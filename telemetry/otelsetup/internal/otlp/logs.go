package otlp

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
)

// Logs returns an exporter of log records.
func Logs(context.Context) (sdklog.Exporter, error) {
	s, err := newSender(signal{"LOGS", "v1/logs"})
	if err != nil {
		return nil, err
	}
	return logExporter{s}, nil
}

type logExporter struct{ *sender }

func (e logExporter) ForceFlush(context.Context) error { return nil }

func (e logExporter) Shutdown(context.Context) error {
	e.close()
	return nil
}

func (e logExporter) Export(ctx context.Context, records []sdklog.Record) error {
	if len(records) == 0 {
		return nil
	}
	return e.send(ctx, logsOf(records))
}

// logsOf groups records by who made them: resources, and scopes in these, in the order in which they come.
func logsOf(records []sdklog.Record) *logs.LogsData {
	type scopeKey struct {
		resource attribute.Distinct
		scope    instrumentation.Scope
	}
	out := &logs.LogsData{}
	byResource, byScope := map[attribute.Distinct]*logs.ResourceLogs{}, map[scopeKey]*logs.ScopeLogs{}
	for _, r := range records {
		key := scopeKey{r.Resource().Equivalent(), r.InstrumentationScope()}
		of := byResource[key.resource]
		if of == nil {
			of = &logs.ResourceLogs{Resource: resourceOf(r.Resource()), SchemaUrl: r.Resource().SchemaURL()}
			byResource[key.resource] = of
			out.ResourceLogs = append(out.ResourceLogs, of)
		}
		in := byScope[key]
		if in == nil {
			in = &logs.ScopeLogs{Scope: scopeOf(key.scope), SchemaUrl: key.scope.SchemaURL}
			byScope[key] = in
			of.ScopeLogs = append(of.ScopeLogs, in)
		}
		in.LogRecords = append(in.LogRecords, logOf(r))
	}
	return out
}

func logOf(r sdklog.Record) *logs.LogRecord {
	out := &logs.LogRecord{
		TimeUnixNano: nanoseconds(r.Timestamp()), ObservedTimeUnixNano: nanoseconds(r.ObservedTimestamp()),
		EventName: r.EventName(), SeverityText: r.SeverityText(),
		SeverityNumber: logs.SeverityNumber(r.Severity()),                                                 //nolint:gosec // the numbers are the same, 1 to 24
		Body:           anyValue(r.Body()), DroppedAttributesCount: uint32(max(r.DroppedAttributes(), 0)), //nolint:gosec // no record has so many
		Flags: uint32(r.TraceFlags()),
	}
	r.WalkAttributes(func(kv attribute.KeyValue) bool {
		out.Attributes = append(out.Attributes, &common.KeyValue{Key: string(kv.Key), Value: anyValue(kv.Value)})
		return true
	})
	if id := r.TraceID(); id.IsValid() {
		out.TraceId = id[:]
	}
	if id := r.SpanID(); id.IsValid() {
		out.SpanId = id[:]
	}
	return out
}
