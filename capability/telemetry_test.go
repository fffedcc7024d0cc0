package capability_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/capability"
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

func TestTelemetryCanBeLeftOut(t *testing.T) {
	plan := installed(t, agenttest.Script(agenttest.Say("hi")), capability.UseTelemetry{Off: true})
	assert.NotContains(t, plan.String(), "telemetry")
}
