package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// following checks, in the transaction that stores jobs, that the runs exist after which the runs of the jobs start.
type following struct {
	jobs   []durable.Job               // prepared
	from   agent.RunID                 // the run whose Commit submits the jobs; empty for none
	locked []agent.RunID               // which of these runs existed before: see lockChildren
	added  map[agent.RunID]durable.Run // the new runs
	// document, unless nil, stores the document of the Commit, if that has changed its run.
	document func(tx pgx.Tx) error
}

// isNeeded reports whether any of the jobs starts after another run, or a document is stored.
func (f *following) isNeeded() bool { return follows(f.jobs) || f.document != nil }

// follows reports whether any of the jobs starts after another run.
func follows(jobs []durable.Job) bool {
	return lo.SomeBy(jobs, func(j durable.Job) bool { return j.After != "" })
}

// check returns an error if a new run starts after a run that neither existed before nor was stored before it.
func (f *following) check() error {
	for i, j := range f.jobs {
		if j.After == "" || j.After == f.from || !f.isAdded(j) || slices.Contains(f.locked, j.After) {
			continue
		}
		if !lo.SomeBy(f.jobs[:i], func(other durable.Job) bool { return other.ID == j.After && f.isAdded(other) }) {
			return fmt.Errorf("run %s starts after run %s: %w", j.ID, j.After, durable.ErrNotFound)
		}
	}
	return nil
}

// isAdded reports whether a job has become a new run: its idempotency key was not known.
func (f *following) isAdded(j durable.Job) bool {
	r, found := f.added[j.ID]
	return found && r.IdempotencyKey == j.IdempotencyKey
}

// send sends a batch that stores the jobs. It changes nothing if check returns an error or the document has changed since.
func (f *following) send(ctx context.Context, s *Store, b *pgx.Batch) error {
	if !f.isNeeded() {
		return s.batch(ctx, b)
	}
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		if err := f.check(); err != nil || f.document == nil {
			return err
		}
		return f.document(tx)
	})
}

// afters returns the runs after which the runs of jobs start.
func afters(jobs []durable.Job) []agent.RunID {
	return lo.FilterMap(jobs, func(j durable.Job, _ int) (agent.RunID, bool) { return j.After, j.After != "" })
}
