package otlp_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/grapnel-go/grapnel/telemetry/otelsetup/internal/otlp"
)

// collector keeps what it is sent and answers with the statuses in turn, at the end with 200.
type collector struct {
	mu       sync.Mutex
	statuses []int
	answer   []byte
	paths    []string
	headers  []http.Header
	bodies   [][]byte
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var from io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		from, _ = gzip.NewReader(r.Body)
	}
	body, _ := io.ReadAll(from)
	c.paths, c.headers, c.bodies = append(c.paths, r.URL.Path), append(c.headers, r.Header), append(c.bodies, body)
	if len(c.statuses) > 0 {
		status := c.statuses[0]
		c.statuses = c.statuses[1:]
		w.Header().Set("Retry-After", "40")
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(c.answer)
}

func listen(t *testing.T, c *collector, pairs ...string) {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL+"/base/")
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
}

func arrived[M proto.Message](t *testing.T, c *collector, m M) M {
	t.Helper()
	require.Len(t, c.bodies, 1)
	require.NoError(t, proto.Unmarshal(c.bodies[0], m))
	return m
}

func TestTraces(t *testing.T) {
	c := &collector{}
	listen(t, c, "OTEL_EXPORTER_OTLP_HEADERS=a=1, b=x%2Cy", "OTEL_EXPORTER_OTLP_TRACES_HEADERS=a=2", "OTEL_EXPORTER_OTLP_COMPRESSION=gzip")
	exporter, err := otlp.Traces(t.Context())
	require.NoError(t, err)
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	_, span := provider.Tracer("scope").Start(t.Context(), "a-span")
	span.End()
	require.NoError(t, provider.Shutdown(context.Background()))
	got := arrived(t, c, &traces.TracesData{})
	assert.Equal(t, "a-span", got.GetResourceSpans()[0].GetScopeSpans()[0].GetSpans()[0].GetName())
	assert.Equal(t, "/base/v1/traces", c.paths[0])
	assert.Equal(t, "2", c.headers[0].Get("A"))
	assert.Equal(t, "x,y", c.headers[0].Get("B"))
}

func TestLogs(t *testing.T) {
	c := &collector{}
	listen(t, c)
	exporter, err := otlp.Logs(t.Context())
	require.NoError(t, err)
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	record := func(name string) *otlp.LogRecord {
		return &otlp.LogRecord{
			Event: name, Severity: 13, SeverityText: "WARN", Time: time.Unix(1, 2), Observed: time.Unix(3, 4), Span: span,
			Attributes: []attribute.KeyValue{
				attribute.Bool("b", true), attribute.Int("i", -7), attribute.Float64("f", 1.5), attribute.StringSlice("s", []string{"x", "y"}),
				attribute.Map("m", attribute.String("k", "v")), attribute.String("br\xffken", "not \xff text"),
			},
		}
	}
	batch := otlp.LogBatch{
		Resource: resource.NewSchemaless(attribute.String("service.name", "tester")), Scope: instrumentation.Scope{Name: "scope", Version: "v1"},
		Records: []*otlp.LogRecord{record("one"), record("tw\xfe"), {Event: "three"}},
	}
	require.NoError(t, exporter.Export(t.Context(), otlp.LogBatch{}), "nothing is sent of nothing")
	require.NoError(t, exporter.Export(t.Context(), batch))
	require.NoError(t, exporter.Shutdown(t.Context()))
	require.Error(t, exporter.Export(t.Context(), batch), "it is shut down")
	got := arrived(t, c, &logs.LogsData{})
	require.Len(t, got.GetResourceLogs(), 1)
	assert.Equal(t, "/base/v1/logs", c.paths[0])
	assert.Equal(t, "service.name", got.GetResourceLogs()[0].GetResource().GetAttributes()[0].GetKey())
	scopes := got.GetResourceLogs()[0].GetScopeLogs()
	require.Len(t, scopes, 1, "records of one scope are together")
	assert.Equal(t, "scope", scopes[0].GetScope().GetName())
	assert.Equal(t, "v1", scopes[0].GetScope().GetVersion())
	require.Len(t, scopes[0].GetLogRecords(), 3)
	r := scopes[0].GetLogRecords()[0]
	assert.Equal(t, "one", r.GetEventName())
	assert.Equal(t, logs.SeverityNumber_SEVERITY_NUMBER_WARN, r.GetSeverityNumber())
	assert.Equal(t, "WARN", r.GetSeverityText())
	assert.Equal(t, uint64(1_000_000_002), r.GetTimeUnixNano())
	assert.Equal(t, uint64(3_000_000_004), r.GetObservedTimeUnixNano())
	assert.Equal(t, []byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, r.GetTraceId())
	assert.Equal(t, []byte{2, 0, 0, 0, 0, 0, 0, 0}, r.GetSpanId())
	assert.Equal(t, uint32(1), r.GetFlags())
	values := map[string]string{}
	for _, kv := range r.GetAttributes() {
		values[kv.GetKey()] = strings.ReplaceAll(kv.GetValue().String(), "  ", " ")
	}
	assert.Equal(t, "bool_value:true", values["b"])
	assert.Equal(t, "int_value:-7", values["i"])
	assert.Equal(t, "double_value:1.5", values["f"])
	assert.Contains(t, values["s"], "array_value")
	assert.Contains(t, values["m"], "kvlist_value")
	assert.Contains(t, values["br\uFFFDken"], "not \uFFFD text", "bytes that are no text do not spoil the batch")
	assert.Equal(t, "tw\uFFFD", scopes[0].GetLogRecords()[1].GetEventName())
	last := scopes[0].GetLogRecords()[2]
	assert.Empty(t, last.GetTraceId())
	assert.Empty(t, last.GetSpanId())
	assert.Zero(t, last.GetTimeUnixNano())
}

