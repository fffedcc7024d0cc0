package durable

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// Engine hands out runs to workers. Its users do not depend on the implementation: the
// embedded engine of this package, for one machine, or that of a cluster. Package durabletest
// has the tests that every Engine must pass.
//
// Leases and errors are those of Store: the right to write to a run is its lease. An Engine
// must be safe for concurrent use.
type Engine interface {
	// Submit accepts a job. The job is stored when Submit returns, and runs when a worker
	// claims it.
	Submit(ctx context.Context, j Job) (Run, error)
	// Claim leases the due run that has waited longest. It returns ErrNothing when no run is
	// due.
	Claim(ctx context.Context, owner string, ttl time.Duration) (Task, error)
	// Renew gives a lease another ttl from now.
	Renew(ctx context.Context, l Lease, ttl time.Duration) (Lease, error)
	// Report records the progress of a run, or its end.
	Report(ctx context.Context, l Lease, u Update, entries ...Entry) error
	// Park records what a run waits for, and releases the lease.
	Park(ctx context.Context, l Lease, questions []Question, entries ...Entry) error
	// Answer records answers to the questions of one parked run.
	Answer(ctx context.Context, id agent.RunID, answers ...Answer) error
	// Cancel asks that a run be cancelled.
	Cancel(ctx context.Context, id agent.RunID, reason string) error
	// List returns the runs that a filter lets through, newest first.
	List(ctx context.Context, f Filter) ([]Run, error)
	// Watch yields each run that a filter lets through, and again whenever it has
	// changed, until ctx is done. It ends with an error when the runs cannot be read.
	Watch(ctx context.Context, f Filter) iter.Seq2[Run, error]
	// Child works like Submit for a job that a run starts. The parent must exist.
	Child(ctx context.Context, parent agent.RunID, j Job) (Run, error)
}

// ErrNothing is returned when no run is due.
var ErrNothing = errors.New("no run is waiting to be claimed")

// Job is a run to be started.
type Job struct {
	// ID is the id of the run; empty means a new one. Submitting a second job with the same
	// id returns ErrExists.
	ID agent.RunID
	// Agent is the name of the agent.
	Agent string
	// State is the conversation so far, and Input holds the new messages.
	State agent.State
	Input []agent.Message
}

// Task is a run that was claimed.
type Task struct {
	Run     Run
	Lease   Lease
	Entries []Entry
}

// EntrySubmit: a job was accepted; the state with its input, which no hook has seen yet.
const EntrySubmit EntryKind = "submit"

// StoreEngine implements Engine on a Store. It does not drive runs itself.
type StoreEngine struct {
	store Store
	poll  time.Duration
	woken func()
}

var _ Engine = (*StoreEngine)(nil)

// defaultPoll is the interval at which an engine checks its store for changes by others.
const defaultPoll = time.Second

// NewStoreEngine returns the engine on a store, for runners that drive their runs themselves.
// Poll is the interval of Watch; zero means one second.
func NewStoreEngine(store Store, poll time.Duration) *StoreEngine {
	if poll <= 0 {
		poll = defaultPoll
	}
	return &StoreEngine{store: store, poll: poll, woken: func() {}}
}

// Submit stores the job.
func (e *StoreEngine) Submit(ctx context.Context, j Job) (Run, error) {
	return e.submitJob(ctx, j, Run{})
}

// Child stores the job as one that a run started.
func (e *StoreEngine) Child(ctx context.Context, parent agent.RunID, j Job) (Run, error) {
	about, err := e.store.Run(ctx, parent)
	if err != nil {
		return Run{}, fmt.Errorf("starting a child of run %s: %w", parent, err)
	}
	root := about.Root
	if root == "" {
		root = about.ID
	}
	return e.submitJob(ctx, j, Run{Parent: parent, Root: root})
}

const submitting = "submit"

