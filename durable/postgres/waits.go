package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// waitColumns are the columns that scanWait reads, of w.
const waitColumns = `w.run_id, w.id, w.kind, w.subject, w.tool, w.asked, w.deadline, w.child, w.host, w.token, w.data, w.partial,
	w.answered, w.ends, w.who, w.answer`

const (
	waitsQuery = `SELECT ` + waitColumns + ` FROM waits w JOIN runs r ON r.num = w.run WHERE r.id = $1 ORDER BY w.place`
	tokenQuery = `SELECT ` + waitColumns + ` FROM waits w WHERE w.token = $1`
	// spareQuery finds the waits of a token of the table tokens.
	spareQuery = `SELECT ` + waitColumns + ` FROM tokens s JOIN waits w ON w.run = s.run AND w.id = s.wait
		WHERE s.token = $1 LIMIT 1`
)

// Waits returns what a run waits for: see durable.Store.
func (s *Store) Waits(ctx context.Context, id agent.RunID) (all []durable.Wait, err error) {
	err = s.call(ctx, fmt.Sprintf("read the waits of run %s", id), func(ctx context.Context) error {
		all, err = ofRun(ctx, s, id, collectWait, waitsQuery)
		return err
	})
	return all, err
}

// WaitByToken returns the wait for a token: see durable.Store.
func (s *Store) WaitByToken(ctx context.Context, tokenHash [32]byte) (w durable.Wait, err error) {
	err = s.call(ctx, "find a wait by its token", func(ctx context.Context) error {
		hash := tokenValue(tokenHash)
		if hash == nil {
			return durable.ErrNotFound
		}
		var (
			b                         pgx.Batch
			found, spareFound, issued bool
			spare, spent              durable.Wait
		)
		scan := func(to *durable.Wait, found *bool) func(pgx.Row) error {
			return func(row pgx.Row) (err error) {
				*to, err = scanWait(row)
				*found = err == nil
				return ignoreNoRows(err)
			}
		}
		b.Queue(tokenQuery, hash).QueryRow(scan(&w, &found))
		b.Queue(spareQuery, hash).QueryRow(scan(&spare, &spareFound))
		b.Queue(`SELECT true, r.id, s.wait, s.subject FROM tokens s JOIN runs r ON r.num = s.run WHERE s.token = $1`, hash).
			QueryRow(scanOptional(&issued, (*text)(&spent.Run), (*text)(&spent.ID), (*text)(&spent.Subject)))
		switch err := s.batch(ctx, &b); {
		case err != nil || found:
			return err
		case spareFound:
			w = spare
			w.TokenHash = tokenHash
			return nil
		case issued:
			w = spent
			return durable.ErrTokenSpent
		}
		return durable.ErrNotFound
	})
	if err != nil && !errors.Is(err, durable.ErrTokenSpent) {
		return durable.Wait{}, err
	}
	return w, err
}

// SetToken sets the token of an open wait: see durable.Store. If the reply of the database was lost, a repeated call returns
// ErrExists once a token is set, and WaitByToken tells whether it is this one.
func (s *Store) SetToken(ctx context.Context, id agent.RunID, wait string, tokenHash [32]byte) error {
	return s.call(ctx, fmt.Sprintf("set the token of %s of run %s", wait, id), func(ctx context.Context) error {
		var (
			b           pgx.Batch
			open, isSet bool
		)
		batchLock(&b, id)
		b.Queue(`WITH old AS (SELECT w.num, w.token FROM waits w JOIN runs r ON r.num = w.run
				WHERE r.id = $1 AND w.id = $2 AND w.answered IS NULL LIMIT 1),
			new AS (UPDATE waits w SET token = $3 FROM old WHERE w.num = old.num AND old.token IS NULL RETURNING true)
			SELECT true, EXISTS (SELECT FROM new) FROM old`, text(id), text(wait), tokenValue(tokenHash)).
			QueryRow(scanOptional(&open, &isSet))
		switch err := s.batch(ctx, &b); {
		case err != nil || isSet:
			return err
		case open:
			return durable.ErrExists
		}
		return durable.ErrNotFound
	})
}

// AddToken gives an open wait another token: see durable.Store. Repeating the call is safe.
func (s *Store) AddToken(ctx context.Context, id agent.RunID, wait string, tokenHash [32]byte) error {
	return s.call(ctx, fmt.Sprintf("add a token to %s of run %s", wait, id), func(ctx context.Context) error {
		var (
			b    pgx.Batch
			open bool
		)
		batchLock(&b, id)
		b.Queue(`WITH old AS (SELECT w.run, w.id, w.subject FROM waits w JOIN runs r ON r.num = w.run
				WHERE r.id = $1 AND w.id = $2 AND w.answered IS NULL LIMIT 1),
			new AS (INSERT INTO tokens (token, run, wait, subject) SELECT $3, run, id, subject FROM old ON CONFLICT DO NOTHING)
			SELECT true FROM old`, text(id), text(wait), tokenHash[:]).QueryRow(scanOptional(&open))
		if err := s.batch(ctx, &b); err != nil || open {
			return err
		}
		return durable.ErrNotFound
	})
}

