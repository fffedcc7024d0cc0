package process

import (
	"context"
	"strings"

	"github.com/samber/lo"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// TraceVars returns the environment variables that tell a program its parent span: TRACEPARENT and, if set,
// TRACESTATE. Programs with OpenTelemetry read them. It returns none if the span is not sampled.
func TraceVars(ctx context.Context) map[string]string {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return nil
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return lo.MapKeys(carrier, func(_, field string) string { return strings.ToUpper(field) })
}
