package process

import (
	"context"
	"strings"

	"github.com/samber/lo"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// TraceVars tells a program which span it is part of, in the variables that programs look at which are instrumented
// with OpenTelemetry: TRACEPARENT and, where there is one, TRACESTATE. There are none when the span is not sampled.
func TraceVars(ctx context.Context) map[string]string {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return nil
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return lo.MapKeys(carrier, func(_, field string) string { return strings.ToUpper(field) })
}
