package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/grapnel-go/grapnel/durable"
)

// serveHealth serves the health of a worker at a loopback address.
func serveHealth(ctx context.Context, address string, w *durable.Worker, log *workLog) (stop func(), err error) {
	host, _, err := net.SplitHostPort(address)
	if err == nil && host != "localhost" {
		if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
			err = errors.New("it must be a loopback address, such as localhost:8080")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("--health %s: %w", address, err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--health %s: %w", address, err)
	}
	if tcp, ok := listener.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		return nil, errors.Join(fmt.Errorf("--health %s: it is no loopback address", address), listener.Close())
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(out http.ResponseWriter, _ *http.Request) { showHealth(out, w.Health()) })
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10}
	go func() { _ = server.Serve(listener) }() // it ends with stop
	log.note(fmt.Sprintf("Health: http://%s/healthz", listener.Addr()))
	return func() { _ = server.Close() }, nil
}

// showHealth writes the health: 200 while the worker works or drains and reaches its store, otherwise 503.
func showHealth(out http.ResponseWriter, h durable.WorkerHealth) {
	out.Header().Set("Content-Type", "application/json")
	out.Header().Set("Cache-Control", "no-store")
	if h.State == durable.WorkerStopped || h.Error != "" {
		out.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(out).Encode(h) // the client has gone
}

// workMeters are the metrics of a worker. They go where the environment configures OpenTelemetry.
type workMeters struct {
	active   metric.Int64UpDownCounter
	duration metric.Float64Histogram
	failures metric.Int64Counter
	repaired metric.Int64Counter
}

func newWorkMeters() *workMeters {
	meter := otel.Meter("github.com/grapnel-go/grapnel/cmd/grapnel")
	m := &workMeters{}
	// An instrument without an error is valid, and one with an error does nothing.
	m.active, _ = meter.Int64UpDownCounter("grapnel.worker.active", metric.WithUnit("{run}"), metric.WithDescription("Runs that the worker executes."))
	m.duration, _ = meter.Float64Histogram("grapnel.worker.run.duration", metric.WithUnit("s"), metric.WithDescription("How long the worker executed a run."))
	m.failures, _ = meter.Int64Counter("grapnel.worker.failures", metric.WithUnit("{failure}"), metric.WithDescription("Failures of the store or the scheduler."))
	m.repaired, _ = meter.Int64Counter("grapnel.worker.reconciled", metric.WithUnit("{run}"), metric.WithDescription("Runs that a pass over the store has changed, by why."))
	return m
}

func (m *workMeters) observe(e durable.WorkerEvent) {
	ctx := context.Background()
	about := []attribute.KeyValue{attribute.String("grapnel.run.kind", string(e.Run.Kind)), attribute.String("grapnel.run.name", e.Run.Name)}
	switch e.Kind {
	case durable.WorkerClaimed:
		m.active.Add(ctx, 1, metric.WithAttributes(about...))
	case durable.WorkerReleased:
		m.active.Add(ctx, -1, metric.WithAttributes(about...))
		about = append(about, attribute.String("grapnel.run.status", string(e.Run.Status)), attribute.Bool("error", e.Err != nil))
		m.duration.Record(ctx, e.Took.Seconds(), metric.WithAttributes(about...))
	case durable.WorkerFailed:
		m.failures.Add(ctx, 1)
	case durable.WorkerReconciled:
		for why, n := range map[string]int{
			"lease_expired": e.Reconciled.Expired, "question_expired": e.Reconciled.Overdue, "due": e.Reconciled.Due, "late": e.Reconciled.Late,
		} {
			if n > 0 {
				m.repaired.Add(ctx, int64(n), metric.WithAttributes(attribute.String("reason", why)))
			}
		}
	}
}
