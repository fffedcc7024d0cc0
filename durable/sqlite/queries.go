package sqlite

import (
	"cmp"
	"math"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// waitOrder is the order of OpenWaits. An index has the waits in the order of its first column.
const waitOrder = ` ORDER BY w.asked, w.run_id, w.id`

// selectOpen reads one index in the order of the list, so that a page costs a page and not all waits; the index by kind once
// for each kind. The first query finds the waits and the second one reads them, so that no data is sorted.
func selectOpen(f durable.WaitFilter, now int64) (query string, args []any) {
	const answerable = "w.answered IS NULL AND (r.status = 'waiting' OR r.status = 'ready' AND r.answer_by <= ?)"
	from, where := "waits w INDEXED BY waits_open CROSS JOIN runs r ON r.num = w.run", []string{answerable}
	args = []any{now}
	and := func(condition string, values ...any) { where, args = append(where, condition), append(args, values...) }
	inKinds := func() {
		if len(f.Kinds) > 0 {
			and("w.kind IN ("+parameterList(len(f.Kinds))+")", lo.ToAnySlice(f.Kinds)...)
		}
	}
	if f.Expired {
		and("w.deadline IS NOT NULL AND w.deadline <= ?", now)
	}
	if f.After != nil {
		at := f.After.Asked.UnixMicro()
		and("w.asked >= ? AND (w.asked, w.run_id, w.id) > (?, ?, ?)", at, at, string(f.After.Run), f.After.ID)
	} else {
		and("w.asked >= ?", math.MinInt64)
	}
	page := func() string {
		return "SELECT w.num AS listed FROM " + from + " WHERE " + strings.Join(where, " AND ") + waitOrder + " LIMIT ?"
	}
	switch {
	case f.Run != "":
		from = "runs r CROSS JOIN waits w INDEXED BY waits_by_run ON w.run = r.num"
		and("r.id = ?", string(f.Run))
		inKinds()
		query, args = page(), append(args, f.Limit)
	case f.Expired:
		from = strings.ReplaceAll(from, "waits_open", "waits_by_deadline")
		inKinds()
		query, args = page(), append(args, f.Limit)
	case len(f.Kinds) > 0:
		from = strings.ReplaceAll(from, "waits_open", "waits_by_kind")
		where = append(where, "w.kind = ?")
		part, common := page(), args
		args = nil
		for _, kind := range f.Kinds {
			args = append(append(args, common...), string(kind), f.Limit)
		}
		query = "SELECT listed FROM (" + part + ")" + strings.Repeat(" UNION ALL SELECT listed FROM ("+part+")", len(f.Kinds)-1)
	default:
		query, args = page(), append(args, f.Limit)
	}
	return readListed(query, append(args, f.Limit))
}

// checks is a request for waits to watch.
type checks struct {
	owner string
	kinds []durable.WaitKind
	hosts []string
	limit int
}

const watchable = " CROSS JOIN runs r ON r.num = w.run WHERE r.status = 'waiting' AND r.paused = 0 AND w.answered IS NULL"

// among returns the condition that the kind and the host are among those of the claim.
func (c checks) among() (condition string, args []any) {
	return " AND w.kind IN (" + parameterList(len(c.kinds)) + ") AND w.host IN (" + parameterList(len(c.hosts)) + ")",
		append(lo.ToAnySlice(c.kinds), lo.ToAnySlice(c.hosts)...)
}

// selectOwn returns the query for the waits that the owner has.
func (c checks) selectOwn() (query string, args []any) {
	among, args := c.among()
	return "SELECT " + store.WaitColumns + " FROM waits w INDEXED BY waits_watched" + watchable + " AND w.checker = ? AND w.checker <> ''" +
		among + waitOrder + " LIMIT ?", append(append([]any{c.owner}, args...), c.limit)
}

// selectFree returns the query for the waits that no owner has, or whose owner has not renewed its claim. Its parts read an
// index for each kind and host in the order of the result, so that the query costs what it returns.
func (c checks) selectFree(now int64) (query string, args []any) {
	among, values := c.among()
	parts := []string{"SELECT w.num AS listed FROM waits w INDEXED BY waits_lapsed" + watchable +
		" AND w.checker <> '' AND w.checker <> ? AND w.checked_until <= ?" + among + waitOrder + " LIMIT ?"}
	args = append(append([]any{c.owner, now}, values...), c.limit)
	for _, kind := range c.kinds {
		for _, host := range c.hosts {
			parts = append(parts, "SELECT w.num AS listed FROM waits w INDEXED BY waits_unwatched"+watchable+
				" AND w.checker = '' AND w.kind = ? AND w.host = ?"+waitOrder+" LIMIT ?")
			args = append(args, string(kind), host, c.limit)
		}
	}
	return readListed("SELECT listed FROM ("+strings.Join(parts, ") UNION ALL SELECT listed FROM (")+")", append(args, c.limit))
}

// readListed returns the query for the waits that another query lists.
func readListed(listed string, args []any) (query string, _ []any) {
	return "SELECT " + store.WaitColumns + " FROM (" + listed + ") CROSS JOIN waits w ON w.num = listed" + waitOrder + " LIMIT ?", args
}

// selectRecords reads the index that leaves the fewest records. Each has the records of a value in their order.
func selectRecords(f durable.AuditFilter) (query string, args []any) {
	from := "audit"
	where, args := []string{"num < ?"}, []any{cmp.Or(f.Before, math.MaxInt64)}
	for _, c := range []struct{ column, value, index string }{
		{"kind", string(f.Kind), "audit_by_kind"}, {"subject", f.Subject, "audit_by_subject"}, {"run", string(f.Run), "audit_by_run"},
	} {
		if c.value != "" {
			from = "audit INDEXED BY " + c.index
			where, args = append(where, c.column+" = ?"), append(args, c.value)
		}
	}
	return "SELECT " + store.RecordColumns + " FROM " + from + " WHERE " + strings.Join(where, " AND ") + " ORDER BY num DESC LIMIT ?",
		append(args, f.Limit)
}
