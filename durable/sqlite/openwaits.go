package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/durable"
)

// waitOrder is the order of OpenWaits. An index has the waits in the order of its first column.
const waitOrder = ` ORDER BY w.asked, r.id, w.id`

// OpenWaits implements durable.Store.
func (s *Store) OpenWaits(ctx context.Context, f durable.WaitFilter) (all []durable.Wait, err error) {
	err = s.read(ctx, "listing waits", func() error {
		query, args := selectOpen(f, s.clock())
		rows, err := s.readers.QueryContext(ctx, query, args...)
		all, err = scanWaits(rows, err)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return ignoreNoRows(all, err)
}

// selectOpen reads one index in the order of the list, so that a page costs a page and not all waits; the index by kind once
// for each kind. The first query finds the waits and the second one reads them, so that no data is sorted.
func selectOpen(f durable.WaitFilter, now int64) (query string, args []any) {
	const answerable = "w.answered IS NULL AND (r.status = 'waiting' OR r.status = 'ready' AND r.answer_by <= ?)"
	from, where, args := "waits w INDEXED BY waits_open CROSS JOIN runs r ON r.n = w.run", []string{answerable}, []any{now}
	and := func(condition string, values ...any) { where, args = append(where, condition), append(args, values...) }
	kinds := lo.Uniq(f.Kinds)
	inKinds := func() {
		if len(kinds) > 0 {
			and("w.kind IN (?"+strings.Repeat(", ?", len(kinds)-1)+")", lo.ToAnySlice(kinds)...)
		}
	}
	if f.Expired {
		and("w.deadline IS NOT NULL AND w.deadline <= ?", now)
	}
	if f.After != nil {
		at := f.After.Asked.UnixMicro()
		and("w.asked >= ? AND (w.asked, r.id, w.id) > (?, ?, ?)", at, at, string(f.After.Run), f.After.ID)
	} else {
		and("w.asked >= ?", math.MinInt64)
	}
	limit := limitOr(f.Limit)
	page := func() string {
		return "SELECT w.rowid AS listed FROM " + from + " WHERE " + strings.Join(where, " AND ") + waitOrder + " LIMIT ?"
	}
	switch {
	case f.Run != "":
		from = "runs r CROSS JOIN waits w INDEXED BY sqlite_autoindex_waits_1 ON w.run = r.n"
		and("r.id = ?", string(f.Run))
		inKinds()
		query, args = page(), append(args, limit)
	case f.Expired:
		from = strings.ReplaceAll(from, "waits_open", "waits_by_deadline")
		inKinds()
		query, args = page(), append(args, limit)
	case len(kinds) > 0:
		from = strings.ReplaceAll(from, "waits_open", "waits_by_kind")
		where = append(where, "w.kind = ?")
		part, common := page(), args
		args = nil
		for _, kind := range kinds {
			args = append(append(args, common...), string(kind), limit)
		}
		query = "SELECT listed FROM (" + part + ")" + strings.Repeat(" UNION ALL SELECT listed FROM ("+part+")", len(kinds)-1)
	default:
		query, args = page(), append(args, limit)
	}
	return "SELECT " + waitColumns + " FROM (" + query + ") CROSS JOIN waits w ON w.rowid = listed CROSS JOIN runs r ON r.n = w.run" +
		waitOrder + " LIMIT ?", append(args, limit)
}
