package main

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	nometric "go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/grapnel-go/grapnel/bench"
	"github.com/grapnel-go/grapnel/bench/bare"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/internal/semconv"
)

// contenders returns grapnel and, for the table of telemetry, variants of grapnel and of the bare loop.
func contenders() []bench.Contender {
	off := capability.UseTelemetry{Off: true}
	return []bench.Contender{
		contender(),
		withGuards(),
		variant("grapnel, off", "", off),
		byHand("bare, no-op", noop.NewTracerProvider()),
		variant("grapnel, no-op", "bare, no-op", capability.UseTelemetry{
			Tracers: noop.NewTracerProvider(), Meters: nometric.NewMeterProvider(),
		}),
		byHand("bare, not sampled", notSampled()),
		variant("grapnel, not sampled", "bare, not sampled", capability.UseTelemetry{Tracers: notSampled()}),
		byHand("bare, recording", recording(ended{})),
		variant("grapnel, recording", "bare, recording", capability.UseTelemetry{Tracers: recording(ended{})}),
	}
}

func variant(name, byHand string, u capability.UseTelemetry) bench.Contender {
	return bench.Contender{
		Name: name, Telemetry: &bench.Telemetry{Without: "grapnel, off", ByHand: byHand},
		Prepare: func(job bench.Job) (bench.Run, error) { return prepare(job, u, capability.UseGuards{Steps: -1}) },
	}
}

func byHand(name string, tracers trace.TracerProvider) bench.Contender {
	return bare.Instrumented(name, spans{tracers.Tracer("github.com/grapnel-go/grapnel/bench")})
}

func notSampled() trace.TracerProvider {
	return sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
}

// recording records every span and passes it to the processor when it ends. Sending spans costs the same for all
// contenders and is not measured.
func recording(p sdktrace.SpanProcessor) trace.TracerProvider {
	return sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(p))
}

// ended receives spans and drops them.
type ended struct{}

func (ended) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (ended) OnEnd(sdktrace.ReadOnlySpan)                     {}
func (ended) Shutdown(context.Context) error                  { return nil }
func (ended) ForceFlush(context.Context) error                { return nil }

// spans creates the same spans as package telemetry, with the same attributes, as a developer would write them into
// the loop.
type spans struct{ tracer trace.Tracer }

var (
	startRun = []trace.SpanStartOption{trace.WithAttributes(
		semconv.KeyOperation.String("invoke_agent"), semconv.KeyAgentName.String("bench"))}
	startChat = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		semconv.KeyOperation.String("chat"), semconv.KeyProvider.String(semconv.Other))}
	startTool = []trace.SpanStartOption{trace.WithAttributes(
		semconv.KeyOperation.String("execute_tool"), semconv.KeyToolName.String(bench.ToolName),
		semconv.KeyToolType.String("function"), semconv.KeyAgentName.String("bench"))}
	finished = map[string]attribute.KeyValue{
		"stop":       semconv.KeyFinishReasons.StringSlice([]string{"stop"}),
		"tool_calls": semconv.KeyFinishReasons.StringSlice([]string{"tool_calls"}),
	}
)

func (s spans) StartRun(ctx context.Context) context.Context {
	ctx, _ = s.tracer.Start(ctx, "invoke_agent bench", startRun...) //nolint:spancheck // it ends where the part does
	return ctx
}

func (s spans) EndRun(ctx context.Context, messages int) {
	span := trace.SpanFromContext(ctx)
	if span.IsRecording() {
		span.SetAttributes(semconv.KeyStatus.String("done"), semconv.KeySteps.Int(messages/2))
	}
	span.End()
}

func (s spans) StartChat(ctx context.Context) context.Context {
	ctx, _ = s.tracer.Start(ctx, "chat", startChat...) //nolint:spancheck // it ends where the part does
	return ctx
}

func (s spans) EndChat(ctx context.Context, messages int, finish string) {
	span := trace.SpanFromContext(ctx)
	if span.IsRecording() {
		span.SetAttributes(semconv.KeyConversation.String("bench"), semconv.KeyStep.Int(messages/2), finished[finish])
	}
	span.End()
}

func (s spans) StartTool(ctx context.Context, _ string) context.Context {
	ctx, _ = s.tracer.Start(ctx, "execute_tool "+bench.ToolName, startTool...) //nolint:spancheck // it ends where the part does
	return ctx
}

func (s spans) EndTool(ctx context.Context, call string, took time.Duration, err error) {
	span := trace.SpanFromContext(ctx)
	if span.IsRecording() {
		span.SetAttributes(semconv.KeyToolCallID.String(call), semconv.KeyOutcome.String("executed"), semconv.KeyAttempts.Int(1),
			semconv.KeyToolSeconds.Float64(took.Seconds()))
		if err != nil {
			span.RecordError(err)
		}
	}
	span.End()
}
