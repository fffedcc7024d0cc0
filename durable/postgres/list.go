package postgres

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/durable"
)

// listing is a query of a list while it is composed. It contains only the conditions of the filter, so that the database can
// use an index in the order of the list.
type listing struct {
	args   []any
	where  []string
	behind string // the argument with the number that the runs must be below
	limit  string
}

func (l *listing) arg(v any) string {
	l.args = append(l.args, v)
	return fmt.Sprintf("$%d", len(l.args))
}

func (l *listing) and(condition string) { l.where = append(l.where, condition) }

func (l *listing) equal(column, value string) {
	if value != "" {
		l.and("r." + column + " = " + l.arg(value))
	}
	if value != "" && slices.Contains(partlyIndexed, column) {
		l.and("r." + column + " <> ''")
	}
}

// partlyIndexed are the columns whose indexes cover only rows with a value.
var partlyIndexed = []string{"parent", "parent_session", "retry_of", "phase", "turn", "submitted_by"}

// listQuery returns the query of a list. The filter decides which index it reads:
//
//   - session, parent, parent session, retried run: the index of that column, because there are few runs;
//   - label, turns, hooks, phase, submitter, name, kind, status: an index that ends with the status and the number. The query merges
//     one list per status. Row comparisons of these two in place of equals signs rule out the index of the numbers: the planner might
//     otherwise scan the newest runs in the hope of finding the few that match;
//   - blocked, decision, hook: the index of blocked runs, or the index of runs with decisions;
//   - changed since: the indexes of ends, idle runs and owners;
//   - otherwise the numbers of all runs, between those of the first and the last run of the time.
func listQuery(f durable.Filter, before *int64) (query string, args []any) {
	l := &listing{}
	l.limit = l.arg(f.Limit)
	l.behind = l.arg(lo.FromPtrOr(before, math.MaxInt64)) + "::bigint"
	l.equal("session", string(f.Session))
	l.equal("parent", string(f.Parent))
	l.equal("after", string(f.After))
	l.equal("parent_session", string(f.ParentSession))
	l.equal("retry_of", string(f.RetryOf))
	l.equal("turn", string(f.Turn))
	l.equal("request_key", f.RequestKey)
	l.equal("phase", string(f.Phase))
	l.equal("name", f.Name)
	l.equal("kind", string(f.Kind))
	if f.Blocked {
		l.and("r.blocked")
	}
	if f.HasHooks {
		l.and("r.has_hooks")
	}
	if f.HasTurn || f.LastTurn {
		l.and("r.turn <> ''")
	}
	if f.LastTurn { // a subquery in place of NOT EXISTS, which the planner might make a join of all runs
		l.and("(SELECT later.num FROM runs later WHERE later.session = r.session AND later.num > r.num AND later.turn <> '' LIMIT 1) IS NULL")
	}
	l.equal("submitted_by", f.By)
	changed := !f.ChangedSince.IsZero()
	if changed {
		// The planner expects few runs between two times, even if it does not know the first, and a list of numbers to be short. An
		// ended run does not change; a run that no process holds has the time in idle; few have an owner.
		since := l.arg(f.ChangedSince)
		l.and("r.num = ANY (ARRAY(SELECT num FROM runs WHERE ended >= " + since + " AND ended < 'infinity'" +
			" UNION ALL SELECT num FROM runs WHERE idle >= " + since + " AND idle < 'infinity'" +
			" UNION ALL SELECT num FROM runs WHERE owner <> '' AND updated >= " + since + "))")
	}
	if f.Top {
		l.and("r.parent = ''")
	}
	if f.Decision != "" || f.Hook != "" {
		l.and("r.decisions <> ''")
		l.and("nullif(r.decisions, '')::jsonb @> " + l.arg(containing(f)) + "::jsonb")
	}
	l.addTimes(f)
	few := f.Session != "" || f.Parent != "" || f.ParentSession != "" || f.RetryOf != ""
	switch {
	case few:
	case f.Label.Name != "":
		return l.byLabel(f), l.args
	case f.Blocked, f.Decision != "", f.Hook != "", changed:
	case f.By != "", f.Turn != "", f.HasTurn, f.LastTurn, f.HasHooks, f.Phase != "", f.Name != "", f.Kind != "", len(f.Status) > 0:
		return l.byStatus(f), l.args
	}
	if len(f.Status) > 0 {
		l.and("(r.status = ANY (" + l.statuses(f) + ")) IS TRUE") // which rules out the index of statuses
	}
	if f.Label.Name != "" {
		l.and("EXISTS (SELECT FROM labels l WHERE l.run = r.num AND l.name = " + l.arg(f.Label.Name) +
			" AND l.value = " + l.arg(f.Label.Value) + ")")
	}
	l.and("r.num < " + l.behind)
	return "SELECT " + runs.Columns + " FROM runs r WHERE " + strings.Join(l.where, " AND ") + " ORDER BY r.num DESC LIMIT " + l.limit, l.args
}

