package durable

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/grapnel-go/grapnel/agent"
)

// WorkerOptions configures a worker.
type WorkerOptions struct {
	// Runners execute the runs of each kind, and of each phase by the kind that Run.Phase names. Required. All must have the same Owner, which is the name of
	// the worker in leases.
	Runners map[Kind]Runner
	// Labels are the labels of the worker. It executes jobs whose demands it has among them.
	Labels map[string]string
	// Capacity is the maximum number of concurrent runs. Zero means 8.
	Capacity int
	// Scheduler delivers ready runs. Nil means that of NewEmbedded.
	Scheduler Scheduler
	// Lease is the duration of the leases of claimed runs. Zero means 30 seconds.
	Lease time.Duration
	// Poll is how often the worker reconciles the store and looks for runs when the store reports no
	// change. Zero means one second.
	Poll time.Duration
	// Grace is how long runs may take to suspend when the worker stops; those that take longer are cut
	// off, and can be resumed from their journals. Zero means 10 seconds.
	Grace time.Duration
	// Watch, unless nil, runs beside the worker while it claims runs, until its context is done: it watches the waits of
	// the store, such as gate.Watcher does.
	Watch func(ctx context.Context)
	// Retain is how long ended runs are stored; older ones are deleted. Zero means for ever.
	Retain time.Duration
	// Meters receives the metrics of the worker: docs/observability.md lists them. Nil means the global
	// provider.
	Meters metric.MeterProvider
	// Observe, unless nil, is called with what the worker does. It must be safe for concurrent use and
	// return soon.
	Observe func(WorkerEvent)
}

// WorkerEvent is something that a worker did: see its kinds.
type WorkerEvent struct {
	Kind WorkerEventKind
	// Run is the run, for WorkerClaimed, WorkerReleased and WorkerInDoubt.
	Run Run
	// Took is how long the run was executed, for WorkerReleased, or how long the store took to answer, for
	// WorkerRecovered.
	Took time.Duration
	// Reconciled is what WorkerReconciled has changed.
	Reconciled Reconciled
	// Needs are those with which the run was claimed, for WorkerReleased, and those of the queue for WorkerUnserved. Service
	// describes that queue.
	Needs   Needs
	Service Service
	// Jump is by how much the clock was set, for WorkerClockJumped: above zero is ahead.
	Jump time.Duration
	// Err is the error of WorkerReleased or WorkerFailed.
	Err error
}

// WorkerEventKind is the kind of a WorkerEvent.
type WorkerEventKind string

// The kinds of events of a worker.
const (
	// WorkerClaimed: the worker begins to execute a run.
	WorkerClaimed WorkerEventKind = "claimed"
	// WorkerReleased: the worker has executed a run. Its Run is as it was stored then.
	WorkerReleased WorkerEventKind = "released"
	// WorkerReconciled: a call of Reconcile has changed runs, such as those with an expired lease.
	WorkerReconciled WorkerEventKind = "reconciled"
	// WorkerFailed: the store or the scheduler failed. The worker tries again.
	WorkerFailed WorkerEventKind = "failed"
	// WorkerStalled: the store has not answered the worker for a second.
	WorkerStalled WorkerEventKind = "stalled"
	// WorkerRecovered: the store has answered the call that WorkerStalled was about.
	WorkerRecovered WorkerEventKind = "recovered"
	// WorkerInDoubt: a run that the worker has executed waits for the answer whether a call runs again that
	// may have happened: see toolexec.Policy.
	WorkerInDoubt WorkerEventKind = "in_doubt"
	// WorkerUnserved: runs of a queue have been ready for 70 seconds, and no worker has looked for such runs
	// for as long. Every other worker reports that once, until the queue is served or empty.
	WorkerUnserved WorkerEventKind = "unserved"
	// WorkerClockJumped: the clock of this machine was set by more than five seconds, or the machine slept. When it jumped ahead,
	// the worker does not reconcile the store this time: a jump that is taken back before the next time expires nothing.
	WorkerClockJumped WorkerEventKind = "clock_jumped"
)

// Activity is a run that a worker executes.
type Activity struct {
	Run  agent.RunID `json:"run"`
	Kind Kind        `json:"kind"`
	Name string      `json:"name"`
	// Phase is the phase that the worker executes: see Run.Phase.
	Phase Kind      `json:"phase,omitempty"`
	Since time.Time `json:"since"`
}

// WorkerState is what a worker is doing.
type WorkerState string

// The states of a worker.
const (
	WorkerRunning  WorkerState = "running"
	WorkerDraining WorkerState = "draining"
	WorkerStopped  WorkerState = "stopped"
)

// WorkerHealth describes a worker, for a health check.
type WorkerHealth struct {
	State    WorkerState `json:"state"`
	Owner    string      `json:"owner"`
	Capacity int         `json:"capacity"`
	Active   []Activity  `json:"active"`
	// LastContact is when the store last answered.
	LastContact time.Time `json:"last_contact,omitzero"`
	// Error is the last error of the store or the scheduler; empty once it works again.
	Error string `json:"error,omitempty"`
}
