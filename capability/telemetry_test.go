package capability_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

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

// A conversation's start is a span below its first run's span. Its end, after the last run, is a span below the span of
// the caller who closes the session.
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

// UseTelemetry of an agent reaches its sub-agents at any depth, unless they choose their own: their spans are below those
// of the calls that start them, and each model call is counted once.
func TestTelemetryReachesSubagents(t *testing.T) {
	sink := func() (*tracetest.SpanRecorder, capability.UseTelemetry, *metric.ManualReader) {
		seen, reader := tracetest.NewSpanRecorder(), metric.NewManualReader()
		return seen, capability.UseTelemetry{
			Tracers: trace.NewTracerProvider(trace.WithSpanProcessor(seen)), Meters: metric.NewMeterProvider(metric.WithReader(reader)),
		}, reader
	}
	ran := func(t *testing.T, top, below capability.Capability) {
		t.Helper()
		b := new(bench)
		deep := helper("deep", b, agenttest.Call("look", `{}`), agenttest.Say("looked"))
		middle := helper("middle", b, task("deep", "look"), agenttest.Say("asked")).With(capability.UseSubagents{Agents: []capability.Subagent{{Agent: deep}}})
		if below != nil {
			middle = middle.With(below)
		}
		boss(t, capability.UseSubagents{Agents: []capability.Subagent{{Agent: middle}}}, task("middle", "ask"), top)
	}
	names := func(seen *tracetest.SpanRecorder) (out []string) {
		for _, span := range seen.Ended() {
			out = append(out, span.Name())
		}
		return out
	}

	t.Run("inherited", func(t *testing.T) {
		seen, use, reader := sink()
		ran(t, use, nil)
		assert.Equal(t, []string{
			"chat", "chat", "chat", "execute_tool look", "chat", "invoke_agent deep", "execute_tool task", "chat", "invoke_agent middle",
			"execute_tool task", "chat", "invoke_agent boss",
		}, names(seen))
		ids := map[oteltrace.SpanID]string{}
		for _, span := range seen.Ended() {
			ids[span.SpanContext().SpanID()] = span.Name()
		}
		for _, span := range seen.Ended() {
			switch span.Name() {
			case "invoke_agent deep", "invoke_agent middle":
				assert.Equal(t, "execute_tool task", ids[span.Parent().SpanID()])
			}
		}
		var data metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(t.Context(), &data))
		counted := map[string]uint64{}
		for _, m := range data.ScopeMetrics[0].Metrics {
			if h, ok := m.Data.(metricdata.Histogram[float64]); ok {
				for _, p := range h.DataPoints {
					counted[m.Name] += p.Count
				}
			}
		}
		assert.EqualValues(t, 6, counted["gen_ai.client.operation.duration"], counted)
	})
	t.Run("chosen", func(t *testing.T) {
		seen, use, _ := sink()
		own, other, _ := sink()
		ran(t, use, other)
		assert.Equal(t, []string{"chat", "execute_tool task", "chat", "invoke_agent boss"}, names(seen))
		assert.Contains(t, names(own), "invoke_agent deep", "it reaches the sub-agent's own sub-agents")
	})
	t.Run("off below", func(t *testing.T) {
		seen, use, _ := sink()
		ran(t, use, capability.UseTelemetry{Off: true})
		assert.NotContains(t, names(seen), "invoke_agent middle")
	})
	t.Run("off above", func(t *testing.T) {
		seen, use, _ := sink()
		before := otel.GetTracerProvider()
		otel.SetTracerProvider(use.Tracers)
		defer otel.SetTracerProvider(before)
		ran(t, capability.UseTelemetry{Off: true}, nil)
		assert.Empty(t, names(seen))
	})
}