// OpenWaits returns open waits: see durable.Store. Waits that began in the same microsecond are in the order of their runs.
func (s *Store) OpenWaits(ctx context.Context, f durable.WaitFilter) (all []durable.Wait, err error) {
	err = s.call(ctx, "list open waits", func(ctx context.Context) error {
		query, args := openQuery(f)
		rows, err := s.pool.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, collectWait)
		return err
	})
	return all, err
}

// isOpen is the condition that the wait w has no decision and its run waits, or waited until a deadline passed. It looks up the
// run: the planner might join all runs to an EXISTS.
const isOpen = `w.answered IS NULL
	AND (SELECT r.status = 'waiting' OR r.status = 'ready' AND r.answer_by <= now() FROM runs r WHERE r.num = w.run)`

// openQuery returns the query of a list of open waits. The filter decides which index it reads: that of a run, that of the
// deadlines, as few have passed, or those that have the order of the list. It merges one list per kind. Row comparisons in place of
// an equals sign rule out other indexes: see listQuery.
func openQuery(f durable.WaitFilter) (query string, args []any) {
	l := &listing{where: []string{isOpen}}
	l.limit = l.arg(lo.Ternary(f.Limit > 0, f.Limit, durable.DefaultLimit))
	after := "'-infinity', '', ''"
	if f.After != nil {
		after = fmt.Sprintf("%s::timestamptz, %s, %s",
			l.arg(f.After.Asked.Truncate(time.Microsecond)), l.arg(text(f.After.Run)), l.arg(text(f.After.ID)))
	}
	kinds := ""
	if len(f.Kinds) > 0 {
		kinds = l.arg(texts(lo.Uniq(f.Kinds))) + "::text[]"
	}
	var few []string // conditions that select few waits
	if f.Expired {
		few = append(few, "w.deadline <= now() AND w.deadline IS NOT NULL")
	}
	if f.Run != "" {
		few = append(few, "w.run = (SELECT num FROM runs WHERE id = "+l.arg(text(f.Run))+")")
	}
	all := "SELECT " + waitColumns + " FROM "
	end := " ORDER BY w.asked, w.run_id, w.id LIMIT " + l.limit
	switch {
	case len(few) > 0:
		l.and("(w.asked, w.run_id, w.id) > (" + after + ")")
		if kinds != "" {
			l.and("w.kind = ANY (" + kinds + ")")
		}
		//nolint:unqueryvet // the outer query selects columns
		return "WITH w AS MATERIALIZED (SELECT w.* FROM waits w WHERE w.answered IS NULL AND " + strings.Join(few, " AND ") + ") " +
			all + "w WHERE " + strings.Join(l.where, " AND ") + end, l.args
	case kinds != "":
		l.and("(w.kind, w.asked, w.run_id, w.id) > (wanted, " + after + ") AND (w.kind, w.asked) <= (wanted, 'infinity')")
		//nolint:unqueryvet // the outer query selects columns
		return all + "unnest(" + kinds + ") wanted CROSS JOIN LATERAL (SELECT w.* FROM waits w WHERE " + strings.Join(l.where, " AND ") +
			" ORDER BY w.kind, w.asked, w.run_id, w.id LIMIT " + l.limit + ") w" + end, l.args
	}
	l.and("(w.asked, w.run_id, w.id) > (" + after + ")")
	return all + "waits w WHERE " + strings.Join(l.where, " AND ") + end, l.args
}

// tokenValue returns the stored form of a hash: null for the zero hash.
func tokenValue(hash [32]byte) []byte {
	if hash == [32]byte{} {
		return nil
	}
	return hash[:]
}

func collectWait(row pgx.CollectableRow) (durable.Wait, error) { return scanWait(row) }

func scanWait(row pgx.Row, more ...any) (w durable.Wait, err error) {
	var (
		token []byte
		a     durable.Answer
	)
	err = row.Scan(append([]any{
		(*text)(&w.Run), (*text)(&w.ID), (*text)(&w.Kind), (*text)(&w.Subject), (*text)(&w.Tool), when{&w.Asked}, when{&w.Deadline},
		(*text)(&w.Child), (*text)(&w.Host), &token, &w.Data, partial{&w.Partial}, when{&a.At}, &a.Ends, (*text)(&a.By), &a.Data,
	}, more...)...)
	copy(w.TokenHash[:], token)
	for i := range w.Partial {
		w.Partial[i].Wait, w.Partial[i].Subject = w.ID, w.Subject
	}
	if !a.At.IsZero() {
		a.Wait, a.Subject = w.ID, w.Subject
		w.Answer = &a
	}
	return w, err
}
