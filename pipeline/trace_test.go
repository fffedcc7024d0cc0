package pipeline_test

import (
	"context"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/durable/gate"
	"github.com/grapnel-go/grapnel/pipeline"
)

// measured lets a test read what is reported to the global providers.
func measured(t *testing.T) (spans *tracetest.InMemoryExporter, count func(metric string) int64) {
	t.Helper()
	spans = tracetest.NewInMemoryExporter()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	reader := sdkmetric.NewManualReader()
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	before, metersBefore := otel.GetTracerProvider(), otel.GetMeterProvider()
	otel.SetTracerProvider(tracers)
	otel.SetMeterProvider(meters)
	t.Cleanup(func() {
		otel.SetTracerProvider(before)
		otel.SetMeterProvider(metersBefore)
		assert.NoError(t, tracers.Shutdown(context.WithoutCancel(t.Context())))
		assert.NoError(t, meters.Shutdown(context.WithoutCancel(t.Context())))
	})
	return spans, func(metric string) (sum int64) {
		var all metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(t.Context(), &all))
		for _, scope := range all.ScopeMetrics {
			for _, m := range scope.Metrics {
				if m.Name != metric {
					continue
				}
				switch data := m.Data.(type) {
				case metricdata.Sum[int64]:
					for _, p := range data.DataPoints {
						sum += p.Value
					}
				case metricdata.Histogram[float64]:
					for _, p := range data.DataPoints {
						sum += int64(p.Count)
					}
				}
			}
		}
		return sum
	}
}

// Pipeline hooks have spans below the session's span, and are measured like an agent's hooks. A firing that waits for a gate and is
// repeated counts once. All spans in a session are in one trace.
func TestSpansOfHooks(t *testing.T) {
	spans, count := measured(t)
	b := newBench(t)
	b.host = action.Host{Parks: true}
	run := b.submit("name: p\nstages:\n" + counted("work", 1) + `
hooks:
  on_iteration_start: {id: begin, type: shell, command: 'true', await: true}
  on_iteration_complete:
    - {id: first, type: shell, command: 'true', await: true}
    - {id: wait, type: gate, by: file, file: go, existing: true, await: true}
    - {id: broken, type: shell, command: 'exit 3', await: true}
  on_stage_complete: {id: enough, decision: stop, reason: it is late}
`)
	b.write("work/go", "")
	s := b.finish(run.ID, gate.Options{})
	require.Equal(t, pipeline.Aborted, s.Reason, s.Error)

	all := spans.GetSpans()
	sessions := lo.Filter(all, func(s tracetest.SpanStub, _ int) bool { return s.Name == "pipeline p" })
	require.NotEmpty(t, sessions)
	last := sessions[len(sessions)-1]
	assert.Equal(t, codes.Error, last.Status.Code)
	assert.Equal(t, "aborted", last.Status.Description)
	var names []string
	for _, s := range all {
		assert.Equal(t, all[0].SpanContext.TraceID(), s.SpanContext.TraceID(), s.Name)
		if s.Name == "pipeline p" {
			continue
		}
		names = append(names, s.Name)
		assert.True(t, lo.ContainsBy(sessions, func(of tracetest.SpanStub) bool { return of.SpanContext.SpanID() == s.Parent.SpanID() }), s.Name)
	}
	assert.Equal(t, []string{
		"hook IterationStart pipeline.p/begin", "hook IterationComplete pipeline.p/first", "hook IterationComplete pipeline.p/wait",
		"hook IterationComplete pipeline.p/broken", "hook StageComplete pipeline.p/enough",
	}, names)
	assert.EqualValues(t, 5, count("grapnel.hook.duration"))
	assert.EqualValues(t, 1, count("grapnel.hook.errors"))
}
