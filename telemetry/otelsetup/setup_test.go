package otelsetup_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/goleak"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/telemetry"
	"github.com/grapnel-go/grapnel/telemetry/otelsetup"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// environment sets these variables and unsets all others of OpenTelemetry, and puts
// the global providers back afterwards.
func environment(t *testing.T, pairs ...string) {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
	t.Cleanup(forget)
	forget()
}

func forget() {
	otel.SetTracerProvider(tracenoop.NewTracerProvider())
	otel.SetMeterProvider(metricnoop.NewMeterProvider())
	telemetry.SetDefaultLogs(nil)
	otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator())
}

// say tells the global providers of one of each.
func say(t *testing.T) {
	t.Helper()
	ctx, span := otel.Tracer("test").Start(t.Context(), "a-span")
	counter, err := otel.Meter("test").Int64Counter("a-counter")
	require.NoError(t, err)
	counter.Add(ctx, 1)
	tell(ctx, "an-agent")
	span.End()
}

// tell makes one log event, that a run of the agent ended, and no span and no metric.
func tell(ctx context.Context, agentName string) {
	a := builder.New().WithName(agentName).WithDriver(agenttest.Script(agenttest.Say("hi"))).
		With(capability.UseTelemetry{Tracers: tracenoop.NewTracerProvider(), Meters: metricnoop.NewMeterProvider()}).Build().MustGet()
	a.Run(ctx, agent.NewState(), agent.UserText("go")).MustGet()
}

func start(t *testing.T, c otelsetup.Config) (stop func()) {
	t.Helper()
	shutdown, err := otelsetup.Start(t.Context(), c)
	require.NoError(t, err)
	return func() { require.NoError(t, shutdown(context.Background())) }
}

func TestConsole(t *testing.T) {
	environment(t, "OTEL_TRACES_EXPORTER=console", "OTEL_METRICS_EXPORTER=Console", "OTEL_LOGS_EXPORTER= console ",
		"OTEL_RESOURCE_ATTRIBUTES=team=blue")
	var out bytes.Buffer
	stop := start(t, otelsetup.Config{Service: "tester", Console: &out})
	say(t)
	stop()
	for _, want := range []string{"a-span", "a-counter", "grapnel.run.ended", "an-agent", "tester", "blue"} {
		assert.Contains(t, out.String(), want)
	}
}

func TestTheEnvironmentNamesTheService(t *testing.T) {
	environment(t, "OTEL_TRACES_EXPORTER=console", "OTEL_SERVICE_NAME=mine")
	var out bytes.Buffer
	stop := start(t, otelsetup.Config{Service: "tester", Console: &out})
	say(t)
	stop()
	assert.Contains(t, out.String(), `"mine"`)
	assert.NotContains(t, out.String(), "tester")
	assert.NotContains(t, out.String(), "a-counter", "only traces were asked for")
}

// received is a server that takes OTLP and remembers where and with what headers.
type received struct {
	*httptest.Server

	mu    sync.Mutex
	paths map[string]http.Header
	spans bytes.Buffer
	logs  bytes.Buffer
}

