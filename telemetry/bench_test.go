package telemetry_test

import (
	"context"
	"log/slog"
	"testing"

	"go.opentelemetry.io/otel/metric"
	nometric "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	notrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/internal/semconv"
	"github.com/grapnel-go/grapnel/toolexec"
)

const benchSteps = 100

var (
	noTracers = notrace.NewTracerProvider()
	noMeters  = nometric.NewMeterProvider()
)

// looping is a model that wants the tool noop a number of times.
type looping struct{ step agent.Step }

func (d looping) Next(_ context.Context, s agent.State) mo.Result[agent.Step] {
	if s.RunStepCount() >= benchSteps {
		return mo.Ok(agent.Step{Message: agent.Assistant("done")})
	}
	return mo.Ok(d.step)
}

func looper(tb testing.TB, u capability.UseTelemetry) *agent.Agent {
	tb.Helper()
	noop := toolexec.Func("noop", "Does nothing.", func(context.Context, struct{}) (string, error) { return "ok", nil })
	driver := looping{agent.Step{
		Message: agent.Assistant("", agent.ToolCall{ID: "c1", Name: "noop", Arguments: "{}"}), Model: "small-1", ID: "r1",
		FinishReason: agent.FinishToolCalls, Usage: agent.Usage{InputTokens: 10, OutputTokens: 5},
	}}
	return builder.New().WithName("bench").WithModel("small").WithDriver(driver).With(capability.UseTools(noop), u).Build().MustGet()
}

// BenchmarkStep says what telemetry adds to a step, in time and allocations: compare
// with off.
func BenchmarkStep(b *testing.B) {
	recording := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(sdktrace.NewBatchSpanProcessor(discard{})))
	never := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	b.Cleanup(func() {
		_ = recording.Shutdown(context.Background())
		_ = meters.Shutdown(context.Background())
	})
	for _, bm := range []struct {
		name    string
		off     bool
		tracers trace.TracerProvider
		meters  metric.MeterProvider
		logs    slog.Handler
	}{
		{"off", true, nil, nil, nil},
		{"none", false, nil, nil, nil}, // the global providers, which are not set
		{"noop", false, noTracers, noMeters, slog.DiscardHandler},
		{"unsampled", false, never, nil, nil},
		{"spans", false, recording, nil, nil},
		{"metrics", false, nil, meters, nil},
		{"both", false, recording, meters, nil},
	} {
		b.Run(bm.name, func(b *testing.B) {
			a := looper(b, capability.UseTelemetry{Off: bm.off, Tracers: bm.tracers, Meters: bm.meters, Logs: bm.logs})
			b.ReportAllocs()
			for b.Loop() {
				if _, err := a.Run(context.Background(), agent.NewState(), agent.UserText("go")).Get(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchSteps, "ns/step")
		})
	}
}

// BenchmarkByHand measures the two spans of a step alone, as a good engineer writes them
// around the loop: what the SDK takes of the time of BenchmarkStep/spans.
func BenchmarkByHand(b *testing.B) {
	recording := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(sdktrace.NewBatchSpanProcessor(discard{})))
	b.Cleanup(func() { _ = recording.Shutdown(context.Background()) })
	tracer := recording.Tracer("by-hand")
	ctx, root := tracer.Start(b.Context(), "invoke_agent bench")
	b.Cleanup(func() { root.End() })
	b.ReportAllocs()
	for b.Loop() {
		_, chat := tracer.Start(ctx, "chat small", trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
			semconv.KeyOperation.String("chat"), semconv.KeyProvider.String("test"), semconv.KeyRequestModel.String("small")))
		chat.SetAttributes(semconv.KeyConversation.String("ses_1"), semconv.KeyStep.Int(1), semconv.KeyResponseModel.String("small-1"),
			semconv.KeyResponseID.String("r1"), semconv.KeyFinishReasons.StringSlice([]string{"tool_calls"}),
			semconv.KeyInputTokens.Int(10), semconv.KeyOutputTokens.Int(5))
		chat.End()
		_, call := tracer.Start(ctx, "execute_tool noop", trace.WithAttributes(
			semconv.KeyOperation.String("execute_tool"), semconv.KeyToolName.String("noop"), semconv.KeyToolType.String("function"),
			semconv.KeyAgentName.String("bench")))
		call.SetAttributes(semconv.KeyToolCallID.String("c1"), semconv.KeyOutcome.String("executed"), semconv.KeyAttempts.Int(1))
		call.End()
	}
}

// discard takes spans and drops them.
type discard struct{}

func (discard) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (discard) Shutdown(context.Context) error                             { return nil }
