package capability

import (
	"log/slog"
	"slices"

	"github.com/samber/mo"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/grapnel-go/grapnel/telemetry"
)

// UseTelemetry instruments the agent with OpenTelemetry: see package telemetry. A builder
// adds the zero UseTelemetry automatically, as the outermost layer, unless the program adds
// one. Without providers and a handler it costs nothing.
type UseTelemetry struct {
	// Off disables it.
	Off bool
	// Content records messages, arguments and results, after the hooks, on spans. The
	// environment variable OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT does the same
	// with true, span_only or span_and_event.
	Content bool
	// Reasons records the reasons of decisions and the texts of errors on spans and log
	// events. They can quote contents. Content implies Reasons.
	Reasons bool
	// Tracers and Meters receive spans and metrics. Nil means the global provider, even if
	// it is set after the agent was built.
	Tracers trace.TracerProvider
	Meters  metric.MeterProvider
	// Logs receives the log events. Nil means the handler of telemetry.SetDefaultLogs, even
	// if it is set after the agent was built; without a handler there are no log events.
	Logs slog.Handler
}

// Name returns "telemetry": an agent can have only one.
func (UseTelemetry) Name() string { return "telemetry" }

// Install puts the instrumentation outside of the hooks, where it sees values only after
// the hooks have changed them, and a gauge between the hooks and the driver.
func (u UseTelemetry) Install(p Plan) mo.Result[Plan] {
	if u.Off {
		return mo.Ok(p)
	}
	t := telemetry.New(telemetry.Config{
		Tracers: u.Tracers, Meters: u.Meters, Logs: u.Logs,
		Content: u.Content || telemetry.ContentFromEnv(), Reasons: u.Reasons,
	})
	name := u.Name()
	p = p.AroundRun(Outside, name, t).WrapDriver(Outside, name, t.WrapDriver).WrapExecutor(Outside, name, t.WrapExecutor)
	p = p.WrapApprover(Outside, name, t.WrapApprover)
	p.endObservers = append(slices.Clip(p.endObservers), t)
	return mo.Ok(p.WrapDriver(Inside, "gauge", t.WrapModel))
}