func (e *StoreEngine) submitJob(ctx context.Context, j Job, about Run) (Run, error) {
	s := j.State.With(j.Input...)
	data, err := agent.Checkpoint(s).Changes(agent.State{})
	if err != nil {
		return Run{}, fmt.Errorf("submitting a job for agent %q: %w", j.Agent, err)
	}
	about.ID, about.Agent, about.Session = j.ID, j.Agent, s.Session()
	if about.ID == "" {
		about.ID = agent.NewRunID()
	}
	if about.Root == "" {
		about.Root = about.ID
	}
	lease, err := e.store.Create(ctx, about, submitting, time.Minute)
	if err == nil {
		err = e.store.Append(ctx, lease, Update{}, Entry{Seq: 1, Kind: EntrySubmit, At: time.Now(), Data: data})
	}
	if err == nil {
		err = e.store.Release(ctx, lease)
	}
	if err != nil {
		return Run{}, fmt.Errorf("submitting a job for agent %q: %w", j.Agent, err)
	}
	e.woken()
	return e.store.Run(ctx, about.ID)
}

// someDue is the number of due runs that Claim tries: other processes may take the first ones
// meanwhile.
const someDue = 16

// Claim leases the first due run that no other process takes meanwhile.
func (e *StoreEngine) Claim(ctx context.Context, owner string, ttl time.Duration) (Task, error) {
	due, err := e.store.Due(ctx, someDue)
	if err != nil {
		return Task{}, fmt.Errorf("claiming a run: %w", err)
	}
	for _, about := range due {
		lease, err := e.store.Claim(ctx, about.ID, owner, ttl, TakeFree)
		var other *HeldError
		if errors.As(err, &other) || errors.Is(err, ErrEnded) || errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return Task{}, fmt.Errorf("claiming run %s: %w", about.ID, err)
		}
		entries, err := e.store.Entries(ctx, about.ID, 0)
		if err == nil {
			about, err = e.store.Run(ctx, about.ID)
		}
		if err != nil {
			return Task{}, fmt.Errorf("claiming run %s: %w", lease.Run, errors.Join(err, e.store.Release(context.WithoutCancel(ctx), lease)))
		}
		return Task{Run: about, Lease: lease, Entries: entries}, nil
	}
	return Task{}, ErrNothing
}

// Renew gives a lease another ttl from now.
func (e *StoreEngine) Renew(ctx context.Context, l Lease, ttl time.Duration) (Lease, error) {
	return e.store.Renew(ctx, l, ttl)
}

// Report appends to the journal.
func (e *StoreEngine) Report(ctx context.Context, l Lease, u Update, entries ...Entry) error {
	return e.store.Append(ctx, l, u, entries...)
}

// Park appends to the journal and releases the run.
func (e *StoreEngine) Park(ctx context.Context, l Lease, questions []Question, entries ...Entry) error {
	about, err := e.store.Run(ctx, l.Run)
	if err != nil {
		return err
	}
	if questions == nil {
		questions = []Question{}
	}
	if err := e.store.Append(ctx, l, Update{Status: agent.StatusParked, Steps: about.Steps, Questions: questions}, entries...); err != nil {
		return err
	}
	return e.store.Release(ctx, l)
}

// Answer records answers.
func (e *StoreEngine) Answer(ctx context.Context, id agent.RunID, answers ...Answer) error {
	defer e.woken()
	return e.store.Answer(ctx, id, answers...)
}

// Cancel asks that a run be cancelled.
func (e *StoreEngine) Cancel(ctx context.Context, id agent.RunID, reason string) error {
	defer e.woken()
	return e.store.Cancel(ctx, id, reason)
}

// List returns the runs that a filter lets through.
func (e *StoreEngine) List(ctx context.Context, f Filter) ([]Run, error) { return e.store.List(ctx, f) }

// Watch polls the store.
func (e *StoreEngine) Watch(ctx context.Context, f Filter) iter.Seq2[Run, error] {
	return func(yield func(Run, error) bool) {
		seen := map[agent.RunID]Run{}
		every := time.NewTicker(e.poll)
		defer every.Stop()
		for {
			runs, err := e.store.List(ctx, f)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				yield(Run{}, fmt.Errorf("watching the runs: %w", err))
				return
			}
			for _, run := range slices.Backward(runs) { // oldest first
				if seen[run.ID] == run {
					continue
				}
				if seen[run.ID] = run; !yield(run, nil) {
					return
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-every.C:
			}
		}
	}
}
