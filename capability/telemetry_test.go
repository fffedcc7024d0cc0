package capability_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
)

func TestTelemetryIsInstalled(t *testing.T) {
	seen := tracetest.NewSpanRecorder()
	tracers := trace.NewTracerProvider(trace.WithSpanProcessor(seen))
	plan := installed(t, agenttest.Script(agenttest.Say("hi")), capability.UseTelemetry{Tracers: tracers}).WithName("helper")
	_, err := run(t, plan)
	require.NoError(t, err)
	require.Len(t, seen.Ended(), 2)
	assert.Equal(t, "chat", seen.Ended()[0].Name())
	assert.Equal(t, "invoke_agent helper", seen.Ended()[1].Name())
	assert.Contains(t, plan.String(), "telemetry ▸ gauge ▸ ")
}

// A conversation's start is a span below that of its first run; its end, after the last run, is a span below that of the
// caller who closes the session.
func TestTelemetryOfConversations(t *testing.T) {
	seen := tracetest.NewSpanRecorder()
	tracers := trace.NewTracerProvider(trace.WithSpanProcessor(seen))
	both := hooks.ObserveAll("both", func(context.Context, hooks.Context) error { return nil }, hooks.ConversationStart, hooks.ConversationEnd)
	plan := installed(t, agenttest.Script(agenttest.Say("hi")), capability.UseTelemetry{Tracers: tracers}, capability.UseHooks(both))
	session := plan.Agent().MustGet().Session(agent.NewState())
	require.NoError(t, session.Run(t.Context(), agent.UserText("hello")).Error())
	ctx, caller := tracers.Tracer("caller").Start(t.Context(), "request")
	require.NoError(t, session.Close(ctx))
	caller.End()

	ended := seen.Ended()
	require.Len(t, ended, 5)
	start, run, end := ended[0], ended[2], ended[3]
	assert.Equal(t, run.SpanContext().SpanID(), start.Parent().SpanID())
	assert.Equal(t, caller.SpanContext().SpanID(), end.Parent().SpanID())
	assert.Contains(t, start.Attributes(), attribute.String("grapnel.hook.point", "ConversationStart"))
	assert.Contains(t, end.Attributes(), attribute.String("grapnel.hook.point", "ConversationEnd"))
}

func TestTelemetryCanBeLeftOut(t *testing.T) {
	plan := installed(t, agenttest.Script(agenttest.Say("hi")), capability.UseTelemetry{Off: true})
	assert.NotContains(t, plan.String(), "telemetry")
}
