package coordinator

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/internal/semconv"
	"github.com/grapnel-go/grapnel/internal/version"
)

const traceHeader = "traceparent"

// traceOf returns the span in ctx as durable.Traits have it. The run, runs that its hooks start, and runs that call its hooks join this trace, in
// every process.
func traceOf(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[traceHeader]
}

// withTrace returns ctx with the span that has submitted a run.
func withTrace(ctx context.Context, r durable.Run) context.Context {
	parent := r.Traits.Trace
	if parent == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{traceHeader: parent})
}

// recordEnd records on the span in ctx how its run has ended. Reasons may quote content, so they are not recorded.
func recordEnd(ctx context.Context, status durable.Status, reason agent.StopReason) {
	span := trace.SpanFromContext(ctx)
	span.SetAttributes(semconv.KeyStatus.String(string(status)), semconv.KeyStopReason.String(string(reason)))
	if status == durable.StatusFailed {
		span.SetStatus(codes.Error, string(reason))
	}
}

// endSpan ends the span of a run that was executed.
func endSpan(ctx context.Context, span trace.Span, s durable.Reader, id agent.RunID) {
	defer span.End()
	if !span.IsRecording() {
		return
	}
	// The store of a runner on another machine has only the runs that the runner holds.
	if r, err := s.Run(context.WithoutCancel(ctx), id); err == nil && r.Status.Ended() {
		recordEnd(trace.ContextWithSpan(ctx, span), r.Status, r.Reason)
	}
}

// startSpan starts the span of a run that calls hooks. The caller ends it.
func startSpan(ctx context.Context, r durable.Run) (context.Context, trace.Span) {
	kind := r.Kind
	if r.Phase != "" {
		kind = r.Phase
	}
	tracer := otel.GetTracerProvider().Tracer(semconv.Scope, trace.WithInstrumentationVersion(version.Read()))
	return tracer.Start(withTrace(ctx, r), string(kind)+" "+r.Name, trace.WithAttributes( //nolint:spancheck // the caller ends it
		semconv.KeyRunKind.String(string(r.Kind)), semconv.KeyRunName.String(r.Name), semconv.KeyRun.String(string(r.ID)),
	))
}
