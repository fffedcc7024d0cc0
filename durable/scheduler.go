package durable

import (
	"context"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// Scheduler delivers ready runs to workers. A delivery is a hint: the lease in the Store decides which
// worker executes a run, so a scheduler may deliver late, twice, or for a run that is no longer ready.
// What a scheduler loses is offered again: the Store knows which offers are owed.
//
// NewEmbedded returns the scheduler that finds ready runs in the Store itself. Package durabletest has the
// tests that every Scheduler must pass. A Scheduler must be safe for concurrent use.
type Scheduler interface {
	// Offer announces ready runs. Announcing the same offer twice is the same as once; an offer with a
	// higher number replaces the earlier offer of the run.
	Offer(ctx context.Context, offers ...Offer) error
	// Next waits for a run that the worker can execute and returns its delivery. It returns the error of
	// ctx when ctx ends first; a delivery that is lost then comes back within five seconds.
	Next(ctx context.Context, w WorkerInfo) (Delivery, error)
}

// OfferID identifies an offer. Seq counts how often the run has become ready.
type OfferID struct {
	Run agent.RunID
	Seq int64
}

// Offer announces that a run is ready.
type Offer struct {
	OfferID

	// Key is the key of the needs of the run.
	Key Key
	// Priority is that of the job. A scheduler may ignore it.
	Priority int8
}

// WorkerInfo describes a worker to a scheduler.
type WorkerInfo struct {
	// Owner is the name of the process in leases, TTL how long its leases are valid without renewal.
	Owner string
	TTL   time.Duration
	// Serves reports whether the worker can run jobs with these needs.
	Serves func(Needs) bool
}

// Delivery is a run that a scheduler has delivered.
type Delivery interface {
	// ID returns the offer.
	ID() OfferID
	// Lease returns the lease of the run if the scheduler has acquired it for the worker, and otherwise
	// nil: then the worker acquires it.
	Lease() *Lease
	// Ack tells the scheduler that the lease is decided: the worker has it, or the run needs no worker.
	// It does not wait for the end of the run.
	Ack(ctx context.Context) error
	// Return gives the delivery back, so that another worker gets it. The scheduler may wait for a
	// second before it delivers again.
	Return(ctx context.Context) error
}

// WorkerRecord describes a worker that is connected to a store.
type WorkerRecord struct {
	// Owner is the worker's name in leases.
	Owner string `json:"owner"`
	// Kinds are the kinds of its runners, Labels are its labels, and Capacity is how many runs it executes at once; zero if unknown.
	Kinds    []Kind            `json:"kinds,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Capacity int               `json:"capacity,omitempty"`
	// Draining says that it claims no more runs.
	Draining bool `json:"draining,omitempty"`
	// Version is the version of Grapnel in its program.
	Version string `json:"version,omitempty"`
	// Seen is when it was last recorded, by the clock of the store.
	Seen time.Time `json:"seen"`
}

// Service says how the queue of one key is served.
type Service struct {
	// LastPoll is when a worker last looked for runs with this key, to about thirty seconds; zero for never.
	LastPoll time.Time
	// Backlog is the number of ready runs, and Oldest since when the first of them is ready.
	Backlog int
	Oldest  time.Time
}
