// Command beside uses Grapnel and adk-go v2.2.0, which needs an older version of
// go.opentelemetry.io/otel/log than others do, in one program: an agent of adk asks one of
// Grapnel, whose log events go to a logger provider of that version through otelslog. It
// fails when they do not build together, or no event arrives. See docs/adr/0001.
package main

import (
	"context"
	"fmt"
	"iter"
	"os"

	adk "google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"go.opentelemetry.io/contrib/bridges/otelslog"
	sdklog "go.opentelemetry.io/otel/sdk/log"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/internal/semconv"
	"github.com/grapnel-go/grapnel/telemetry/otelsetup"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "beside:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	shutdown, err := otelsetup.Start(ctx, otelsetup.Config{Service: "beside"})
	if err != nil {
		return err
	}
	var events arrived
	provider := sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewSimpleProcessor(&events)))
	grapnel, err := builder.New().WithName("grapnel").WithDriver(agenttest.Script(agenttest.Say("hello from Grapnel"))).
		With(capability.UseTelemetry{Logs: otelslog.NewHandler("grapnel", otelslog.WithLoggerProvider(provider))}).
		Build().Get()
	if err != nil {
		return err
	}
	front, err := adk.New(adk.Config{Name: "front", Run: func(c adk.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			final, err := grapnel.Run(c, agent.NewState(), agent.UserText("who are you?")).Get()
			event := session.NewEvent(c, c.InvocationID())
			event.Content = genai.NewContentFromText(final.Answer(), genai.RoleModel)
			yield(event, err)
		}
	}})
	if err != nil {
		return err
	}
	r, err := runner.New(runner.Config{AppName: "beside", Agent: front, SessionService: session.InMemoryService(), AutoCreateSession: true})
	if err != nil {
		return err
	}
	for event, err := range r.Run(ctx, "ann", "s1", genai.NewContentFromText("who are you?", genai.RoleUser), adk.RunConfig{}) {
		if err != nil {
			return err
		}
		fmt.Println(event.Content.Parts[0].Text)
	}
	if len(events) != 1 || events[0] != semconv.EventRunEnded {
		return fmt.Errorf("the log events are %q, not %s", events, semconv.EventRunEnded)
	}
	return shutdown(ctx)
}

// arrived collects the texts of the log records that it receives.
type arrived []string

func (a *arrived) Export(_ context.Context, records []sdklog.Record) error {
	for _, r := range records {
		*a = append(*a, r.Body().AsString())
	}
	return nil
}

func (*arrived) ForceFlush(context.Context) error { return nil }
func (*arrived) Shutdown(context.Context) error   { return nil }
