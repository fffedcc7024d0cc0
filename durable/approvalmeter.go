package durable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/grapnel-go/grapnel/internal/semconv"
	"github.com/grapnel-go/grapnel/internal/version"
)

// peopleKinds are the kinds of waits that people answer.
var peopleKinds = []WaitKind{WaitApproval, WaitDoubt, WaitInput}

// MeasureApprovals measures how long people have left the oldest open waits of a store without an answer, as the gauge
// grapnel.approval.age, every ten seconds until ctx is done. Every Worker does; a program without a worker, such as an inbox,
// calls it in a goroutine. A nil provider is the global one. Failed, unless nil, is called with each error of the store.
func MeasureApprovals(ctx context.Context, store WaitLister, p metric.MeterProvider, failed func(error)) {
	m := newApprovalMeter(store, p)
	every := time.NewTicker(queueInterval)
	defer every.Stop()
	for ctx.Err() == nil {
		if err := m.measure(ctx); err != nil && ctx.Err() == nil && failed != nil {
			failed(err)
		}
		select {
		case <-every.C:
		case <-ctx.Done():
		}
	}
}

// approvalMeter measures the waits of a store.
type approvalMeter struct {
	store WaitLister
	age   metric.Float64Gauge
}

func newApprovalMeter(store WaitLister, p metric.MeterProvider) *approvalMeter {
	if p == nil {
		p = otel.GetMeterProvider()
	}
	meter := p.Meter(semconv.Scope, metric.WithInstrumentationVersion(version.Read()))
	age, _ := meter.Float64Gauge(semconv.MetricApprovalAge, metric.WithUnit("s"), // fails only for invalid names
		metric.WithDescription("How long the oldest open approval, call in doubt or request for input has waited for a person."))
	return &approvalMeter{store, age}
}

// measure records the age of the oldest open wait of each kind that people answer; zero when there is none. It reads one
// wait per kind, by an index, and nothing while no provider collects the gauge.
func (m *approvalMeter) measure(ctx context.Context) error {
	if !m.age.Enabled(ctx) {
		return nil
	}
	for _, kind := range peopleKinds {
		oldest, err := m.store.OpenWaits(ctx, WaitFilter{Kinds: []WaitKind{kind}, Limit: 1})
		if _, encrypted := errors.AsType[*DecryptError](err); err != nil && !encrypted { // times are not encrypted
			return fmt.Errorf("measuring the age of waits of kind %s: %w", kind, err)
		}
		age := time.Duration(0)
		if len(oldest) > 0 {
			age = max(time.Since(oldest[0].Asked), 0)
		}
		m.age.Record(ctx, age.Seconds(), metric.WithAttributes(semconv.KeyWaitKind.String(string(kind))))
	}
	return nil
}
