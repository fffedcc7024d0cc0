package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

const runColumns = `id, session, agent, parent, root, status, reason, steps, entries, created, updated, deadline, cancel_reason, owner, epoch, expires`

const (
	selectRun = `SELECT ` + runColumns + ` FROM runs WHERE id = ?`
	selectN   = `SELECT n FROM runs WHERE id = ?`

	// free is the condition that no process holds a run: ?1 is now and ?2 the latest start
	// that a valid lease can have.
	free = `(owner = '' OR expires <= ?1 OR leased > ?2)`

	// selectDue reads each cause by its own index, so that its cost depends on the due runs
	// and not on all runs: by default, SQLite would use the index by status. ?3 is the
	// limit.
	selectDue = `SELECT ` + runColumns + ` FROM runs JOIN (
		SELECT n AS due, min(since) AS since FROM (
			SELECT n, since FROM (SELECT n, ready AS since FROM runs INDEXED BY runs_ready
				WHERE ready IS NOT NULL AND ` + free + ` ORDER BY ready LIMIT ?3)
			UNION ALL
			SELECT n, deadline FROM (SELECT n, deadline FROM runs INDEXED BY runs_by_deadline
				WHERE status = 'parked' AND deadline <= ?1 AND ` + free + ` ORDER BY deadline LIMIT ?3)
			UNION ALL
			SELECT n, expires FROM (SELECT n, expires FROM runs INDEXED BY runs_by_expiry
				WHERE status = 'running' AND owner <> '' AND expires <= ?1 ORDER BY expires LIMIT ?3)
			UNION ALL
			SELECT n, leased FROM (SELECT n, leased FROM runs INDEXED BY runs_by_lease
				WHERE status = 'running' AND owner <> '' AND leased > ?2 ORDER BY leased LIMIT ?3)
		) GROUP BY n ORDER BY since LIMIT ?3
	) ON n = due ORDER BY since`
)

// Run implements durable.Store.
func (s *Store) Run(ctx context.Context, id agent.RunID) (r durable.Run, err error) {
	err = s.read(ctx, "reading a run", func() error {
		r, err = scanRun(s.statements[selectRun].QueryRowContext(ctx, id).Scan)
		if errors.Is(err, sql.ErrNoRows) {
			return notFound(id)
		}
		return err
	})
	return ignoreNoRows(r, err)
}

// List implements durable.Store.
func (s *Store) List(ctx context.Context, f durable.Filter) (runs []durable.Run, err error) {
	err = s.read(ctx, "listing runs", func() error {
		before := int64(math.MaxInt64)
		if f.Before != "" {
			err := s.statements[selectN].QueryRowContext(ctx, f.Before).Scan(&before)
			if errors.Is(err, sql.ErrNoRows) {
				return notFound(f.Before)
			}
			if err != nil {
				return err
			}
		}
		query, args := selectList(f, before)
		rows, err := s.readers.QueryContext(ctx, query, args...)
		runs, err = scanRuns(rows, err)
		return err
	})
	return ignoreNoRows(runs, err)
}

// selectList reads each status separately, in the order of an index, so that a page costs a page and not all runs of
// several statuses. Where several conditions could use an index, a plus sign disables the index for the less selective
// ones.
func selectList(f durable.Filter, before int64) (query string, args []any) {
	limit := f.Limit
	if limit <= 0 {
		limit = durable.DefaultLimit
	}
	where := []string{"n < ?"}
	plus := ""
	is := func(column, value string) {
		if value != "" {
			where = append(where, plus+column+" = ?")
			args = append(args, value)
		}
	}
	args = append(args, before)
	is("parent", string(f.Parent))
	plus = lo.Ternary(f.Parent != "", "+", "")
	is("session", string(f.Session))
	plus = lo.Ternary(f.Parent != "" || f.Session != "", "+", "")
	is("agent", f.Agent)

	var parts []string
	var all []any
	for _, status := range lo.Uniq(f.Status) {
		parts = append(parts, strings.Join(append(slices.Clip(where), plus+"status = ?"), " AND "))
		all = append(all, append(slices.Clip(args), string(status), limit)...)
	}
	if len(parts) == 0 {
		parts, all = []string{strings.Join(where, " AND ")}, slices.Concat(args, []any{limit})
	}
	for i, part := range parts {
		parts[i] = "SELECT n, " + runColumns + " FROM (SELECT n, " + runColumns + " FROM runs WHERE " + part + " ORDER BY n DESC LIMIT ?)"
	}
	return "SELECT " + runColumns + " FROM (" + strings.Join(parts, " UNION ALL ") + ") ORDER BY n DESC LIMIT ?", append(all, limit)
}

// Due implements durable.Store.
func (s *Store) Due(ctx context.Context, limit int) (runs []durable.Run, err error) {
	err = s.read(ctx, "looking for runs to resume", func() error {
		now := s.clock()
		rows, err := s.statements[selectDue].QueryContext(ctx, now, now+skew, max(limit, 0))
		runs, err = scanRuns(rows, err)
		return err
	})
	return ignoreNoRows(runs, err)
}

func scanRuns(rows *sql.Rows, err error) (runs []durable.Run, _ error) {
	err = scanRows(rows, err, func(rows *sql.Rows) error {
		r, err := scanRun(rows.Scan)
		runs = append(runs, r)
		return err
	})
	return runs, err
}

// scanRun reads a row of runColumns.
func scanRun(scan func(...any) error) (durable.Run, error) {
	var r durable.Run
	var created, updated, deadline, expires micros
	err := scan(&r.ID, &r.Session, &r.Agent, &r.Parent, &r.Root, &r.Status, &r.Reason, &r.Steps, &r.Entries,
		&created, &updated, &deadline, &r.CancelReason, &r.Owner, &r.Epoch, &expires)
	r.Created, r.Updated, r.Deadline, r.Expires = created.Time, updated.Time, deadline.Time, expires.Time
	return r, err
}
