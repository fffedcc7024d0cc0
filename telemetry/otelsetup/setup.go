package otelsetup

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/samber/lo"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/grapnel-go/grapnel/telemetry"
)

// Config contains the program's own settings. The zero Config uses only the environment.
type Config struct {
	// Service is the service name if the environment does not set one. Empty means grapnel.
	Service string
	// Console is where console exporters write, one at a time. Nil means standard output.
	Console io.Writer
	// Spans are additional processors, such as one that writes a trace to a file. They get every span, regardless of
	// the environment, and are shut down with the rest.
	Spans []sdktrace.SpanProcessor
	// Bare keeps the decision and error texts, which agents with Reasons add, from the environment's exporters. Only
	// the processors in Spans get them. It is for a program that shows these texts to its user.
	Bare bool
}

// Start sets the global providers, the propagator and telemetry.SetDefaultLogs from the environment. It does not set up
// signals that the environment does not enable. Shutdown exports the remaining data and stops everything that Start
// started. It returns when that is done or ctx ends. After an error, nothing is running.
//
// A variable with a wrong value is a warning, reported with otel.Handle, and does not turn telemetry off. The rest of
// its value is used, or the default. Only an exporter whose name or endpoint is wrong is left out.
func Start(ctx context.Context, c Config) (shutdown func(context.Context) error, err error) {
	var end ending
	if disabled() {
		return endingOf(c.Spans).all, nil
	}
	defer func() {
		if err != nil {
			if len(end) == 0 {
				end = endingOf(c.Spans)
			}
			err = fmt.Errorf("setting up telemetry: %w", errors.Join(err, end.all(ctx)))
			shutdown = nil
		}
	}()
	propagator := propagatorOf(os.Getenv("OTEL_PROPAGATORS"))
	from, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", cmp.Or(c.Service, "grapnel")), attribute.String("service.instance.id", instance())),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if errors.Is(err, resource.ErrPartialResource) {
		otel.Handle(fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: expected name=value, separated by commas: using the other entries: %w", err))
		err = nil
	}
	if err != nil {
		return nil, err
	}
	checkNumbers()
	defer hideVariable("OTEL_RESOURCE_ATTRIBUTES")() // providers would read it again, and repeat the warnings
	console := &lockedWriter{to: c.Console}
	if c.Console == nil {
		console.to = os.Stdout
	}
	setup := &setup{ctx, c, from, console}
	traces, metrics, logs := setup.traces(&end), setup.metrics(&end), setup.logs(&end)
	if traces != nil {
		otel.SetTracerProvider(traces)
	}
	if metrics != nil {
		otel.SetMeterProvider(metrics)
	}
	if logs != nil {
		telemetry.SetDefaultLogs(logs)
	}
	otel.SetTextMapPropagator(propagator)
	return end.all, nil
}

// hideVariable removes a variable from the environment until restore is called.
func hideVariable(name string) (restore func()) {
	value, found := os.LookupEnv(name)
	if !found {
		return func() {}
	}
	_ = os.Unsetenv(name) // fails only for bad names
	return func() { _ = os.Setenv(name, value) }
}

// instance returns a random UUID, which distinguishes the measurements from several processes of a service.
func instance() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func disabled() bool {
	return strings.EqualFold(strings.TrimSpace(os.Getenv("OTEL_SDK_DISABLED")), "true")
}

// ending is the list of functions to shut down, in order.
type ending []func(context.Context) error

func endingOf(processors []sdktrace.SpanProcessor) ending {
	return lo.Map(processors, func(p sdktrace.SpanProcessor, _ int) func(context.Context) error { return p.Shutdown })
}

func (e ending) all(ctx context.Context) error {
	return errors.Join(lo.Map(e, func(end func(context.Context) error, _ int) error { return end(ctx) })...)
}

// setup is the common part of the three signals.
type setup struct {
	ctx  context.Context //nolint:containedctx // only during Start
	c    Config
	from *resource.Resource

	console io.Writer
}

func (s *setup) traces(end *ending) *sdktrace.TracerProvider {
	options := []sdktrace.TracerProviderOption{sdktrace.WithResource(s.from)}
	for _, p := range s.c.Spans {
		options = append(options, sdktrace.WithSpanProcessor(p))
	}
	exporters := exportersOf(s, traceExporters)
	if len(exporters)+len(s.c.Spans) == 0 {
		return nil
	}
	limits := batchLimitsFromEnv("OTEL_BSP_", 5000)
	for _, e := range exporters {
		if s.c.Bare {
			e = bareSpans{e}
		}
		options = append(options, sdktrace.WithBatcher(e, sdktrace.WithMaxQueueSize(limits.queue), sdktrace.WithMaxExportBatchSize(limits.batch),
			sdktrace.WithBatchTimeout(limits.delay), sdktrace.WithExportTimeout(limits.timeout)))
	}
	provider := sdktrace.NewTracerProvider(options...)
	*end = append(*end, provider.Shutdown)
	return provider
}

func (s *setup) metrics(end *ending) *sdkmetric.MeterProvider {
	exporters := exportersOf(s, metricExporters)
	if len(exporters) == 0 {
		return nil
	}
	options := []sdkmetric.Option{sdkmetric.WithResource(s.from)}
	for _, e := range exporters {
		options = append(options, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(e)))
	}
	provider := sdkmetric.NewMeterProvider(options...)
	*end = append(*end, provider.Shutdown)
	return provider
}

func (s *setup) logs(end *ending) *logHandler {
	exporters := exportersOf(s, logExporters)
	if len(exporters) == 0 {
		return nil
	}
	h, limits := &logHandler{bare: s.c.Bare}, batchLimitsFromEnv("OTEL_BLRP_", 1000)
	for _, e := range exporters {
		q := startLogQueue(e, s.from, limits)
		h.to = append(h.to, q)
		*end = append(*end, q.Shutdown)
	}
	return h
}

// propagatorOf returns the propagator for a list of names. It reports unknown names and ignores them.
func propagatorOf(names string) propagation.TextMapPropagator {
	var list []propagation.TextMapPropagator
	for _, name := range splitWords(cmp.Or(names, "tracecontext,baggage")) {
		switch name {
		case "tracecontext":
			list = append(list, propagation.TraceContext{})
		case "baggage":
			list = append(list, propagation.Baggage{})
		case "none":
		default:
			otel.Handle(fmt.Errorf("OTEL_PROPAGATORS: unknown propagator %q: use tracecontext, baggage or none", name))
		}
	}
	return propagation.NewCompositeTextMapPropagator(list...)
}

// splitWords returns the words of a comma-separated list.
func splitWords(list string) []string {
	return lo.Compact(lo.Map(strings.Split(list, ","), func(w string, _ int) string { return strings.ToLower(strings.TrimSpace(w)) }))
}
