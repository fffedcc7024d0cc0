package capability

import (
	"log/slog"
	"slices"

	"github.com/samber/mo"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/telemetry"
)

// UseTelemetry instruments the agent with OpenTelemetry: see package telemetry. A builder adds the zero UseTelemetry
// automatically, as the outermost layer, unless the program adds one. Without providers and a handler it costs nothing.
// Sub-agents with the zero UseTelemetry use their parent's telemetry.
type UseTelemetry struct {
	// Off disables it.
	Off bool
	// Content records messages, arguments and results on spans, after the hooks. The environment variable
	// OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT does the same with true, span_only or span_and_event.
	Content bool
	// Reasons records decision reasons and error texts on spans and log events. They can quote contents. Content
	// implies Reasons.
	Reasons bool
	// Tracers and Meters receive spans and metrics. Nil means the global provider, even if it is set after the agent
	// was built.
	Tracers trace.TracerProvider
	Meters  metric.MeterProvider
	// Logs receives the log events. Nil means the handler from telemetry.SetDefaultLogs, even if it is set after the
	// agent was built. Without a handler there are no log events.
	Logs slog.Handler
}

// Name returns "telemetry": an agent can have only one.
func (UseTelemetry) Name() string { return "telemetry" }

// instruments holds the telemetry that UseTelemetry has installed.
type instruments struct {
	telemetry *telemetry.Telemetry // nil when it is off
	chosen    bool                 // a field of UseTelemetry is set
}

// Install puts the instrumentation outside the hooks, where it sees values only after the hooks have changed them. It
// puts a gauge between the hooks and the driver.
func (u UseTelemetry) Install(p Plan) mo.Result[Plan] {
	if u.Off {
		p.telemetry = &instruments{chosen: true}
		return mo.Ok(p)
	}
	t := telemetry.New(telemetry.Config{
		Tracers: u.Tracers, Meters: u.Meters, Logs: u.Logs,
		Content: u.Content || telemetry.ContentFromEnv(), Reasons: u.Reasons,
	})
	name := u.Name()
	p = p.AroundRun(Outside, name, t).WrapDriver(Outside, name, t.WrapDriver).WrapExecutor(Outside, name, t.WrapExecutor)
	p = p.WrapApprover(Outside, name, t.WrapApprover).WrapDriver(Inside, gaugeName, t.WrapModel)
	p.endObservers = append(slices.Clip(p.endObservers), t)
	p.telemetry = &instruments{t, u.Content || u.Reasons || u.Tracers != nil || u.Meters != nil || u.Logs != nil}
	return mo.Ok(p)
}

// gaugeName names the layer between the hooks and the driver.
const gaugeName = "gauge"

// instrumentedLike returns the plan with its parent's telemetry in the same place, unless the plan chooses its own.
func (p Plan) instrumentedLike(parent *instruments) Plan {
	if parent == nil || p.telemetry == nil || p.telemetry.chosen {
		return p
	}
	name, t := UseTelemetry{}.Name(), parent.telemetry
	p.telemetry, p.endObservers = parent, nil
	if t == nil {
		p.aroundRun, p.wrapExecutor, p.wrapApprover = p.aroundRun.without(name), p.wrapExecutor.without(name), p.wrapApprover.without(name)
		p.wrapDriver = p.wrapDriver.without(name).without(gaugeName)
		return p
	}
	p.endObservers = []agent.Observer{t}
	p.aroundRun = p.aroundRun.replace(name, t)
	p.wrapDriver = p.wrapDriver.replace(name, t.WrapDriver).replace(gaugeName, t.WrapModel)
	p.wrapExecutor, p.wrapApprover = p.wrapExecutor.replace(name, t.WrapExecutor), p.wrapApprover.replace(name, t.WrapApprover)
	return p
}
