package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// Delete removes a run: see durable.Store. If the reply of the database was lost, a repeated call returns ErrNotFound
// once the run is deleted.
func (s *Store) Delete(ctx context.Context, id agent.RunID) error {
	return s.call(ctx, fmt.Sprintf("delete run %s", id), func(ctx context.Context) error {
		var (
			b    pgx.Batch
			done bool
		)
		r := batchLock(&b, id)
		b.Queue(`WITH gone AS (DELETE FROM runs r WHERE r.id = $1 AND `+notHeld+` RETURNING r.id), `+clearAudit+` SELECT true FROM gone`, text(id)).
			QueryRow(scanOptional(&done))
		switch err := s.batch(ctx, &b); {
		case err != nil || done:
			return err
		case !r.there:
			return durable.ErrNotFound
		}
		return &durable.HeldError{Run: id, Owner: r.owner, Expires: r.expires}
	})
}

// clearAudit is a part of a statement that deletes runs and returns their IDs as gone: it removes the data of their audit records.
const clearAudit = `cleared AS (UPDATE audit a SET data = NULL FROM gone WHERE a.run = gone.id AND a.run <> '' AND a.data IS NOT NULL)`

// pruneQuery deletes some of the runs that ended before a time, and returns their number. It skips runs that another process is
// deleting.
const pruneQuery = `WITH gone AS (
		DELETE FROM runs WHERE num IN (SELECT num FROM runs WHERE ended < $1 ORDER BY ended LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING id
	), ` + clearAudit + ` SELECT count(*) FROM gone`

const pruneAtOnce = 1000

// Prune deletes the runs that ended before a time: see durable.Store. It deletes them in transactions of a thousand runs,
// so that the statement timeout does not limit their number. With an error it returns the number of runs deleted so far.
func (s *Store) Prune(ctx context.Context, before time.Time) (n int, err error) {
	for {
		var gone int
		err := s.call(ctx, "prune runs", func(ctx context.Context) error {
			return s.pool.QueryRow(ctx, pruneQuery, before, pruneAtOnce).Scan(&gone)
		})
		n += gone
		if err != nil {
			return n, err
		}
		if gone < pruneAtOnce {
			return n, s.pruneQueues(ctx)
		}
	}
}

// pruneQueuesQuery deletes the queues without runs. It skips a queue for which another session is storing a run.
const pruneQueuesQuery = `DELETE FROM queues WHERE id IN (
	SELECT q.id FROM queues q LEFT JOIN LATERAL (SELECT true AS used FROM runs r WHERE r.queue = q.id LIMIT 1) r ON true
	WHERE r.used IS NULL FOR UPDATE OF q SKIP LOCKED)`

// pruneQueues deletes the queues without runs.
func (s *Store) pruneQueues(ctx context.Context) error {
	return s.call(ctx, "prune queues", func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, pruneQueuesQuery)
		return err
	})
}