func TestMetrics(t *testing.T) {
	c := &collector{}
	listen(t, c, "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=delta")
	exporter, err := otlp.Metrics(t.Context())
	require.NoError(t, err)
	assert.Equal(t, metricdata.DeltaTemporality, exporter.Temporality(sdkmetric.InstrumentKindCounter))
	at := time.Unix(5, 0)
	set := attribute.NewSet(attribute.String("k", "v"))
	require.NoError(t, exporter.Export(t.Context(), &metricdata.ResourceMetrics{
		Resource: resource.Empty(),
		ScopeMetrics: []metricdata.ScopeMetrics{{Metrics: []metricdata.Metrics{
			{Name: "gauge", Data: metricdata.Gauge[int64]{DataPoints: []metricdata.DataPoint[int64]{{Attributes: set, Time: at, Value: 3}}}},
			{Name: "sum", Unit: "1", Data: metricdata.Sum[float64]{
				Temporality: metricdata.DeltaTemporality, IsMonotonic: true,
				DataPoints: []metricdata.DataPoint[float64]{{Time: at, Value: 2.5}},
			}},
			{Name: "histogram", Data: metricdata.Histogram[float64]{
				Temporality: metricdata.CumulativeTemporality,
				DataPoints: []metricdata.HistogramDataPoint[float64]{{
					Count: 2, Sum: 3, Min: metricdata.NewExtrema(1.0), Bounds: []float64{1}, BucketCounts: []uint64{1, 1},
				}},
			}},
			{Name: "exponential", Data: metricdata.ExponentialHistogram[int64]{
				Temporality: metricdata.DeltaTemporality,
				DataPoints: []metricdata.ExponentialHistogramDataPoint[int64]{{
					Count: 1, Sum: 4, Scale: 2, PositiveBucket: metricdata.ExponentialBucket{Offset: 1, Counts: []uint64{1}},
				}},
			}},
		}}},
	}))
	require.NoError(t, exporter.Shutdown(t.Context()))
	require.Error(t, exporter.Export(t.Context(), &metricdata.ResourceMetrics{Resource: resource.Empty()}), "it is shut down")
	got := arrived(t, c, &metrics.MetricsData{}).GetResourceMetrics()[0].GetScopeMetrics()[0].GetMetrics()
	require.Len(t, got, 4)
	gauge := got[0].GetGauge().GetDataPoints()[0]
	assert.Equal(t, int64(3), gauge.GetAsInt())
	assert.Equal(t, "k", gauge.GetAttributes()[0].GetKey())
	assert.Equal(t, uint64(5_000_000_000), gauge.GetTimeUnixNano())
	assert.True(t, got[1].GetSum().GetIsMonotonic())
	assert.Equal(t, metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA, got[1].GetSum().GetAggregationTemporality())
	assert.InDelta(t, 2.5, got[1].GetSum().GetDataPoints()[0].GetAsDouble(), 0)
	histogram := got[2].GetHistogram().GetDataPoints()[0]
	assert.Equal(t, []uint64{1, 1}, histogram.GetBucketCounts())
	assert.InDelta(t, 1, histogram.GetMin(), 0)
	assert.Nil(t, histogram.Max)
	assert.Equal(t, int32(1), got[3].GetExponentialHistogram().GetDataPoints()[0].GetPositive().GetOffset())
}

// A message that a collector cannot take now is sent again, after the time it asks for. A message that it will never
// take is not.
func TestAttempts(t *testing.T) {
	for name, tc := range map[string]struct {
		statuses []int
		sent     int
		err      string
	}{
		"busy for a while": {[]int{503}, 2, ""},
		"busy for long":    {[]int{503, 429, 502}, 2, "429"},
		"refused":          {[]int{400}, 1, "400"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, variable := range []string{"ENDPOINT", "METRICS_ENDPOINT"} {
				t.Setenv("OTEL_EXPORTER_OTLP_"+variable, "")
			}
			synctest.Test(t, func(t *testing.T) {
				c := &collector{statuses: tc.statuses}
				exporter, err := otlp.Metrics(t.Context())
				require.NoError(t, err)
				otlp.Through(exporter, c)
				begun := time.Now()
				err = exporter.Export(t.Context(), &metricdata.ResourceMetrics{Resource: resource.Empty()})
				if tc.err == "" {
					require.NoError(t, err)
					assert.GreaterOrEqual(t, time.Since(begun), 40*time.Second, "as the collector asked")
				} else {
					require.ErrorContains(t, err, tc.err)
				}
				assert.Len(t, c.bodies, tc.sent)
				for _, body := range c.bodies {
					assert.True(t, bytes.Equal(body, c.bodies[0]))
				}
			})
		})
	}
}

