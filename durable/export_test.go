package durable

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/grapnel-go/grapnel/agent"
)

// SetCommitDelay sets how long an entry may wait for the next entry, so that both share a commit.
func (k *Keeper) SetCommitDelay(d time.Duration) { k.commitDelay = d }

// WaitsOf returns what the run of a notice waits for.
func WaitsOf(n Notice) ([]Wait, error) { return n.Waits() }

// SetClock sets the clock of a worker that does not run yet.
func (w *Worker) SetClock(now func() time.Time) { w.clock.now = now }

// ApprovalMeter returns the func that measures the waits of a store once.
func ApprovalMeter(store Inbox, p metric.MeterProvider) func(context.Context) error {
	return newApprovalMeter(store, p).measure
}

// StatusOf returns the status of a stored run whose agent has the given status.
func StatusOf(s agent.Status) (Status, bool) { return statusOf(s) }
