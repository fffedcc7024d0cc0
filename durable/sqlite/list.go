package sqlite

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// position is the place of a run in lists.
type position struct{ num, created int64 }

// positionOf returns the position of the last run of the page before.
func (v *view) positionOf(f durable.Filter) (position, error) {
	if f.Before == "" {
		return position{math.MaxInt64, math.MaxInt64}, nil
	}
	before, found, err := store.SelectOne(v, func(p *position) []any { return []any{&p.num, &p.created} },
		`SELECT num, created FROM runs WHERE id = ?`, string(f.Before))
	if err == nil && !found {
		err = fmt.Errorf("run %q: %w", f.Before, durable.ErrNotFound)
	}
	return before, err
}

// List implements store.Rows.
func (v *view) List(f durable.Filter) ([]store.Run, error) {
	before, err := v.positionOf(f)
	if err != nil {
		return nil, err
	}
	query, args := selectList(f, before)
	return store.SelectAll(lister{v}, runs.Targets, query, args...)
}

// Count implements store.Rows.
func (v *view) Count(f durable.Filter) (n int, err error) {
	before, err := v.positionOf(f)
	if err != nil {
		return 0, err
	}
	query, args := selectCount(f, before)
	n, _, err = store.SelectOne(lister{v}, func(n *int) []any { return []any{n} }, query, args...)
	return n, err
}

// listing is a query for the numbers of the runs of a page.
type listing struct {
	from, order string
	where       []string
	args        []any
	// perStatus says that the index that the query reads needs a status.
	perStatus bool
}

// and adds a condition.
func (l *listing) and(condition string, args ...any) {
	l.where = append(l.where, condition)
	l.args = append(l.args, args...)
}

// selectList returns the query of a list.
func selectList(f durable.Filter, before position) (query string, args []any) {
	query, order, args := selectNumbers(f, before)
	return "SELECT " + runs.Columns + " FROM (" + query + ") CROSS JOIN runs r ON r.num = listed ORDER BY " +
		strings.NewReplacer("labels.run", "r.num", "runs.", "r.").Replace(order), args
}

// selectCount returns the query for the length of a list.
func selectCount(f durable.Filter, before position) (query string, args []any) {
	query, _, args = selectNumbers(f, before)
	return "SELECT count(*) FROM (" + query + ")", args
}

// selectNumbers reads one index in the order of the list, so that a page costs a page and not all runs. An index
// that begins or ends with the status is read once for each status. Other conditions are checked in each row.
func selectNumbers(f durable.Filter, before position) (query, order string, args []any) {
	l := listBy(f, before)
	statuses := f.Status
	if l.perStatus {
		if len(statuses) == 0 {
			statuses = durable.Statuses
		}
		column := lo.Ternary(f.Label.Name != "" && strings.HasPrefix(l.from, "labels"), "labels.status", "runs.status")
		var parts []string
		for _, status := range statuses {
			// Without the +, SQLite would plan the query for each status, in case that a partial index of one status helps.
			part, partArgs := l.page(column+" = +?", string(status))
			parts = append(parts, "SELECT listed FROM ("+part+" LIMIT ?)")
			args = append(args, append(partArgs, f.Limit)...)
		}
		query = strings.Join(parts, " UNION ALL ") + " ORDER BY listed DESC"
	} else {
		if len(statuses) > 0 {
			l.and("runs.status IN ("+parameterList(len(statuses))+")", lo.ToAnySlice(statuses)...)
		}
		query, args = l.page("")
	}
	return query + " LIMIT ?", l.order, append(args, f.Limit)
}

// page returns the query with one more condition, unless that is empty.
func (l *listing) page(condition string, args ...any) (query string, _ []any) {
	where := slices.Clone(l.where)
	if condition != "" {
		where = append(where, condition)
	}
	return "SELECT runs.num AS listed FROM " + l.from + " WHERE " + strings.Join(where, " AND ") + " ORDER BY " + l.order, slices.Concat(l.args, args)
}

// selectChanged returns the runs that have changed since a time: those that have ended, those that no process holds, and those that one
// does, which are few. An ended run does not change.
const selectChanged = `SELECT num AS changed FROM runs INDEXED BY runs_ended WHERE ended >= ?
	UNION ALL SELECT num FROM runs INDEXED BY runs_idle WHERE idle >= ?
	UNION ALL SELECT num FROM runs INDEXED BY runs_held WHERE owner <> '' AND updated >= ?`

