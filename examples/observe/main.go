// Command observe prints a run as OpenTelemetry sees it: its spans as a tree, and its metrics. The model is a script.
//
//	go run ./examples/observe
//
// With the standard variables the spans go elsewhere as well: OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 sends
// them to a collector, OTEL_TRACES_EXPORTER=console prints them as JSON.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/telemetry/otelsetup"
	"github.com/grapnel-go/grapnel/toolexec"
)

func main() {
	if err := observeRun(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

type Release struct {
	Version string `json:"version"`
}

var publish = toolexec.Func("publish", "Publishes a release.", func(_ context.Context, in Release) (string, error) {
	return "published " + in.Version, nil
})

var onlyReady = hooks.OnCall("only-ready", "publish", func(_ context.Context, c hooks.ToolContext, in Release) hooks.Result {
	if in.Version != "v1.0.1" {
		return c.Deny("only v1.0.1 is ready")
	}
	return c.Allow()
})

func observeRun(ctx context.Context, out io.Writer) (err error) {
	// Spans: the tree keeps them for this program. Exporters that the environment configures receive them, too.
	tree := &otelsetup.Tree{}
	shutdown, err := otelsetup.Start(ctx, otelsetup.Config{Service: "observe", Spans: []sdktrace.SpanProcessor{tree}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shutdown(context.WithoutCancel(ctx))) }()
	// Metrics: a reader that is read once, at the end.
	metrics := sdkmetric.NewManualReader()
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(metrics))

	a, err := builder.New().WithName("publisher").WithModel("small").
		WithDriver(agenttest.Script(
			agenttest.Call("publish", `{"version":"v1.0.1"}`).Call("publish", `{"version":"v2.0.0"}`).WithTokens(90, 20),
			agenttest.Say("v1.0.1 is out.").WithTokens(130, 5),
		)).
		With(
			capability.UseTools(publish),
			capability.UseHooks(onlyReady),
			// Spans have no texts unless they are asked for. Reasons adds denial and error texts, Content all messages.
			capability.UseTelemetry{Meters: meters, Reasons: true},
		).
		Build().Get()
	if err != nil {
		return err
	}
	if err := a.Run(ctx, agent.NewState(), agent.UserText("Publish what is ready.")).Error(); err != nil {
		return err
	}
	fmt.Fprintln(out, "Spans")
	if _, err := tree.WriteTo(out); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nMetrics")
	return writeMetrics(ctx, out, metrics)
}
