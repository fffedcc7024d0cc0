package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// Cancel requests the cancellation of a run: see durable.Store. Repeating the call is safe.
func (s *Store) Cancel(ctx context.Context, id agent.RunID, reason string) error {
	return s.call(ctx, fmt.Sprintf("cancel run %s", id), func(ctx context.Context) error {
		var (
			b     pgx.Batch
			there bool
		)
		b.Queue(`UPDATE runs SET cancel_reason = $2, ready = least(ready, clock_timestamp())
			WHERE id = $1 AND ended IS NULL AND cancel_reason = ''`, text(id), text(lo.CoalesceOrEmpty(reason, "cancelled")))
		b.Queue(`SELECT true FROM runs WHERE id = $1`, text(id)).QueryRow(scanOptional(&there))
		if err := s.batch(ctx, &b); err != nil || there {
			return err
		}
		return durable.ErrNotFound
	})
}

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
		return &durable.HeldError{Run: id, Owner: r.Owner, Expires: r.Expires}
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
		if err != nil || gone < pruneAtOnce {
			return n, err
		}
	}
}