func TestErrorsTellNoPassword(t *testing.T) {
	listen(t, &collector{}, "OTEL_EXPORTER_OTLP_ENDPOINT=http://ann:hunter2@localhost:4318")
	exporter, err := otlp.Metrics(t.Context())
	require.NoError(t, err)
	otlp.Through(exporter, &collector{statuses: []int{http.StatusBadRequest}})
	err = exporter.Export(t.Context(), &metricdata.ResourceMetrics{Resource: resource.Empty()})
	require.ErrorContains(t, err, "localhost:4318")
	assert.NotContains(t, err.Error(), "hunter2")
}

// A key that is meant for the collector goes nowhere else.
func TestRedirectionsAreNotFollowed(t *testing.T) {
	elsewhere := &collector{}
	other := httptest.NewServer(elsewhere)
	t.Cleanup(other.Close)
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	t.Cleanup(server.Close)
	listen(t, &collector{}, "OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL, "OTEL_EXPORTER_OTLP_HEADERS=x-key=hunter2")
	exporter, err := otlp.Metrics(t.Context())
	require.NoError(t, err)
	err = exporter.Export(t.Context(), &metricdata.ResourceMetrics{Resource: resource.Empty()})
	require.ErrorContains(t, err, "307 Temporary Redirect")
	assert.Empty(t, elsewhere.headers)
	require.NoError(t, exporter.Shutdown(t.Context()))
}

func TestPartialSuccess(t *testing.T) {
	success := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 3)
	success = protowire.AppendString(protowire.AppendTag(success, 2, protowire.BytesType), "too old")
	answer := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), success)
	for name, tc := range map[string]struct {
		answer []byte
		err    string
	}{
		"a part": {answer, "the collector rejected 3 items: too old"},
		"broken": {[]byte{0xff}, "reading the collector's answer"},
		"all":    {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := &collector{answer: tc.answer}
			listen(t, c)
			exporter, err := otlp.Metrics(t.Context())
			require.NoError(t, err)
			err = exporter.Export(t.Context(), &metricdata.ResourceMetrics{Resource: resource.Empty()})
			if tc.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tc.err)
			}
			require.NoError(t, exporter.Shutdown(t.Context()))
		})
	}
}

// A wrong value is a warning, and the exporter sends what it can; an endpoint has no substitute.
func TestWrongSettings(t *testing.T) {
	for pair, want := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=localhost:4318":  "OTEL_EXPORTER_OTLP_ENDPOINT: not an endpoint",
		"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=ftp://x": "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: not an endpoint",
	} {
		t.Run(pair, func(t *testing.T) {
			listen(t, &collector{}, pair)
			_, err := otlp.Metrics(t.Context())
			require.ErrorContains(t, err, want)
		})
	}
	for pair, want := range map[string]string{
		"OTEL_EXPORTER_OTLP_HEADERS=a,b=2,=3,c d=4,e=%0a,f=%2":                 "OTEL_EXPORTER_OTLP_HEADERS: an entry is left out",
		"OTEL_EXPORTER_OTLP_TIMEOUT=soon":                                      "OTEL_EXPORTER_OTLP_TIMEOUT: expected a number of milliseconds: using 10000",
		"OTEL_EXPORTER_OTLP_TIMEOUT=-1":                                        "OTEL_EXPORTER_OTLP_TIMEOUT: expected a number",
		"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL=http/json":                        "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: unknown protocol",
		"OTEL_EXPORTER_OTLP_METRICS_COMPRESSION=zip":                           "OTEL_EXPORTER_OTLP_METRICS_COMPRESSION: unknown",
		"OTEL_EXPORTER_OTLP_CERTIFICATE=/none":                                 "OTEL_EXPORTER_OTLP_CERTIFICATE: open",
		"OTEL_EXPORTER_OTLP_CLIENT_KEY=/none":                                  "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: open",
		"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=x":                  "unknown temporality",
		"OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION=exponential": "unknown aggregation",
	} {
		t.Run(pair, func(t *testing.T) {
			c := &collector{}
			listen(t, c, pair)
			var warned []string
			otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { warned = append(warned, err.Error()) }))
			exporter, err := otlp.Metrics(t.Context())
			require.NoError(t, err)
			require.Len(t, warned, 1)
			assert.Contains(t, warned[0], want)
			require.NoError(t, exporter.Export(t.Context(), &metricdata.ResourceMetrics{Resource: resource.Empty()}))
			require.Len(t, c.headers, 1)
			if strings.Contains(pair, "HEADERS") {
				assert.Equal(t, "2", c.headers[0].Get("B"), "the entry that is right")
				assert.Empty(t, c.headers[0].Get("E"))
				assert.NotContains(t, warned[0], "%0a", "an entry may be a secret")
			}
			require.NoError(t, exporter.Shutdown(t.Context()))
		})
	}
}
