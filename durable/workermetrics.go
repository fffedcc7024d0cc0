package durable

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/grapnel-go/grapnel/internal/semconv"
	"github.com/grapnel-go/grapnel/internal/version"
)

// workerMetrics are the instruments of a worker.
type workerMetrics struct {
	duration           metric.Float64Histogram
	active             metric.Int64UpDownCounter
	reconciled, errors metric.Int64Counter
	stalls, doubts     metric.Int64Counter
	ready, unserved    metric.Int64Gauge
	age                metric.Float64Gauge
}

// runBuckets are the boundaries of the durations of runs, in seconds.
var runBuckets = []float64{0.01, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14400, 86400}

// newWorkerMetrics returns the instruments; nil is the global provider.
func newWorkerMetrics(p metric.MeterProvider) workerMetrics {
	if p == nil {
		p = otel.GetMeterProvider()
	}
	m := p.Meter(semconv.Scope, metric.WithInstrumentationVersion(version.Read()))
	var w workerMetrics // instruments fail only for invalid names
	w.duration, _ = m.Float64Histogram(semconv.MetricWorkerRunDuration, metric.WithUnit("s"),
		metric.WithDescription("How long a worker executed a run until it ended or waited."), metric.WithExplicitBucketBoundaries(runBuckets...))
	w.active, _ = m.Int64UpDownCounter(semconv.MetricWorkerActive, metric.WithUnit("{run}"), metric.WithDescription("Runs that the worker executes."))
	w.reconciled, _ = m.Int64Counter(semconv.MetricWorkerReconciled, metric.WithUnit("{run}"),
		metric.WithDescription("Runs that the worker has changed although no process holds them, by cause."))
	w.errors, _ = m.Int64Counter(semconv.MetricWorkerErrors, metric.WithUnit("{error}"), metric.WithDescription("Failures of the store or the scheduler."))
	w.stalls, _ = m.Int64Counter(semconv.MetricWorkerStalls, metric.WithUnit("{stall}"),
		metric.WithDescription("Times that the store did not answer the worker for a second."))
	w.doubts, _ = m.Int64Counter(semconv.MetricWorkerDoubts, metric.WithUnit("{run}"),
		metric.WithDescription("Times that a run began to wait for the answer whether a call in doubt runs again."))
	w.unserved, _ = m.Int64Gauge(semconv.MetricQueueUnserved, metric.WithUnit("{run}"), metric.WithDescription("Ready runs that no worker looks for."))
	w.ready, _ = m.Int64Gauge(semconv.MetricQueueReady, metric.WithUnit("{run}"), metric.WithDescription("Ready runs that the worker could execute."))
	w.age, _ = m.Float64Gauge(semconv.MetricQueueAge, metric.WithUnit("s"), metric.WithDescription("How long the oldest of these runs has been ready."))
	return w
}

// record records an event of the worker.
func (m workerMetrics) record(ctx context.Context, e WorkerEvent) {
	switch e.Kind {
	case WorkerClaimed:
		m.active.Add(ctx, 1, metric.WithAttributeSet(needsAttributes(e.Run.Needs())))
	case WorkerReleased:
		m.active.Add(ctx, -1, metric.WithAttributeSet(needsAttributes(e.Needs)))
		m.duration.Record(ctx, e.Took.Seconds(), metric.WithAttributes(semconv.KeyRunKind.String(string(e.Needs.Kind)),
			semconv.KeyRunName.String(e.Needs.Name), semconv.KeyStatus.String(string(e.Run.Status))))
	case WorkerReconciled:
		for cause, n := range map[string]int{
			semconv.CauseLeaseExpired: e.Reconciled.Expired, semconv.CauseAnswerOverdue: e.Reconciled.Overdue,
			semconv.CauseTimeCame: e.Reconciled.Due, semconv.CauseTooLate: e.Reconciled.Late,
		} {
			if n > 0 {
				m.reconciled.Add(ctx, int64(n), metric.WithAttributes(semconv.KeyReconcileCause.String(cause)))
			}
		}
	case WorkerFailed:
		m.errors.Add(ctx, 1)
	case WorkerStalled:
		m.stalls.Add(ctx, 1)
	case WorkerInDoubt:
		m.doubts.Add(ctx, 1, metric.WithAttributeSet(needsAttributes(e.Run.Needs())))
	case WorkerRecovered, WorkerClockJumped, WorkerUnserved: // for the last, the gauge says for how many runs
	}
}

// recordQueue records how a queue is served.
func (m workerMetrics) recordQueue(ctx context.Context, n Needs, s Service) {
	attributes := metric.WithAttributeSet(needsAttributes(n))
	age := time.Duration(0)
	if s.Backlog > 0 {
		age = max(time.Since(s.Oldest), 0)
	}
	m.ready.Record(ctx, int64(s.Backlog), attributes)
	m.age.Record(ctx, age.Seconds(), attributes)
}

// recordUnserved records how many ready runs no worker looks for, by the attributes of their queues.
func (m workerMetrics) recordUnserved(ctx context.Context, runs map[attribute.Set]int) {
	for attributes, n := range runs {
		m.unserved.Record(ctx, int64(n), metric.WithAttributeSet(attributes))
	}
}

// needsAttributes returns the attributes of a queue, without its demands: the number of their values is unlimited.
func needsAttributes(n Needs) attribute.Set {
	return attribute.NewSet(semconv.KeyRunKind.String(string(n.Kind)), semconv.KeyRunName.String(n.Name))
}
