package telemetry_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/telemetry"
	"github.com/grapnel-go/grapnel/toolexec"
)

// A denied call, as its trace tells of it. Spans are printed as they end, so a hook
// comes before the call that it decided upon.
func Example() {
	spans := tracetest.NewInMemoryExporter()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	bash := toolexec.Func("bash", "Runs a command.", func(context.Context, struct{}) (string, error) { return "", nil })
	deny := hooks.On(hooks.AtPreToolUse, "no-shell", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		return c.Deny("no commands today")
	})
	a := builder.New().WithName("helper").WithModel("small").
		WithDriver(agenttest.Script(agenttest.Call("bash", `{}`), agenttest.Say("then not"))).
		With(capability.UseTools(bash), capability.UseHooks(deny), capability.UseTelemetry{Tracers: tracers}).
		Build().MustGet()
	a.Run(context.Background(), agent.NewState(), agent.UserText("tidy up")).MustGet()

	for _, s := range spans.GetSpans() {
		facts := attribute.NewSet(s.Attributes...)
		outcome, _ := facts.Value("grapnel.tool.outcome")
		winner, _ := facts.Value("grapnel.decision.winner")
		fmt.Println(strings.TrimSpace(s.Name + " " + outcome.AsString() + " " + winner.AsString()))
	}
	// Output:
	// chat small
	// hook PreToolUse no-shell
	// execute_tool bash denied no-shell
	// chat small
	// invoke_agent helper
}

// Log events go to any handler of log/slog: to that of a program's own log, for instance,
// or through a bridge to a logger provider of OpenTelemetry. SetDefaultLogs sets one for all
// agents.
func Example_logEvents() {
	shown := []string{slog.LevelKey, slog.MessageKey, "gen_ai.agent.name", "gen_ai.tool.name", "grapnel.hook.name", "grapnel.run.status"}
	logs := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if !slices.Contains(shown, a.Key) { // times and ids
			return slog.Attr{}
		}
		return a
	}})
	bash := toolexec.Func("bash", "Runs a command.", func(context.Context, struct{}) (string, error) { return "", nil })
	deny := hooks.On(hooks.AtPreToolUse, "no-shell", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		return c.Deny("no commands today")
	})
	a := builder.New().WithName("helper").WithModel("small").
		WithDriver(agenttest.Script(agenttest.Call("bash", `{}`), agenttest.Say("then not"))).
		With(capability.UseTools(bash), capability.UseHooks(deny), capability.UseTelemetry{Logs: logs}).
		Build().MustGet()
	a.Run(context.Background(), agent.NewState(), agent.UserText("tidy up")).MustGet()
	// Output:
	// level=WARN msg=grapnel.denied gen_ai.agent.name=helper grapnel.hook.name=no-shell gen_ai.tool.name=bash
	// level=INFO msg=grapnel.run.ended gen_ai.agent.name=helper grapnel.run.status=done
}

// A process that a tool starts becomes part of the call's trace.
func ExampleEnviron() {
	ctx := trace.ContextWithSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{0xab}, SpanID: trace.SpanID{0xcd}, TraceFlags: trace.FlagsSampled,
	}))
	cmd := exec.CommandContext(ctx, "make")
	cmd.Env = append(cmd.Environ(), telemetry.Environ(ctx)...)
	fmt.Println(cmd.Env[len(cmd.Env)-1])
	// Output: TRACEPARENT=00-ab000000000000000000000000000000-cd00000000000000-01
}

// So does a service that it asks.
func ExampleTransport() {
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Header.Get("Traceparent"))
	}))
	defer service.Close()
	ctx := trace.ContextWithSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{0xab}, SpanID: trace.SpanID{0xcd}, TraceFlags: trace.FlagsSampled,
	}))
	client := &http.Client{Transport: telemetry.Transport(service.Client().Transport)}
	request, _ := http.NewRequestWithContext(ctx, http.MethodGet, service.URL, nil)
	response, err := client.Do(request)
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = response.Body.Close()
	// Output: 00-ab000000000000000000000000000000-cd00000000000000-01
}
