package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// Run returns the record of a run: see durable.Store.
func (s *Store) Run(ctx context.Context, id agent.RunID) (r durable.Run, err error) {
	err = s.call(ctx, fmt.Sprintf("read run %s", id), func(ctx context.Context) error {
		r, err = scanRun(s.pool.QueryRow(ctx, `SELECT `+runColumns+` FROM runs r WHERE r.id = $1`, text(id)))
		return notFound(err)
	})
	return r, err
}

// entriesQuery reads the journal of one run from a given entry on.
const entriesQuery = `SELECT e.seq, e.kind, e.key, e.at, e.data FROM entries e
	WHERE e.run = (SELECT num FROM runs WHERE id = $1) AND e.seq > $2 ORDER BY e.seq`

// Entries returns the journal entries of a run after a number: see durable.Store.
func (s *Store) Entries(ctx context.Context, id agent.RunID, after int64) (all []durable.Entry, err error) {
	err = s.call(ctx, fmt.Sprintf("read the journal of run %s", id), func(ctx context.Context) error {
		all, err = ofRun(ctx, s, id, scanEntry, entriesQuery, after)
		return err
	})
	return all, err
}

// dueQuery reads the first due runs of one index. It locks no rows, because a search must not write to the table. It does
// not skip rows that another session has locked: if two processes claim the same run, one gets an error that the run is
// held.
const dueQuery = `SELECT ` + runColumns + ` FROM runs r WHERE r.due <= now() ORDER BY r.due LIMIT $1`

// Due returns the runs that are ready to be claimed: see durable.Store.
func (s *Store) Due(ctx context.Context, limit int) (all []durable.Run, err error) {
	err = s.call(ctx, "look for due runs", func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, dueQuery, max(0, limit))
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, collectRun)
		return err
	})
	return all, err
}

// ofRun reads rows that belong to a run, which must exist.
func ofRun[T any](ctx context.Context, s *Store, id agent.RunID, scan pgx.RowToFunc[T], query string, args ...any) (all []T, err error) {
	var (
		b     pgx.Batch
		there bool
	)
	b.Queue(query, append([]any{text(id)}, args...)...).Query(func(rows pgx.Rows) error {
		all, err = pgx.CollectRows(rows, scan)
		return err
	})
	b.Queue(`SELECT true FROM runs WHERE id = $1`, text(id)).QueryRow(scanOptional(&there))
	switch err := s.batch(ctx, &b); {
	case err != nil:
		return nil, err
	case !there:
		return nil, durable.ErrNotFound
	}
	return all, nil
}

func notFound(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return durable.ErrNotFound
	}
	return err
}
