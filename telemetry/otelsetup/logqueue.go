package otelsetup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/grapnel-go/grapnel/internal/semconv"
	"github.com/grapnel-go/grapnel/internal/version"
	"github.com/grapnel-go/grapnel/telemetry/otelsetup/internal/otlp"
)

// logExporter exports log events. A queue calls its methods one at a time.
type logExporter interface {
	Export(ctx context.Context, b otlp.LogBatch) error
	Shutdown(ctx context.Context) error
}

// batchLimits are the limits for a queue of spans or log events.
type batchLimits struct {
	queue, batch int           // maximum numbers of events
	delay        time.Duration // maximum wait for the first event in a batch
	timeout      time.Duration // limit for the export of a batch
}

// batchLimitsFromEnv reads the variables with a prefix. Delay is the default delay in milliseconds.
func batchLimitsFromEnv(prefix string, delay int) batchLimits {
	const most = 1 << 20
	milliseconds := func(name string, otherwise int) time.Duration {
		return time.Duration(limitFromEnv(prefix+name, otherwise, 1<<40)) * time.Millisecond
	}
	l := batchLimits{
		queue: limitFromEnv(prefix+"MAX_QUEUE_SIZE", 2048, most), batch: limitFromEnv(prefix+"MAX_EXPORT_BATCH_SIZE", 512, most),
		delay: milliseconds("SCHEDULE_DELAY", delay), timeout: milliseconds("EXPORT_TIMEOUT", 30_000),
	}
	l.batch = min(l.batch, l.queue)
	return l
}

// numbers are the numeric variables that the SDK reads. The SDK replaces a wrong value by the default without a
// warning.
var numbers = []string{
	"OTEL_METRIC_EXPORT_INTERVAL", "OTEL_METRIC_EXPORT_TIMEOUT", "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT",
	"OTEL_SPAN_EVENT_COUNT_LIMIT", "OTEL_SPAN_LINK_COUNT_LIMIT", "OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT", "OTEL_LINK_ATTRIBUTE_COUNT_LIMIT",
}

// checkNumbers reports wrong values of the variables that the SDK reads.
func checkNumbers() {
	for _, variable := range numbers {
		if text := os.Getenv(variable); text != "" {
			if _, err := strconv.Atoi(text); err != nil {
				otel.Handle(fmt.Errorf("%s: expected a number, got %q: using the default", variable, text))
			}
		}
	}
}

// limitFromEnv reads a number from 1 to most. For any other value, it reports an error and returns the default, as
// OpenTelemetry's specification requires.
func limitFromEnv(variable string, otherwise, most int) int {
	text := strings.TrimSpace(os.Getenv(variable))
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		otel.Handle(fmt.Errorf("%s: expected a number from 1 to %d, got %q: using %d", variable, most, text, otherwise))
		return otherwise
	}
	return n
}

// logQueue exports log events in batches, on its own goroutine. If the exporter is slower than the agents, it drops
// events and does not block the agents.
type logQueue struct {
	exporter logExporter
	from     *resource.Resource
	limits   batchLimits
	records  chan *otlp.LogRecord
	ctx      context.Context //nolint:containedctx // context of all exports; cancelled when the time for a shutdown is over
	cancel   context.CancelFunc
	done     chan struct{} // closed when the goroutine ends

	mu      sync.Mutex
	closed  bool
	dropped int   // events dropped since the last report
	err     error // export errors after closing
}

// startLogQueue starts a queue, which Shutdown ends.
func startLogQueue(e logExporter, from *resource.Resource, limits batchLimits) *logQueue {
	q := &logQueue{
		exporter: e, from: from, limits: limits,
		records: make(chan *otlp.LogRecord, limits.queue), done: make(chan struct{}),
	}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	go q.work()
	return q
}

// add queues an event, or drops it when the queue is full or closed.
func (q *logQueue) add(r *otlp.LogRecord) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	select {
	case q.records <- r:
	default:
		q.dropped++
	}
}

func (q *logQueue) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// work exports a batch when it is full, when its first event has waited for the delay, and when the queue is
// closed.
func (q *logQueue) work() {
	defer close(q.done)
	defer q.cancel()
	batch := make([]*otlp.LogRecord, 0, q.limits.batch)
	var due <-chan time.Time // the time to export the batch, nil while it is empty
	for {
		select {
		case r, ok := <-q.records:
			if !ok {
				q.exportBatch(batch)
				q.report(q.exporter.Shutdown(q.ctx))
				return
			}
			if batch = append(batch, r); len(batch) == 1 {
				due = time.After(q.limits.delay)
			}
			if len(batch) < q.limits.batch {
				continue
			}
		case <-due:
		}
		q.exportBatch(batch)
		clear(batch)
		batch, due = batch[:0], nil
	}
}

func (q *logQueue) exportBatch(batch []*otlp.LogRecord) {
	q.mu.Lock()
	dropped := q.dropped
	q.dropped = 0
	q.mu.Unlock()
	if dropped > 0 {
		otel.Handle(fmt.Errorf("log events: dropped %d because the queue of %d was full: raise OTEL_BLRP_MAX_QUEUE_SIZE", dropped, q.limits.queue))
	}
	if len(batch) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(q.ctx, q.limits.timeout)
	defer cancel()
	scope := instrumentation.Scope{Name: semconv.Scope, Version: version.Read()}
	q.report(q.exporter.Export(ctx, otlp.LogBatch{Resource: q.from, Scope: scope, Records: batch}))
}

// report passes an error to OpenTelemetry's error handler or, when the queue is closed, to Shutdown.
func (q *logQueue) report(err error) {
	if err == nil {
		return
	}
	q.mu.Lock()
	closed := q.closed
	if closed {
		q.err = errors.Join(q.err, err)
	}
	q.mu.Unlock()
	if !closed {
		otel.Handle(err)
	}
}

// Shutdown exports the queued events and waits until that is done or ctx ends. If ctx ends first, it cancels the
// current export and returns immediately, and the remaining events are lost. Later events are dropped.
func (q *logQueue) Shutdown(ctx context.Context) error {
	q.mu.Lock()
	if !q.closed {
		q.closed = true
		close(q.records)
	}
	q.mu.Unlock()
	select {
	case <-q.done:
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.err
	case <-ctx.Done():
		q.cancel()
		return fmt.Errorf("exporting log events: %w", context.Cause(ctx))
	}
}
