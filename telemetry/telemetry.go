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

// captureVariable is the environment variable of the conventions that asks for
// content: see ContentFromEnv.
const captureVariable = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

// Config says where telemetry goes and how much it tells. The zero Config goes to
// the global providers and tells no content.
type Config struct {
	// Tracers and Meters are where spans and metrics go. Nil means the global provider,
	// also one that is set later.
	Tracers trace.TracerProvider
	Meters  metric.MeterProvider
	// Logs receives the log events: the message of a record is the name of the event, and
	// the context has its span. Nil means the handler that SetDefaultLogs sets, also later.
	Logs slog.Handler
	// Content puts on spans what was said: instructions and messages as the model
	// was shown them, its replies, the arguments and results of tool calls as hooks
	// left them. It includes Reasons.
	Content bool
	// Reasons puts on spans and log events the sentences of decisions and errors.
	// They may quote what they are about.
	Reasons bool
}

// ContentFromEnv reports whether the environment asks for content on spans: when
// OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT is true, 1, span_only or span_and_event, in any case.
func ContentFromEnv() bool {
	switch strings.ToLower(os.Getenv(captureVariable)) {
	case "true", "1", "span_only", "span_and_event":
		return true
	}
	return false
}

// Telemetry is the instrumentation of agents: a processor around the run, a pair
// of wrappers around the driver and one around the executor, which belong together.
// Capability UseTelemetry puts them in their places. It is safe for concurrent use
// and may serve several agents.
type Telemetry struct {
	tracer  trace.Tracer
	logs    slog.Handler // nil means the default
	metrics metrics
	spans   spans
	content bool
	reasons bool
	runs    *agent.Scratch[watched]
}

// watched leads from a state to what is recorded of its run.
type watched struct{ run *run } // nil: nothing is

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

// of returns what is recorded of the run that s belongs to; nil: nothing.
func (t *Telemetry) of(s agent.State) *run {
	if !s.Observed() { // it would listen
		return nil
	}
	return t.runs.Get(s).run
}

// errorType returns what error.type says of an error.
func errorType(ctx context.Context, err error, otherwise agent.ErrorKind) string {
	kind := agent.KindOf(err)
	if kind == agent.KindUnknown || kind == agent.KindCancelled { // what was cancelled may be within the driver
		kind = ""
		if ctx.Err() != nil {
			kind = agent.KindCancelled
		}
	}
	return string(cmp.Or(kind, otherwise, semconv.Other))
}
