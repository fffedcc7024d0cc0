package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

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
		b.Queue(`DELETE FROM runs WHERE id = $1 AND (expires IS NULL OR expires <= clock_timestamp())`, text(id)).
			Exec(func(tag pgconn.CommandTag) error {
				done = tag.RowsAffected() > 0
				return nil
			})
		switch err := s.batch(ctx, &b); {
		case err != nil || done:
			return err
		case !r.there:
			return durable.ErrNotFound
		}
		return &durable.HeldError{Run: id, Owner: r.owner, Expires: r.expires}
	})
}

// pruneQuery deletes some of the runs that ended before a time. It skips runs that another process is deleting.
const pruneQuery = `DELETE FROM runs WHERE num IN (
	SELECT num FROM runs WHERE ended < $1 ORDER BY ended LIMIT $2 FOR UPDATE SKIP LOCKED)`

const pruneAtOnce = 1000

// Prune deletes the runs that ended before a time: see durable.Store. It deletes them in transactions of a thousand runs,
// so that the statement timeout does not limit their number. With an error it returns the number of runs deleted so far.
func (s *Store) Prune(ctx context.Context, before time.Time) (n int, err error) {
	for {
		var gone int64
		err := s.call(ctx, "prune runs", func(ctx context.Context) error {
			tag, err := s.pool.Exec(ctx, pruneQuery, before, pruneAtOnce)
			gone = tag.RowsAffected()
			return err
		})
		n += int(gone)
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
