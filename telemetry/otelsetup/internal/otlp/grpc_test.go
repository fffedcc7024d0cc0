package otlp_test

import (
	"context"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/grapnel-go/grapnel/telemetry/otelsetup/internal/otlp"
)

// grpcCollector keeps what it is sent and answers with the errors in turn, at the end with its answer.
type grpcCollector struct {
	mu     sync.Mutex
	errs   []error
	answer []byte
	calls  []*connect.Request[[]byte]
}

func (c *grpcCollector) export(_ context.Context, r *connect.Request[[]byte]) (*connect.Response[[]byte], error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, r)
	if len(c.errs) > 0 {
		err := c.errs[0]
		c.errs = c.errs[1:]
		return nil, err
	}
	return connect.NewResponse(&c.answer), nil
}

func (c *grpcCollector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for _, service := range []string{"trace.v1.TraceService", "metrics.v1.MetricsService", "logs.v1.LogsService"} {
		if name := "/opentelemetry.proto.collector." + service + "/Export"; r.URL.Path == name {
			connect.NewUnaryHandler(name, c.export, connect.WithCodec(otlp.BytesCodec{})).ServeHTTP(w, r)
			return
		}
	}
	http.NotFound(w, r)
}

// start serves without TLS as collectors do, HTTP/2 alone.
func (c *grpcCollector) start(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(c)
	server.Config.Protocols = &http.Protocols{}
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return server
}

func exportNothing(t *testing.T, e sdkmetric.Exporter) error {
	t.Helper()
	return e.Export(t.Context(), &metricdata.ResourceMetrics{Resource: resource.Empty()})
}

func TestGRPC(t *testing.T) {
	for name, pairs := range map[string][]string{
		"plain":           nil,
		"gzip":            {"OTEL_EXPORTER_OTLP_COMPRESSION=gzip"},
		"of one signal":   {"OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=grpc"},
		"a proxy is left": {"HTTP_PROXY=http://192.0.2.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &grpcCollector{}
			endpoint := "OTEL_EXPORTER_OTLP_ENDPOINT=" + c.start(t).URL
			listen(t, &collector{}, append([]string{"OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_HEADERS=api-key=x%2Cy", endpoint}, pairs...)...)
			exporter, err := otlp.Traces(t.Context())
			require.NoError(t, err)
			provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
			_, span := provider.Tracer("scope").Start(t.Context(), "a-span")
			span.End()
			require.NoError(t, provider.Shutdown(context.Background()))
			require.Len(t, c.calls, 1)
			got := &traces.TracesData{}
			require.NoError(t, proto.Unmarshal(*c.calls[0].Msg, got))
			assert.Equal(t, "a-span", got.GetResourceSpans()[0].GetScopeSpans()[0].GetSpans()[0].GetName())
			assert.Equal(t, "x,y", c.calls[0].Header().Get("Api-Key"))
			assert.Equal(t, connect.ProtocolGRPC, c.calls[0].Peer().Protocol)
		})
	}
}

// A target without a scheme has TLS, unless the variable says otherwise.
func TestGRPCTarget(t *testing.T) {
	plain := &grpcCollector{}
	target := strings.TrimPrefix(plain.start(t).URL, "http://")
	listen(t, &collector{}, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_INSECURE=true", "OTEL_EXPORTER_OTLP_ENDPOINT="+target)
	exporter, err := otlp.Metrics(t.Context())
	require.NoError(t, err)
	require.NoError(t, exportNothing(t, exporter))
	require.NoError(t, exporter.Shutdown(t.Context()))

	private := &grpcCollector{}
	server := httptest.NewUnstartedServer(private)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	target = strings.TrimPrefix(server.URL, "https://")
	listen(t, &collector{}, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_ENDPOINT="+target, "OTEL_EXPORTER_OTLP_CERTIFICATE="+file)
	exporter, err = otlp.Metrics(t.Context())
	require.NoError(t, err)
	require.NoError(t, exportNothing(t, exporter))
	require.NoError(t, exporter.Shutdown(t.Context()))
	assert.Len(t, private.calls, 1)
}

func TestGRPCAnswers(t *testing.T) {
	success := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 3)
	c := &grpcCollector{answer: protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), success)}
	server := c.start(t)
	listen(t, &collector{}, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL)
	exporter, err := otlp.Metrics(t.Context())
	require.NoError(t, err)
	require.ErrorContains(t, exportNothing(t, exporter), "the collector rejected 3 items")
	require.NoError(t, exporter.Shutdown(t.Context()))
	require.ErrorContains(t, exportNothing(t, exporter), "shut down")

	server.Close()
	exporter, err = otlp.Metrics(t.Context())
	require.NoError(t, err)
	require.ErrorContains(t, exportNothing(t, exporter), "refused", "a collector that is not there is not waited for")
	require.NoError(t, exporter.Shutdown(t.Context()))
}

// A message that a collector cannot take now is sent again, after the time it asks for. A message that it will never
// take is not.
func TestGRPCAttempts(t *testing.T) {
	busy := func(code connect.Code, after time.Duration) error {
		err := connect.NewError(code, errors.New("busy"))
		if after > 0 {
			info, _ := proto.Marshal(durationpb.New(after))
			detail, _ := connect.NewErrorDetail(&anypb.Any{
				TypeUrl: "type.googleapis.com/google.rpc.RetryInfo",
				Value:   protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), info),
			})
			err.AddDetail(detail)
		}
		return err
	}
	for name, tc := range map[string]struct {
		errs []error
		sent int
		took time.Duration // at least
		err  string
	}{
		"busy for a while":       {[]error{busy(connect.CodeUnavailable, 0)}, 2, 2 * time.Second, ""},
		"busy until it says":     {[]error{busy(connect.CodeResourceExhausted, 40*time.Second)}, 2, 40 * time.Second, ""},
		"exhausted":              {[]error{busy(connect.CodeResourceExhausted, 0)}, 1, 0, "resource_exhausted: busy"},
		"asks for too much time": {[]error{busy(connect.CodeAborted, 200*time.Hour)}, 1, 0, "aborted: busy"},
		"refused":                {[]error{busy(connect.CodeInvalidArgument, 0)}, 1, 0, "invalid_argument: busy"},
	} {
		t.Run(name, func(t *testing.T) {
			listen(t, &collector{}, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4317")
			synctest.Test(t, func(t *testing.T) {
				c := &grpcCollector{errs: tc.errs}
				exporter, err := otlp.Metrics(t.Context())
				require.NoError(t, err)
				otlp.Through(exporter, c)
				begun := time.Now()
				err = exportNothing(t, exporter)
				if tc.err == "" {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, tc.err)
				}
				assert.GreaterOrEqual(t, time.Since(begun), tc.took)
				assert.Len(t, c.calls, tc.sent)
			})
		})
	}
}
