package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// Run is what is known of a run: see durable.Store.
func (s *Store) Run(ctx context.Context, id agent.RunID) (r durable.Run, err error) {
	err = s.call(ctx, fmt.Sprintf("look at run %s", id), func(ctx context.Context) error {
		r, err = scanRun(s.pool.QueryRow(ctx, `SELECT `+runColumns+` FROM runs r WHERE r.id = $1`, text(id)))
		return notFound(err)
	})
	return r, err
}

// entriesQuery reads the journal of one run, or its end.
const entriesQuery = `SELECT e.seq, e.kind, e.key, e.at, e.data FROM entries e
	WHERE e.run = (SELECT num FROM runs WHERE id = $1) AND e.seq > $2 ORDER BY e.seq`

// Entries is the journal of a run behind a number: see durable.Store.
func (s *Store) Entries(ctx context.Context, id agent.RunID, after int64) (all []durable.Entry, err error) {
	err = s.call(ctx, fmt.Sprintf("read the journal of run %s", id), func(ctx context.Context) error {
		all, err = ofRun(ctx, s, id, scanEntry, entriesQuery, after)
		return err
	})
	return all, err
}

// List is the runs that a filter lets through: see durable.Store.
func (s *Store) List(ctx context.Context, f durable.Filter) (all []durable.Run, err error) {
	err = s.call(ctx, "list runs", func(ctx context.Context) error {
		var before *int64
		if f.Before != "" {
			err := s.pool.QueryRow(ctx, `SELECT num FROM runs WHERE id = $1`, text(f.Before)).Scan(&before)
			if err != nil {
				return fmt.Errorf("page behind run %s: %w", f.Before, notFound(err))
			}
		}
		query, args := listing(f, before)
		rows, err := s.pool.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, collectRun)
		return err
	})
	return all, err
}

// listing is the query of a list. It says only what the filter asks for, so that the
// database can take the index that is in the order of the list. Of each status that is
// asked for it reads one such list, and merges them: bounds in place of an equals sign
// leave no other index in the order that is asked for, where the database might hope
// to find the few that run among the newest of all.
func listing(f durable.Filter, before *int64) (query string, args []any) {
	arg := func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	var where []string
	equal := func(column, value string) {
		if value != "" {
			where = append(where, "r."+column+" = "+arg(text(value)))
		}
	}
	equal("agent", f.Agent)
	equal("session", string(f.Session))
	equal("parent", string(f.Parent))
	if f.Parent != "" {
		where = append(where, "r.parent <> ''") // which its index is limited to
	}
	limit := " LIMIT " + arg(lo.Ternary(f.Limit > 0, f.Limit, durable.DefaultLimit))
	behind := arg(lo.FromPtrOr(before, math.MaxInt64))
	rows := "SELECT " + runColumns + " FROM "
	if len(f.Status) == 0 {
		return rows + "runs r WHERE " + strings.Join(append(where, "r.num < "+behind), " AND ") + " ORDER BY r.num DESC" + limit, args
	}
	statuses := arg(lo.Map(lo.Uniq(f.Status), func(s agent.Status, _ int) text { return text(s) }))
	where = append(where, "r.status >= wanted", "(r.status, r.num) < (wanted, "+behind+"::bigint)")
	return rows + "unnest(" + statuses + "::text[]) wanted CROSS JOIN LATERAL (SELECT * FROM runs r WHERE " +
		strings.Join(where, " AND ") + " ORDER BY r.status DESC, r.num DESC" + limit + ") r ORDER BY r.num DESC" + limit, args
}

// dueQuery reads the first runs of one index. It locks none of them, and skips none
// that somebody has locked: looking must not write to the table, and of two processes
// that claim the same run one is told that it is held.
const dueQuery = `SELECT ` + runColumns + ` FROM runs r WHERE r.due <= now() ORDER BY r.due LIMIT $1`

// Due is the runs that somebody should take up: see durable.Store.
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

// Cancel asks that a run be cancelled: see durable.Store. It may be called again.
func (s *Store) Cancel(ctx context.Context, id agent.RunID, reason string) error {
	return s.call(ctx, fmt.Sprintf("cancel run %s", id), func(ctx context.Context) error {
		var (
			b     pgx.Batch
			there bool
		)
		b.Queue(`UPDATE runs SET cancel_reason = $2, ready = least(ready, clock_timestamp())
			WHERE id = $1 AND ended IS NULL AND cancel_reason = ''`, text(id), text(lo.CoalesceOrEmpty(reason, "cancelled")))
		b.Queue(`SELECT true FROM runs WHERE id = $1`, text(id)).QueryRow(optional(&there))
		if err := s.batch(ctx, &b); err != nil || there {
			return err
		}
		return durable.ErrNotFound
	})
}

// Delete removes a run: see durable.Store. When an answer is lost, ErrNotFound says the
// next time that it is gone.
func (s *Store) Delete(ctx context.Context, id agent.RunID) error {
	return s.call(ctx, fmt.Sprintf("delete run %s", id), func(ctx context.Context) error {
		var (
			b    pgx.Batch
			done bool
		)
		r := locked(&b, id)
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

// pruneQuery deletes some of the runs that ended before a time. It leaves those alone
// that another process is about to delete.
const pruneQuery = `DELETE FROM runs WHERE num IN (
	SELECT num FROM runs WHERE ended < $1 ORDER BY ended LIMIT $2 FOR UPDATE SKIP LOCKED)`

const pruneAtOnce = 1000

// Prune deletes the runs that ended before a time: see durable.Store. It deletes a
// thousand at a time, each thousand whole or not at all, so that no number of them
// takes longer than one statement may. With an error comes how many are gone.
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

// ofRun reads what belongs to a run that must be there.
func ofRun[T any](ctx context.Context, s *Store, id agent.RunID, scan pgx.RowToFunc[T], query string, args ...any) (all []T, err error) {
	var (
		b     pgx.Batch
		there bool
	)
	b.Queue(query, append([]any{text(id)}, args...)...).Query(func(rows pgx.Rows) error {
		all, err = pgx.CollectRows(rows, scan)
		return err
	})
	b.Queue(`SELECT true FROM runs WHERE id = $1`, text(id)).QueryRow(optional(&there))
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
