package coordinator_test

import (
	"net/url"
	"strconv"
	"sync"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/wire"
)

// measured returns the sum of a counter, or the number of values of a histogram, by an attribute.
func measured(t *testing.T, reader *sdkmetric.ManualReader, name string, by attribute.Key) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &all))
	found := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != name {
				continue
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, point := range data.DataPoints {
					value, _ := point.Attributes.Value(by)
					found[value.AsString()] += point.Value
				}
			case metricdata.Histogram[float64]:
				for _, point := range data.DataPoints {
					value, _ := point.Attributes.Value(by)
					found[value.AsString()] += int64(point.Count)
				}
			}
		}
	}
	return found
}

// Each call of a hook around a run is one span below that of the coordinator's work on the run, one measurement, and one event for the
// observer, also when the run waits for the hook in between.
func TestTelemetryOfHooks(t *testing.T) {
	spans, reader := tracetest.NewInMemoryExporter(), sdkmetric.NewManualReader()
	tracers, meters := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)), sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	oldTracers, oldMeters := otel.GetTracerProvider(), otel.GetMeterProvider()
	otel.SetTracerProvider(tracers)
	otel.SetMeterProvider(meters)
	t.Cleanup(func() {
		otel.SetTracerProvider(oldTracers)
		otel.SetMeterProvider(oldMeters)
	})
	var mu sync.Mutex
	var seen []wire.HookEvent
	b := newBench(t, func(o *coordinator.Options) {
		o.Observe = func(h wire.HookEvent) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, h)
		}
	})
	b.create(validator, `{"name": "report", "type": "procedural", "command": {"argv": ["cat"]}, "hooks": {
		"on_run_start": {"type": "agent", "agent_name": "validator", "on_error": "block"},
		"on_run_finish": {"type": "command", "argv": ["false"], "on_error": "continue"}}}`)
	b.answers["validator"] = func(string) string { return `{"action": "block", "block_reason": "secret"}` }
	id := b.submit("report", `{}`)
	d := b.work(id)
	require.Equal(t, wire.Failed, d.Status)

	all := spans.GetSpans()
	named := func(name string) tracetest.SpanStub {
		t.Helper()
		found := lo.Filter(all, func(s tracetest.SpanStub, _ int) bool { return s.Name == name })
		require.NotEmpty(t, found, "no span %q among %v", name, lo.Map(all, func(s tracetest.SpanStub, _ int) string { return s.Name }))
		return found[len(found)-1]
	}
	count := func(name string) int {
		return lo.CountBy(all, func(s tracetest.SpanStub) bool { return s.Name == name })
	}
	value := func(s tracetest.SpanStub, key string) string {
		kv, _ := lo.Find(s.Attributes, func(kv attribute.KeyValue) bool { return string(kv.Key) == key })
		return kv.Value.AsString()
	}
	const start, finish = "hook RunStart agent.report/RunStart-1", "hook RunFinish agent.report/RunFinish-1"
	assert.Equal(t, 1, count(start))
	assert.Equal(t, 1, count(finish))
	blocked, failed := named(start), named(finish)
	assert.Equal(t, "blocked", value(blocked, "grapnel.hook.outcome"))
	assert.Equal(t, "deny", value(blocked, "grapnel.hook.decision"))
	assert.Equal(t, "agent", value(blocked, "grapnel.action.type"))
	assert.Equal(t, "validator", value(blocked, "grapnel.action.target"))
	assert.Equal(t, string(id), value(blocked, "grapnel.run.id"))
	assert.Equal(t, "failed", value(failed, "grapnel.hook.outcome"))
	assert.Equal(t, codes.Error, failed.Status.Code)

	parent, ok := lo.Find(all, func(s tracetest.SpanStub) bool { return s.SpanContext.SpanID() == blocked.Parent.SpanID() })
	require.True(t, ok, "the span of the hook has no parent")
	assert.Equal(t, "run_hooks report", parent.Name)
	assert.Equal(t, codes.Error, parent.Status.Code, "a blocked run")
	assert.Equal(t, "denied", value(parent, "grapnel.stop.reason"))
	for _, s := range all {
		assert.NotContains(t, s.Status.Description, "secret", "a reason may quote content")
	}

	points := map[string]int64{"RunStart": 1, "RunFinish": 1}
	assert.Equal(t, points, measured(t, reader, "grapnel.hook.duration", "grapnel.hook.point"))
	assert.Equal(t, map[string]int64{"deny": 1}, measured(t, reader, "grapnel.hook.decisions", "grapnel.hook.decision"))
	assert.Equal(t, map[string]int64{"RunFinish": 1}, measured(t, reader, "grapnel.hook.errors", "grapnel.hook.point"))

	assert.Equal(t, d.Hooks, seen)
}

