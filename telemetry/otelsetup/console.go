package otelsetup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"

	"github.com/grapnel-go/grapnel/telemetry/otelsetup/internal/otlp"
)

// lockedWriter lets the exporters of several signals write to one writer, one at a time.
type lockedWriter struct {
	mu sync.Mutex
	to io.Writer
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}

// consoleLogs writes log events as JSON, one per line, with the names that OpenTelemetry's console exporter for Go
// uses.
type consoleLogs struct{ to io.Writer }

// consoleRecord is a line in JSON.
type consoleRecord struct {
	Timestamp         time.Time             `json:"Timestamp"`
	ObservedTimestamp time.Time             `json:"ObservedTimestamp"`
	EventName         string                `json:"EventName"`
	Severity          int                   `json:"Severity"`
	SeverityText      string                `json:"SeverityText"`
	Attributes        []attribute.KeyValue  `json:"Attributes"`
	TraceID           trace.TraceID         `json:"TraceID"`
	SpanID            trace.SpanID          `json:"SpanID"`
	TraceFlags        trace.TraceFlags      `json:"TraceFlags"`
	Resource          *resource.Resource    `json:"Resource"`
	Scope             instrumentation.Scope `json:"Scope"`
}

// Export writes a batch in one call, so that other writers do not write between its lines.
func (c consoleLogs) Export(_ context.Context, b otlp.LogBatch) error {
	var lines bytes.Buffer
	var wrong error
	for _, r := range b.Records {
		line, err := json.Marshal(consoleRecord{
			Timestamp: r.Time, ObservedTimestamp: r.Observed, EventName: r.Event, Severity: r.Severity, SeverityText: r.SeverityText,
			Attributes: r.Attributes, TraceID: r.Span.TraceID(), SpanID: r.Span.SpanID(), TraceFlags: r.Span.TraceFlags(),
			Resource: b.Resource, Scope: b.Scope,
		})
		if err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("log event %s: %w", r.Event, err))
			continue
		}
		lines.Write(line)
		lines.WriteByte('\n')
	}
	if _, err := c.to.Write(lines.Bytes()); err != nil {
		wrong = errors.Join(wrong, fmt.Errorf("writing log events: %w", err))
	}
	return wrong
}

// Shutdown returns nil: the program owns the writer.
func (consoleLogs) Shutdown(context.Context) error { return nil }