// countQuery returns the query for the length of a list.
func countQuery(f durable.Filter, before *int64) (query string, args []any) {
	query, args = listQuery(f, before)
	return "SELECT count(*) FROM (" + query + ") x", args
}

// containing returns a JSON list that the decisions of selected runs contain.
func containing(f durable.Filter) string {
	decision := map[string]string{}
	if f.Decision != "" {
		decision["decision"] = string(f.Decision)
	}
	if f.Hook != "" {
		decision["hook"] = strings.ReplaceAll(strings.ToValidUTF8(f.Hook, ""), "\x00", "")
	}
	return string(lo.Must(json.Marshal([]map[string]string{decision})))
}

// maxReordered is how many runs may be stored between a run and an older one with a higher number: the numbers of runs follow
// their times except among those that are stored at the same time.
const maxReordered = "1000"

// addTimes adds the conditions of a time, and those of the numbers that runs of this time have.
func (l *listing) addTimes(f durable.Filter) {
	if !f.Since.IsZero() {
		since := l.arg(f.Since)
		l.and("r.created >= " + since)
		l.and("r.num >= (SELECT min(num) FROM (SELECT num FROM runs WHERE created >= " + since + " ORDER BY created, num LIMIT " + maxReordered + ") x)")
	}
	if !f.Until.IsZero() {
		until := l.arg(f.Until)
		l.and("r.created < " + until)
		l.and("r.num <= (SELECT max(num) FROM (SELECT num FROM runs WHERE created < " + until +
			" ORDER BY created DESC, num DESC LIMIT " + maxReordered + ") x)")
	}
}

// statuses returns the argument with the statuses that a filter selects.
func (l *listing) statuses(f durable.Filter) string {
	all := f.Status
	if len(all) == 0 {
		all = durable.Statuses
	}
	return l.arg(storedTexts(all)) + "::text[]"
}

// byStatus returns a query that merges the lists of each status. The first column of the index is not part of the row comparisons, because
// a scan stops only at the end of their first column.
func (l *listing) byStatus(f durable.Filter) string {
	l.and("(r.status, r.num) >= (wanted, 0)")
	l.and("(r.status, r.num) < (wanted, " + l.behind + ")")
	//nolint:unqueryvet // the inner query passes its rows on
	return "SELECT " + runs.Columns + " FROM unnest(" + l.statuses(f) + ") wanted CROSS JOIN LATERAL (SELECT r.* FROM runs r WHERE " +
		strings.Join(l.where, " AND ") + " ORDER BY r.status DESC, r.num DESC LIMIT " + l.limit + ") r ORDER BY r.num DESC LIMIT " + l.limit
}

// byLabel returns a query that merges the lists of a label with each status.
func (l *listing) byLabel(f durable.Filter) string {
	l.and("l.name = " + l.arg(f.Label.Name))
	l.and("l.value = " + l.arg(f.Label.Value))
	l.and("(l.status, l.run) >= (wanted, 0)")
	l.and("(l.status, l.run) < (wanted, " + l.behind + ")")
	//nolint:unqueryvet // the inner query passes its rows on
	return "SELECT " + runs.Columns + " FROM unnest(" + l.statuses(f) + ") wanted CROSS JOIN LATERAL (" +
		"SELECT r.* FROM labels l JOIN runs r ON r.num = l.run WHERE " + strings.Join(l.where, " AND ") +
		" ORDER BY l.status DESC, l.run DESC LIMIT " + l.limit + ") r ORDER BY r.num DESC LIMIT " + l.limit
}