// listBy selects the index for a filter: the one that leaves the fewest runs, as far as the store can tell.
func listBy(f durable.Filter, before position) (l listing) {
	l.order = "runs.num DESC"
	timed := !f.Since.IsZero() || !f.Until.IsZero()
	by := func(index string) string { return "runs INDEXED BY " + index }
	switch {
	case f.Parent != "":
		l.from = by("runs_by_parent")
	case f.Session != "":
		l.from = by("runs_by_session")
	case f.RetryOf != "":
		l.from = by("runs_by_retry")
	case f.ParentSession != "":
		l.from = by("runs_by_parent_session")
	case f.Label.Name != "":
		l.from, l.order, l.perStatus = "labels INDEXED BY labels_by_value CROSS JOIN runs ON runs.num = labels.run", "labels.run DESC", true
	case f.Blocked:
		l.from = by("runs_by_block")
	case f.Decision != "" || f.Hook != "":
		l.from = by("runs_by_decision")
	case !f.ChangedSince.IsZero():
		l.from = "(" + selectChanged + ") CROSS JOIN runs ON runs.num = changed"
		since := f.ChangedSince.UnixMicro()
		l.args = []any{since, since, since}
	case f.HasHooks:
		l.from, l.perStatus = by("runs_by_hooks"), true
	case f.Phase != "":
		l.from, l.perStatus = by("runs_by_phase"), true
	case f.By != "":
		l.from, l.perStatus = by("runs_by_submitter"), true
	case f.Name != "":
		l.from, l.perStatus = by("runs_by_name"), true
	case f.Turn != "" || f.HasTurn || f.LastTurn:
		l.from, l.perStatus = by("runs_by_turn"), true
	case f.Kind != "":
		l.from, l.perStatus = by("runs_by_kind"), true
	case len(f.Status) > 0:
		l.from, l.perStatus = by("runs_by_status"), true
	case timed:
		l.from, l.order = by("runs_by_creation"), "runs.created DESC, runs.num DESC"
	default:
		l.from = "runs"
	}
	for _, c := range []struct{ condition, value string }{ // a partial index needs its condition
		{"parent = ? AND parent <> ''", string(f.Parent)},
		{"session = ? AND session <> ''", string(f.Session)},
		{"after = ?", string(f.After)},
		{"retry_of = ? AND retry_of <> ''", string(f.RetryOf)},
		{"parent_session = ? AND parent_session <> ''", string(f.ParentSession)},
		{"turn = ? AND turn <> ''", string(f.Turn)},
		{"request_key = ?", f.RequestKey},
		{"phase = ? AND phase <> ''", string(f.Phase)},
		{"runs.name = ?", f.Name},
		{"kind = ?", string(f.Kind)},
		{"submitted_by = ? AND submitted_by <> ''", f.By},
	} {
		if c.value != "" {
			l.and(c.condition, c.value)
		}
	}
	switch {
	case f.Label.Name == "":
	case strings.HasPrefix(l.from, "labels"):
		l.and("labels.name = ? AND labels.value = ?", f.Label.Name, f.Label.Value)
	default:
		l.and("EXISTS (SELECT 1 FROM labels WHERE run = runs.num AND name = ? AND value = ?)", f.Label.Name, f.Label.Value)
	}
	if f.Blocked {
		l.and("blocked = 1 AND blocked <> 0")
	}
	if f.Decision != "" || f.Hook != "" {
		l.and(`decisions <> '' AND EXISTS (SELECT 1 FROM json_each(nullif(decisions, '')) WHERE ? IN ('', value ->> 'decision')
			AND ? IN ('', value ->> 'hook'))`, string(f.Decision), f.Hook)
	}
	if f.Top {
		l.and("parent = ''")
	}
	if f.HasTurn || f.LastTurn {
		l.and("turn <> ''")
	}
	if f.LastTurn {
		l.and(`NOT EXISTS (SELECT 1 FROM runs later INDEXED BY runs_by_session
			WHERE later.session = runs.session AND later.session <> '' AND later.num > runs.num AND later.turn <> '')`)
	}
	if f.HasHooks {
		l.and("has_hooks = 1 AND has_hooks <> 0")
	}
	if !f.ChangedSince.IsZero() {
		l.and("updated >= ?", f.ChangedSince.UnixMicro())
	}
	if !f.Since.IsZero() {
		l.and("runs.created >= ?", f.Since.UnixMicro())
	}
	if !f.Until.IsZero() {
		l.and("runs.created < ?", f.Until.UnixMicro())
	}
	if strings.HasPrefix(l.order, "runs.created") {
		l.and("(runs.created, runs.num) < (?, ?)", before.created, before.num)
	} else {
		l.and(strings.TrimSuffix(l.order, " DESC")+" < ?", before.num)
	}
	return l
}
