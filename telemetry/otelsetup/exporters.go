package otelsetup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/grapnel-go/grapnel/telemetry/otelsetup/internal/otlp"
)

// signal describes how one signal's exporters are named and created.
type signal[E interface {
	Shutdown(ctx context.Context) error
}] struct {
	name    string // the name in variables
	otlp    func(context.Context) (E, error)
	console func(io.Writer) (E, error)
}

var (
	traceExporters = signal[sdktrace.SpanExporter]{
		"TRACES",
		otlp.Traces,
		func(w io.Writer) (sdktrace.SpanExporter, error) { return stdouttrace.New(stdouttrace.WithWriter(w)) },
	}
	metricExporters = signal[sdkmetric.Exporter]{
		"METRICS",
		otlp.Metrics,
		func(w io.Writer) (sdkmetric.Exporter, error) { return stdoutmetric.New(stdoutmetric.WithWriter(w)) },
	}
	logExporters = signal[logExporter]{
		"LOGS",
		func(ctx context.Context) (logExporter, error) { return otlp.Logs(ctx) },
		func(w io.Writer) (logExporter, error) { return consoleLogs{w}, nil },
	}
)

// exportersOf returns a signal's exporters, as the environment selects them. It reports wrong ones and leaves them out.
func exportersOf[E interface {
	Shutdown(ctx context.Context) error
}](s *setup, of signal[E]) (out []E) {
	variable := "OTEL_" + of.name + "_EXPORTER"
	names := splitWords(os.Getenv(variable))
	if len(names) == 0 && cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_"+of.name+"_ENDPOINT")) != "" {
		names = []string{"otlp"}
	}
	for _, name := range names {
		var e E
		var wrong error
		switch name {
		case "none":
			continue
		case "console":
			e, wrong = of.console(s.console)
		case "otlp":
			e, wrong = of.otlp(s.ctx)
		default:
			wrong = errors.New("unknown exporter: use otlp, console or none")
		}
		if wrong != nil {
			otel.Handle(fmt.Errorf("%s: %q is left out: %w", variable, name, wrong))
			continue
		}
		out = append(out, e)
	}
	return out
}
