package postgres

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// List returns the runs that match a filter: see durable.Store.
func (s *Store) List(ctx context.Context, f durable.Filter) (all []durable.Run, err error) {
	err = s.call(ctx, "list runs", func(ctx context.Context) error {
		var before *int64
		if f.Before != "" {
			err := s.pool.QueryRow(ctx, `SELECT num FROM runs WHERE id = $1`, text(f.Before)).Scan(&before)
			if err != nil {
				return fmt.Errorf("page behind run %s: %w", f.Before, notFound(err))
			}
		}
		query, args := listQuery(f, before)
		rows, err := s.pool.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, collectRun)
		return err
	})
	return all, err
}

// listQuery returns the query of a list. It contains only the conditions of the filter, so that the database can use the
// index in the order of the list. For several statuses it merges one such list per status. Row comparisons in place of an
// equals sign rule out the other indexes: the planner might otherwise scan the newest runs in the hope of finding the few
// that match.
func listQuery(f durable.Filter, before *int64) (query string, args []any) {
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
		where = append(where, "r.parent <> ''") // the index covers only these rows
	}
	limit := " LIMIT " + arg(lo.Ternary(f.Limit > 0, f.Limit, durable.DefaultLimit))
	behind := arg(lo.FromPtrOr(before, math.MaxInt64))
	rows := "SELECT " + runColumns + " FROM "
	if len(f.Status) == 0 {
		return rows + "runs r WHERE " + strings.Join(append(where, "r.num < "+behind), " AND ") + " ORDER BY r.num DESC" + limit, args
	}
	statuses := arg(lo.Map(lo.Uniq(f.Status), func(s agent.Status, _ int) text { return text(s) }))
	where = append(where, "r.status >= wanted", "(r.status, r.num) < (wanted, "+behind+"::bigint)")
	return rows + "unnest(" + statuses + "::text[]) wanted CROSS JOIN LATERAL (SELECT r.num, " + runColumns + " FROM runs r WHERE " +
		strings.Join(where, " AND ") + " ORDER BY r.status DESC, r.num DESC" + limit + ") r ORDER BY r.num DESC" + limit, args
}
