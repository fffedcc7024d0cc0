package pipeline

import (
	"cmp"
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

// labelTrace is a session's first span. The spans for its iterations, its parallel stages and the pipelines that its hooks start
// are below it, in any process.
const labelTrace = "pipeline.traceparent"

const traceHeader = "traceparent"

// traceOf returns the span in ctx as the W3C header traceparent has it; empty for none.
func traceOf(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[traceHeader]
}

// withTrace returns ctx below a span of another process; empty changes nothing.
func withTrace(ctx context.Context, parent string) context.Context {
	if parent == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{traceHeader: parent})
}

// inSpan calls execute in a span for this process's work on the session. If the session has ended, the span records how. The
// session's first span is above all others.
func (m *machine) inSpan(ctx context.Context, execute func(context.Context) error) error {
	tracer := otel.GetTracerProvider().Tracer(semconv.Scope, trace.WithInstrumentationVersion(version.Read()))
	ctx, span := tracer.Start(withTrace(ctx, m.trace), string(m.about.Kind)+" "+m.Name, trace.WithAttributes(
		semconv.KeyRunKind.String(string(m.about.Kind)), semconv.KeyRunName.String(m.Name), semconv.KeyRun.String(string(m.about.ID)),
		semconv.KeyConversation.String(m.name),
	))
	defer span.End()
	m.trace = cmp.Or(m.trace, traceOf(ctx))
	err := execute(ctx)
	if m.stored.Ended() {
		span.SetAttributes(semconv.KeyStatus.String(string(m.stored)))
		if m.stored != durable.StatusCompleted && m.at.End != nil {
			span.SetStatus(codes.Error, string(m.at.End.Reason))
		}
	}
	return err
}

// addTrace puts a job's spans below the session's spans.
func (m *machine) addTrace(job *durable.Job) {
	if m.trace == "" {
		return
	}
	if job.Labels == nil {
		job.Labels = map[string]string{}
	}
	job.Labels[labelTrace] = m.trace
}

var _ agent.Observer = (*eventLog)(nil)
