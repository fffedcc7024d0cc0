package otelsetup

import (
	"context"
	"io"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
)

// LogExporter sends log events away.
type LogExporter = logExporter

// ConsoleLogs returns the exporter that writes lines of JSON.
func ConsoleLogs(to io.Writer) LogExporter { return consoleLogs{to} }

// LockWriter returns the writer that console exporters share.
func LockWriter(to io.Writer) io.Writer { return &lockedWriter{to: to} }

// StartLogs starts a handler of log events with that exporter, as Start does, with the limits
// of the environment.
func StartLogs(e LogExporter, bare bool) (h slog.Handler, shutdown func(context.Context) error) {
	q := startLogQueue(e, resource.NewSchemaless(attribute.String("service.name", "tester")), batchLimitsFromEnv("OTEL_BLRP_", 1000))
	return &logHandler{to: []*logQueue{q}, bare: bare}, q.Shutdown
}

// LogLimits returns the limits that the environment sets.
func LogLimits() (queue, batch int, delay, timeout time.Duration) {
	l := batchLimitsFromEnv("OTEL_BLRP_", 1000)
	return l.queue, l.batch, l.delay, l.timeout
}
