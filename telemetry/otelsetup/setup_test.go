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

func TestWhatIsNotThereIsSaid(t *testing.T) {
	for name, tc := range map[string]struct {
		pairs []string
		want  string
	}{
		"protocol": {[]string{"OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_PROTOCOL=http/json"},
			`setting up telemetry: OTEL_TRACES_EXPORTER: "otlp": OTEL_EXPORTER_OTLP_PROTOCOL: unknown protocol "http/json": use http/protobuf or grpc`},
		"protocol of one signal": {[]string{"OTEL_TRACES_EXPORTER=console", "OTEL_LOGS_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL=kafka"},
			`OTEL_LOGS_EXPORTER: "otlp": OTEL_EXPORTER_OTLP_LOGS_PROTOCOL: unknown protocol "kafka"`},
		"exporter":   {[]string{"OTEL_METRICS_EXPORTER=prometheus"}, `OTEL_METRICS_EXPORTER: "prometheus": unknown exporter: use otlp, console or none`},
		"second":     {[]string{"OTEL_TRACES_EXPORTER=console,zipkin"}, `OTEL_TRACES_EXPORTER: "zipkin": unknown exporter`},
		"propagator": {[]string{"OTEL_PROPAGATORS=b3"}, `OTEL_PROPAGATORS: unknown propagator "b3"`},
		"resource":   {[]string{"OTEL_RESOURCE_ATTRIBUTES=nonsense"}, `setting up telemetry: `},
	} {
		t.Run(name, func(t *testing.T) {
			environment(t, tc.pairs...)
			seen := tracetest.NewSpanRecorder()
			shutdown, err := otelsetup.Start(t.Context(), otelsetup.Config{Console: io.Discard, Spans: []sdktrace.SpanProcessor{seen}})
			require.ErrorContains(t, err, tc.want)
			assert.Nil(t, shutdown)
			_, span := otel.Tracer("test").Start(t.Context(), "a-span")
			assert.False(t, span.IsRecording(), "nothing is left behind")
			span.End()
		})
	}
}
