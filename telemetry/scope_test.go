package telemetry_test

import (
	"context"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/semconv"
	"github.com/grapnel-go/grapnel/telemetry"
)

// A Telemetry that observes a scope records spans and log events for the hooks around runs, below the engine's span. It
// records none for agents' hooks there, because it records these as the agents' middleware.
func TestHooksAroundRuns(t *testing.T) {
	s := newSink(t)
	tel := telemetry.New(telemetry.Config{Tracers: s.tracers, Meters: s.meters, Logs: sinkHandler{s}})
	stop := hooks.On(hooks.AtIterationStart, "enough", func(_ context.Context, c hooks.PipelineContext) hooks.Result { return c.Stop("three") })
	scope := lo.Must(hooks.NewSet(stop).Compile()).OpenScope(t.Context(), hooks.ScopeOptions{Run: agent.Run{ID: "run_p"}, Observer: tel})
	ctx, engine := s.tracers.Tracer("engine").Start(t.Context(), "pipeline")
	_, _, err := scope.Pipeline(ctx, agent.NewState(), hooks.Firing{Point: hooks.IterationStart}, hooks.Pipeline{})
	require.NoError(t, err)
	tel.Observe(ctx, hooks.Event{Kind: hooks.HookComplete, Point: hooks.PreToolUse, Hook: "of an agent"})
	engine.End()

	spans := lo.Filter(s.spans.GetSpans(), func(x tracetest.SpanStub, _ int) bool { return x.Name != "pipeline" })
	require.Len(t, spans, 1)
	stub := spans[0]
	assert.Equal(t, engine.SpanContext().SpanID(), stub.Parent.SpanID())
	assert.Equal(t, "run_p", get(stub, semconv.KeyRun))
	assert.Equal(t, "stop", get(stub, semconv.KeyDecision))
	require.Len(t, s.logs, 1)
	assert.Equal(t, semconv.EventStopped, s.logs[0].Message)
}