func receiver(t *testing.T) *received {
	t.Helper()
	r := &received{paths: map[string]http.Header{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		body, _ := io.ReadAll(q.Body)
		r.paths[q.URL.Path] = q.Header
		switch q.URL.Path {
		case "/v1/traces":
			r.spans.Write(body)
		case "/v1/logs":
			r.logs.Write(body)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func TestOTLP(t *testing.T) {
	r := receiver(t)
	environment(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+r.URL, "OTEL_EXPORTER_OTLP_HEADERS=x-key=k1", "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf")
	stop := start(t, otelsetup.Config{})
	say(t)
	stop()
	assert.Len(t, r.paths, 3, "an endpoint is enough for all three signals")
	for _, path := range []string{"/v1/traces", "/v1/metrics", "/v1/logs"} {
		assert.Equal(t, "k1", r.paths[path].Get("X-Key"), path)
		assert.Equal(t, "application/x-protobuf", r.paths[path].Get("Content-Type"), path)
	}
	assert.Contains(t, r.spans.String(), "a-span")
	assert.Contains(t, r.spans.String(), "grapnel")
	assert.Contains(t, r.logs.String(), "grapnel.run.ended")
	assert.Contains(t, r.logs.String(), "an-agent")
	assert.Contains(t, r.logs.String(), "service.name")
}

func TestOneSignal(t *testing.T) {
	r := receiver(t)
	environment(t, "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT="+r.URL+"/in", "OTEL_EXPORTER_OTLP_ENDPOINT="+r.URL,
		"OTEL_TRACES_EXPORTER=none", "OTEL_METRICS_EXPORTER=none")
	stop := start(t, otelsetup.Config{})
	say(t)
	stop()
	assert.Len(t, r.paths, 1)
	assert.Contains(t, r.paths, "/in")
}

// Where nothing was asked for nothing is set, so that nothing costs anything.
func TestNothingWasAskedFor(t *testing.T) {
	for name, pairs := range map[string][]string{
		"empty":    nil,
		"none":     {"OTEL_TRACES_EXPORTER=none", "OTEL_METRICS_EXPORTER=none", "OTEL_LOGS_EXPORTER=none", "OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:1"},
		"disabled": {"OTEL_SDK_DISABLED=TRUE", "OTEL_TRACES_EXPORTER=console", "OTEL_PROPAGATORS=nonsense"},
	} {
		t.Run(name, func(t *testing.T) {
			environment(t, pairs...)
			stop := start(t, otelsetup.Config{})
			_, span := otel.Tracer("test").Start(t.Context(), "a-span")
			assert.False(t, span.IsRecording())
			span.End()
			stop()
		})
	}
}

func TestSampler(t *testing.T) {
	environment(t, "OTEL_TRACES_EXPORTER=console", "OTEL_TRACES_SAMPLER=always_off")
	var out bytes.Buffer
	stop := start(t, otelsetup.Config{Console: &out})
	say(t)
	stop()
	assert.Empty(t, out.String())
}

// A program's own look at spans needs no variable, and is shut down with the rest.
func TestSpanProcessors(t *testing.T) {
	environment(t)
	seen := tracetest.NewSpanRecorder()
	stop := start(t, otelsetup.Config{Spans: []sdktrace.SpanProcessor{seen}})
	say(t)
	require.Len(t, seen.Ended(), 1)
	attributes := seen.Ended()[0].Resource().Attributes()
	text, err := json.Marshal(attributes)
	require.NoError(t, err)
	assert.Contains(t, string(text), "grapnel")
	stop()
}

func TestPropagators(t *testing.T) {
	for value, want := range map[string][]string{
		"": {"traceparent", "tracestate", "baggage"}, "tracecontext": {"traceparent", "tracestate"}, "none": {}, "baggage": {"baggage"},
	} {
		environment(t, "OTEL_PROPAGATORS="+value)
		stop := start(t, otelsetup.Config{})
		assert.ElementsMatch(t, want, otel.GetTextMapPropagator().Fields(), "%q", value)
		stop()
	}
}

// A variable with a wrong value is a warning, and the rest of the configuration is used.
func TestWrongVariablesAreWarnings(t *testing.T) {
	for name, tc := range map[string]struct {
		pairs []string
		warns string
		says  []string // in the output of the console exporters
	}{
		"resource":         {[]string{"OTEL_RESOURCE_ATTRIBUTES=team=blue,deployment"}, "OTEL_RESOURCE_ATTRIBUTES: expected name=value", []string{"blue"}},
		"resource, escape": {[]string{"OTEL_RESOURCE_ATTRIBUTES=team=%zz"}, "invalid URL escape", []string{"%zz"}},
		"protocol":         {[]string{"OTEL_METRICS_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_PROTOCOL=http/json"}, `unknown protocol "http/json"`, nil},
		"exporter":         {[]string{"OTEL_METRICS_EXPORTER=prometheus"}, `OTEL_METRICS_EXPORTER: "prometheus" is left out: unknown exporter`, nil},
		"second":           {[]string{"OTEL_TRACES_EXPORTER=zipkin,console"}, `OTEL_TRACES_EXPORTER: "zipkin" is left out`, nil},
		"endpoint": {[]string{"OTEL_METRICS_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=nowhere"},
			`OTEL_METRICS_EXPORTER: "otlp" is left out: OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: not an endpoint`, nil},
		"propagator":     {[]string{"OTEL_PROPAGATORS=b3,baggage"}, `OTEL_PROPAGATORS: unknown propagator "b3"`, nil},
		"sampler":        {[]string{"OTEL_TRACES_SAMPLER=sometimes"}, "sometimes", nil},
		"sampler's part": {[]string{"OTEL_TRACES_SAMPLER=traceidratio", "OTEL_TRACES_SAMPLER_ARG=half"}, "half", nil},
		"queue":          {[]string{"OTEL_BSP_MAX_QUEUE_SIZE=-1"}, "OTEL_BSP_MAX_QUEUE_SIZE: expected a number from 1", nil},
		"batch":          {[]string{"OTEL_BSP_SCHEDULE_DELAY=soon"}, "OTEL_BSP_SCHEDULE_DELAY: expected a number", nil},
		"limit":          {[]string{"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=few"}, `OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT: expected a number, got "few"`, nil},
		"interval":       {[]string{"OTEL_METRIC_EXPORT_INTERVAL=1s"}, `OTEL_METRIC_EXPORT_INTERVAL: expected a number`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			environment(t, append([]string{"OTEL_TRACES_EXPORTER=console"}, tc.pairs...)...)
			var warned []string
			otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { warned = append(warned, err.Error()) }))
			var out bytes.Buffer
			shutdown, err := otelsetup.Start(t.Context(), otelsetup.Config{Console: &out})
			require.NoError(t, err)
			assert.Contains(t, strings.Join(warned, "\n"), tc.warns)
			assert.Len(t, warned, 1, "%q", warned)
			_, span := otel.Tracer("test").Start(t.Context(), "a-span")
			span.End()
			_ = shutdown(context.Background()) // nothing receives metrics
			for _, want := range append([]string{"a-span", "grapnel"}, tc.says...) {
				assert.Contains(t, out.String(), want)
			}
		})
	}
}
