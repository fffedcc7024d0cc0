package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

const runQuery = `SELECT ` + runColumns + ` FROM runs r WHERE r.id = $1`

// Run returns the record of a run: see durable.Store.
func (s *Store) Run(ctx context.Context, id agent.RunID) (r durable.Run, err error) {
	err = s.call(ctx, fmt.Sprintf("read run %s", id), func(ctx context.Context) error {
		r, err = scanRun(s.pool.QueryRow(ctx, runQuery, text(id)))
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

// eventsQuery reads some events of one run.
const eventsQuery = `SELECT $1::text, e.seq, e.at, e.name, e.data FROM events e
	WHERE e.run = (SELECT num FROM runs WHERE id = $1) AND e.seq > $2 ORDER BY e.seq LIMIT $3`

// Events returns events of a run after a number: see durable.Store.
func (s *Store) Events(ctx context.Context, id agent.RunID, after int64, limit int) (all []durable.Event, err error) {
	err = s.call(ctx, fmt.Sprintf("read the events of run %s", id), func(ctx context.Context) error {
		all, err = ofRun(ctx, s, id, scanEvent, eventsQuery, after, max(0, limit))
		return err
	})
	return all, err
}

// Input returns the input of the job of a run: see durable.Store.
func (s *Store) Input(ctx context.Context, id agent.RunID) ([]byte, error) {
	return s.payload(ctx, fmt.Sprintf("read the input of run %s", id), id, `p.input`)
}

// SubmittedInput returns the first input of a run: see durable.Store.
func (s *Store) SubmittedInput(ctx context.Context, id agent.RunID) ([]byte, error) {
	return s.payload(ctx, fmt.Sprintf("read the submitted input of run %s", id), id, `CASE WHEN p.replaced THEN p.submitted ELSE p.input END`)
}

// Result returns what a run ended with: see durable.Store.
func (s *Store) Result(ctx context.Context, id agent.RunID) ([]byte, error) {
	return s.payload(ctx, fmt.Sprintf("read the result of run %s", id), id, `p.result`)
}

func (s *Store) payload(ctx context.Context, what string, id agent.RunID, expression string) (data []byte, err error) {
	err = s.call(ctx, what, func(ctx context.Context) error {
		query := `SELECT ` + expression + ` FROM runs r LEFT JOIN payloads p ON p.run = r.num WHERE r.id = $1`
		return notFound(s.pool.QueryRow(ctx, query, text(id)).Scan(&data))
	})
	return data, err
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
