package telemetry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/internal/semconv"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // tools that panic are logged
	goleak.VerifyTestMain(m)
}

// sink is an SDK that remembers all that it gets.
type sink struct {
	spans   *tracetest.InMemoryExporter
	tracers *sdktrace.TracerProvider
	reader  *sdkmetric.ManualReader
	meters  *sdkmetric.MeterProvider

	mu   sync.Mutex
	logs []logEvent
}

// logEvent is a record as a handler gets it, with the span of its context.
type logEvent struct {
	slog.Record

	span trace.SpanContext
}

// sinkHandler hands the log events of all levels to a sink.
type sinkHandler struct{ *sink }

func (sinkHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h sinkHandler) Handle(ctx context.Context, r slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.logs = append(h.logs, logEvent{r.Clone(), trace.SpanContextFromContext(ctx)})
	return nil
}

func (h sinkHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h sinkHandler) WithGroup(string) slog.Handler      { return h }

func newSink(t *testing.T, options ...sdktrace.TracerProviderOption) *sink {
	t.Helper()
	s := &sink{spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	s.tracers = sdktrace.NewTracerProvider(append(options, sdktrace.WithSyncer(s.spans))...)
	s.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(s.reader))
	t.Cleanup(func() {
		require.NoError(t, s.tracers.Shutdown(context.Background()))
		require.NoError(t, s.meters.Shutdown(context.Background()))
	})
	return s
}

// use returns the capability that tells the sink.
func (s *sink) use() capability.UseTelemetry {
	return capability.UseTelemetry{Tracers: s.tracers, Meters: s.meters, Logs: sinkHandler{s}}
}

// span returns the one span of that name.
func (s *sink) span(t *testing.T, name string) tracetest.SpanStub {
	t.Helper()
	found := s.all(name)
	require.Len(t, found, 1, "spans called %q among\n%s", name, s.tree())
	return found[0]
}

func (s *sink) all(name string) []tracetest.SpanStub {
	return lo.Filter(s.spans.GetSpans(), func(x tracetest.SpanStub, _ int) bool { return x.Name == name })
}

// get returns an attribute of a span, as text; empty when it has not got it.
func get(s tracetest.SpanStub, key attribute.Key) string {
	for _, kv := range s.Attributes {
		if kv.Key == key {
			return kv.Value.String()
		}
	}
	return ""
}

// told is what tree shows of a span.
var told = []attribute.Key{
	semconv.KeyOutcome, semconv.KeyWinner, semconv.KeyReasonCode, semconv.KeyRewritten, semconv.KeyResultBy,
	semconv.KeyHookType, semconv.KeyHookOutcome, semconv.KeyDecision, semconv.KeyFailMode,
	semconv.KeyStatus, semconv.KeyStopReason, semconv.KeyStopSource, semconv.KeyErrorType,
}

// tree returns all spans, each below its parent, in the order in which they ended.
func (s *sink) tree() string {
	all := s.spans.GetSpans()
	known := lo.SliceToMap(all, func(x tracetest.SpanStub) (trace.SpanID, bool) { return x.SpanContext.SpanID(), true })
	below := lo.GroupBy(all, func(x tracetest.SpanStub) trace.SpanID {
		return lo.Ternary(known[x.Parent.SpanID()], x.Parent.SpanID(), trace.SpanID{})
	})
	var b strings.Builder
	var write func(id trace.SpanID, indent string)
	write = func(id trace.SpanID, indent string) {
		children := below[id]
		slices.SortStableFunc(children, func(a, b tracetest.SpanStub) int {
			return a.EndTime.Compare(b.EndTime)
		})
		for _, c := range children {
			facts := lo.FilterMap(told, func(k attribute.Key, _ int) (string, bool) { v := get(c, k); return v, v != "" })
			fmt.Fprintf(&b, "%s%s", indent, c.Name)
			if len(facts) > 0 {
				fmt.Fprintf(&b, ": %s", strings.Join(facts, " "))
			}
			if c.Status.Code.String() != "Unset" {
				fmt.Fprintf(&b, " [%s]", c.Status.Code)
			}
			b.WriteByte('\n')
			write(c.SpanContext.SpanID(), indent+"  ")
		}
	}
	write(trace.SpanID{}, "")
	return b.String()
}

// events returns the log events, a line each.
func (s *sink) events() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return lo.Map(s.logs, func(r logEvent, _ int) string {
		has := map[attribute.Key]string{}
		r.Attrs(func(a slog.Attr) bool { has[attribute.Key(a.Key)] = a.Value.String(); return true })
		facts := lo.Compact(lo.Map([]attribute.Key{
			semconv.KeyHook, semconv.KeyWinner, semconv.KeyPoint, semconv.KeyToolName, semconv.KeyReasonCode, semconv.KeyFailMode,
			semconv.KeyErrorType, semconv.KeyStatus, semconv.KeyStopReason, semconv.KeyReason,
		}, func(k attribute.Key, _ int) string { return has[k] }))
		return fmt.Sprintf("%s %s: %s", r.Level, r.Message, strings.Join(facts, " "))
	})
}

// metrics returns what was measured, as "name{attributes} count", in the order of names.
func (s *sink) metrics(t *testing.T) []string {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, s.reader.Collect(t.Context(), &all))
	var out []string
	point := func(name, unit string, set attribute.Set, count any) {
		facts := lo.Map(set.ToSlice(), func(kv attribute.KeyValue, _ int) string {
			key := string(kv.Key)
			return key[strings.LastIndexByte(key, '.')+1:] + "=" + kv.Value.String()
		})
		out = append(out, fmt.Sprintf("%s [%s] {%s} %v", name, unit, strings.Join(facts, " "), count))
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					point(m.Name, m.Unit, p.Attributes, p.Count)
				}
			case metricdata.Histogram[int64]:
				for _, p := range d.DataPoints {
					point(m.Name, m.Unit, p.Attributes, fmt.Sprintf("%d sum %d", p.Count, p.Sum))
				}
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					point(m.Name, m.Unit, p.Attributes, p.Value)
				}
			default:
				t.Fatalf("metric %s has data of type %T", m.Name, d)
			}
		}
	}
	slices.Sort(out)
	return out
}

// everything returns all that was told, as text: to look for what must not be there.
func (s *sink) everything(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	text, err := json.Marshal(s.spans.GetSpans())
	require.NoError(t, err)
	b.Write(text)
	for _, span := range s.spans.GetSpans() {
		fmt.Fprintf(&b, "%v %v\n", span.Status, lo.Map(span.Attributes, func(kv attribute.KeyValue, _ int) string { return kv.Value.String() }))
	}
	s.mu.Lock()
	for _, r := range s.logs {
		fmt.Fprintln(&b, r.Message)
		r.Attrs(func(a slog.Attr) bool { fmt.Fprintln(&b, a.Key, a.Value.String()); return true })
	}
	s.mu.Unlock()
	return b.String() + strings.Join(s.metrics(t), "\n")
}

// described is a script that says whom it asks.
type described struct{ *agenttest.Driver }

func (described) Features() agent.Features {
	return agent.Features{Provider: "test", Model: "small", Endpoint: "https://models.example.com/v1", Streaming: true}
}

// build returns an agent called helper with a script.
func build(t *testing.T, script *agenttest.Driver, capabilities ...capability.Capability) *agent.Agent {
	t.Helper()
	a, err := builder.New().WithName("helper").WithDriver(described{script}).With(capabilities...).Build().Get()
	require.NoError(t, err)
	return a
}

func run(t *testing.T, a *agent.Agent) agent.State {
	t.Helper()
	final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	return final
}
