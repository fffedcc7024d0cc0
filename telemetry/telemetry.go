package telemetry

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/semconv"
	"github.com/grapnel-go/grapnel/internal/version"
)

// captureVariable is the environment variable in which OpenTelemetry's conventions say whether content is recorded: see
// ContentFromEnv.
const captureVariable = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

// Config selects the destinations and the detail of telemetry. The zero Config uses the global providers and reports no
// content.
type Config struct {
	// Tracers and Meters receive spans and metrics. Nil means the global provider, even if it is set later.
	Tracers trace.TracerProvider
	Meters  metric.MeterProvider
	// Logs receives the log events. A record's message is the event's name, and its context has the event's span. Nil
	// means the handler from SetDefaultLogs, even if it is set later.
	Logs slog.Handler
	// Content adds content to spans: the instructions and messages that the model was shown, its replies, and the
	// arguments and results of tool calls, all after the hooks. Content implies Reasons.
	Content bool
	// Reasons adds decision and error texts to spans and log events. They can quote content.
	Reasons bool
}

// ContentFromEnv reports whether the environment enables content on spans:
// OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT is true, 1, span_only or span_and_event, in upper or
// lower case.
func ContentFromEnv() bool {
	switch strings.ToLower(os.Getenv(captureVariable)) {
	case "true", "1", "span_only", "span_and_event":
		return true
	}
	return false
}

// Telemetry instruments agents. It has a processor around the run, a pair of wrappers around the driver and one around
// the executor, which belong together. Capability UseTelemetry installs them. It is safe for concurrent use and can
// serve several agents.
type Telemetry struct {
	tracer  trace.Tracer
	logs    slog.Handler // nil for the default
	metrics metrics
	spans   spans
	content bool
	reasons bool
	runs    *agent.Scratch[watched]
}

// watched links a state to the record of its run.
type watched struct{ run *run } // nil if the run is not recorded

// New returns the instrumentation.
func New(c Config) *Telemetry {
	if c.Tracers == nil {
		c.Tracers = otel.GetTracerProvider()
	}
	if c.Meters == nil {
		c.Meters = otel.GetMeterProvider()
	}
	return &Telemetry{
		tracer: c.Tracers.Tracer(semconv.Scope, trace.WithInstrumentationVersion(version.Read())), logs: c.Logs,
		metrics: newMetrics(c.Meters.Meter(semconv.Scope, metric.WithInstrumentationVersion(version.Read()))),
		content: c.Content, reasons: c.Content || c.Reasons,
		runs: agent.NewScratch[watched](nil),
	}
}

// of returns the record of s's run, or nil.
func (t *Telemetry) of(s agent.State) *run {
	if !s.Observed() { // a recorded run has an observer
		return nil
	}
	return t.runs.Get(s).run
}

// errorType returns the value of error.type for an error.
func errorType(ctx context.Context, err error, otherwise agent.ErrorKind) string {
	kind := agent.KindOf(err)
	if kind == agent.KindUnknown || kind == agent.KindCancelled { // the cancelled operation may be inside the driver
		kind = ""
		if ctx.Err() != nil {
			kind = agent.KindCancelled
		}
	}
	return string(cmp.Or(kind, otherwise, semconv.Other))
}
