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

// List implements store.Rows.
func (v *view) List(f durable.Filter) ([]store.Run, error) {
	before := position{math.MaxInt64, math.MaxInt64}
	if f.Before != "" {
		var found bool
		var err error
		before, found, err = store.SelectOne(v, func(p *position) []any { return []any{&p.num, &p.created} },
			`SELECT num, created FROM runs WHERE id = ?`, string(f.Before))
		if err == nil && !found {
			err = fmt.Errorf("run %q: %w", f.Before, durable.ErrNotFound)
		}
		if err != nil {
			return nil, err
		}
	}
	query, args := selectList(f, before)
	return store.SelectAll(once{v}, runs.Targets, query, args...)
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

// selectList reads one index in the order of the list, so that a page costs a page and not all runs. An index
// whose second column is the status is read once for each status. Other conditions are checked in each row.
func selectList(f durable.Filter, before position) (query string, args []any) {
	l := listBy(f, before)
	statuses := f.Status
	if l.perStatus {
		if len(statuses) == 0 {
			statuses = durable.Statuses
		}
		column := lo.Ternary(f.Label.Name != "" && strings.HasPrefix(l.from, "labels"), "labels.status", "runs.status")
		var parts []string
		for _, status := range statuses {
			part, partArgs := l.page(column+" = ?", string(status))
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
	return "SELECT " + runs.Columns + " FROM (" + query + " LIMIT ?) CROSS JOIN runs r ON r.num = listed ORDER BY " +
		strings.NewReplacer("labels.run", "r.num", "runs.", "r.").Replace(l.order), append(args, f.Limit)
}

// page returns the query with one more condition, unless that is empty.
func (l *listing) page(condition string, args ...any) (query string, _ []any) {
	where := slices.Clone(l.where)
	if condition != "" {
		where = append(where, condition)
	}
	return "SELECT runs.num AS listed FROM " + l.from + " WHERE " + strings.Join(where, " AND ") + " ORDER BY " + l.order, slices.Concat(l.args, args)
}

// listBy selects the index for a filter: the one that leaves the fewest runs, as far as the store can tell.
func listBy(f durable.Filter, before position) (l listing) {
	l.order = "runs.num DESC"
	recent := !f.ChangedSince.IsZero() && len(f.Status) > 0 && lo.EveryBy(f.Status, durable.Status.Ended)
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
	case recent:
		l.from = by("runs_ended")
	case f.Turn != "":
		l.from = by("runs_by_turn")
	case f.HasHooks:
		l.from, l.perStatus = by("runs_by_hooks"), true
	case f.Phase != "":
		l.from, l.perStatus = by("runs_by_phase"), true
	case f.By != "":
		l.from, l.perStatus = by("runs_by_submitter"), true
	case f.Name != "":
		l.from, l.perStatus = by("runs_by_name"), true
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
	if f.HasHooks {
		l.and("has_hooks = 1 AND has_hooks <> 0")
	}
	switch {
	case f.ChangedSince.IsZero():
	case recent: // an ended run does not change
		l.and("ended >= ?", f.ChangedSince.UnixMicro())
	default:
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