// A list says of each run why it has ended as it did: which hook has blocked it and why, and which hooks have failed.
func TestEndings(t *testing.T) {
	hook := func(script, onError string) string {
		return `{"type": "command", "argv": ["sh", "-c", ` + strconv.Quote(script) + `], "on_error": "` + onError + `"}`
	}
	blocks := hook(`echo '{"action": "block", "block_reason": "May is closed"}'`, "block")
	cat := `"command": {"argv": ["cat"]}`
	for name, c := range map[string]struct {
		blueprint, reason, blockedBy string
		failed                       []string
	}{
		"completed": {blueprint: cat},
		"blocked": {
			blueprint: cat + `, "hooks": {"on_run_start": ` + blocks + `}`,
			reason:    "Blocked by on_run_start hook: May is closed", blockedBy: "on_run_start hook (command sh)",
		},
		"blocked by the second": {
			blueprint: cat + `, "hooks": {"on_run_start": [` + hook("false", "continue") + `, ` + blocks + `]}`,
			reason:    "Blocked by on_run_start hook: May is closed", blockedBy: "on_run_start hook 2 (command sh)",
			failed: []string{"on_run_start hook (command sh) failed: command: sh ended with exit code 1"},
		},
		"blocked by a named hook": {
			blueprint: cat + `, "hooks": {"on_run_start": {"id": "calendar", ` + blocks[1:] + `}`,
			reason:    "Blocked by on_run_start hook: May is closed", blockedBy: "on_run_start hook calendar (command sh)",
		},
		"hook failed": {
			blueprint: cat + `, "hooks": {"on_run_start": ` + hook("exit 3", "block") + `}`,
			reason:    "on_run_start hook (command sh) failed: command: sh ended with exit code 3",
			failed:    []string{"on_run_start hook (command sh) failed: command: sh ended with exit code 3"},
		},
		"hook failed and the run went on": {
			blueprint: cat + `, "hooks": {"on_run_start": ` + hook("exit 3", "continue") + `}`,
			failed:    []string{"on_run_start hook (command sh) failed: command: sh ended with exit code 3"},
		},
		"hook after the run failed": {
			blueprint: cat + `, "hooks": {"on_run_finish": [` + hook("true", "continue") + `, ` + hook("exit 4", "continue") + `]}`,
			failed:    []string{"on_run_finish hook 2 (command sh) failed: command: sh ended with exit code 4"},
		},
		"failed": {blueprint: `"command": {"argv": ["sh", "-c", "exit 3"]}`, reason: "the command exited with code 3"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.create(`{"name": "job", "type": "procedural", ` + c.blueprint + `}`)
			id := b.submit("job", `{}`)
			d := b.work(id)
			list, err := b.client(b.serve(), wire.Viewer).Runs(t.Context(), nil)
			require.NoError(t, err)
			require.Len(t, list.Runs, 1)
			want := wire.Ending{Reason: c.reason, BlockedBy: c.blockedBy, FailedHooks: c.failed}
			assert.Equal(t, want, list.Runs[0].Ending)
			assert.Equal(t, want, d.Ending)
			after, err := coordinator.FinishRun(t.Context(), b.store, id)
			require.NoError(t, err)
			if name == "hook after the run failed" {
				assert.Equal(t, wire.Completed, d.Status)
				assert.Equal(t, "failed", string(after.Status), "the run that calls the hooks")
			}
		})
	}
}

// Runs that hooks have started are listed only for those who ask.
func TestRunsOfHooksAreHidden(t *testing.T) {
	b := newBench(t)
	b.create(validator, report)
	b.answers["validator"] = func(string) string { return `{"action": "continue"}` }
	id := b.submit("report", `{"month": "May"}`)
	b.work(id)
	c := b.client(b.serve(), wire.Viewer)
	for query, want := range map[string][]string{
		"":                            {"report"},
		"hook_runs=true":              {"validator", "report"},
		"agent_name=validator":        {"validator"},
		"parent_run_id=" + string(id): {"validator"},
		"has_hooks=true":              {"report"},
		"hook_runs=true&limit=1":      {"validator"},
	} {
		list, err := c.Runs(t.Context(), lo.Must(url.ParseQuery(query)))
		require.NoError(t, err)
		assert.Equal(t, want, lo.Map(list.Runs, func(r wire.Run, _ int) string { return r.AgentName }), query)
	}
}
