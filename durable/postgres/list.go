package postgres

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// listQuery returns the query of a list. The filter decides which index it reads:
//
//   - sessions, parent, parent session, retried run: the index of that column, because there are few runs;
//   - label, turns, hooks, phase, submitter, name, kind, status: an index that ends with the status and the number. The query merges
//     one list per status. Row comparisons of these two in place of equals signs rule out the index of the numbers: the planner might
//     otherwise scan the newest runs in the hope of finding the few that match;
//   - blocked, decision, hook: the index of blocked runs, or the index of runs with decisions;
//   - changed since: the indexes of ends, idle runs and owners;
//   - otherwise the numbers of all runs, between those of the first and the last run of the time.
func listQuery(f durable.Filter, below store.Position) (query string, args []any) {
	l := store.ListRuns(f, "")
	limit, behind := l.Arg(f.Limit), l.Arg(below.Num)+"::bigint"
	if len(f.Sessions) > 0 {
		l.And("r.session = ANY (" + l.Arg(storedTexts(f.Sessions)) + "::text[]) AND r.session <> ''")
	}
	if f.Blocked {
		l.And("r.blocked")
	}
	if f.HasHooks {
		l.And("r.has_hooks")
	}
	changed := !f.ChangedSince.IsZero()
	if changed {
		// The planner expects few runs between two times, even if it does not know the first, and a list of numbers to be short. An
		// ended run does not change; a run that no process holds has the time in idle; few have an owner.
		since := l.Arg(f.ChangedSince)
		l.And("r.num = ANY (ARRAY(SELECT num FROM runs WHERE ended >= " + since + " AND ended < 'infinity'" +
			" UNION ALL SELECT num FROM runs WHERE idle >= " + since + " AND idle < 'infinity'" +
			" UNION ALL SELECT num FROM runs WHERE owner <> '' AND updated >= " + since + "))")
	}
	if f.Decision != "" || f.Hook != "" {
		l.And("r.decisions <> ''")
		l.And("nullif(r.decisions, '')::jsonb @> " + l.Arg(containing(f)) + "::jsonb")
	}
	// Between the numbers of the first and the last run of the time.
	if !f.Since.IsZero() {
		l.And("r.num >= (SELECT min(num) FROM (SELECT num FROM runs WHERE created >= " + l.Arg(f.Since) +
			" ORDER BY created, num LIMIT " + maxReordered + ") x)")
	}
	if !f.Until.IsZero() {
		l.And("r.num <= (SELECT max(num) FROM (SELECT num FROM runs WHERE created < " + l.Arg(f.Until) +
			" ORDER BY created DESC, num DESC LIMIT " + maxReordered + ") x)")
	}
	statuses := func() string {
		return l.Arg(storedTexts(lo.Ternary(len(f.Status) > 0, f.Status, durable.Statuses))) + "::text[]"
	}
	// merge merges the lists of each status. The first columns of the index are not part of the row comparisons, because a scan stops
	// only at the end of their first column.
	merge := func(from, status, num string) string {
		l.And("(" + status + ", " + num + ") >= (wanted, 0)")
		l.And("(" + status + ", " + num + ") < (wanted, " + behind + ")")
		//nolint:unqueryvet // the inner query passes its rows on
		return "SELECT " + runs.Columns + " FROM unnest(" + statuses() + ") wanted CROSS JOIN LATERAL (SELECT r.* FROM " + from + " WHERE " +
			strings.Join(l.Where, " AND ") + " ORDER BY " + status + " DESC, " + num + " DESC LIMIT " + limit + ") r ORDER BY r.num DESC LIMIT " + limit
	}
	hasFew := f.Session != "" || len(f.Sessions) > 0 || f.Parent != "" || f.ParentSession != "" || f.RetryOf != ""
	hasOwn := f.Blocked || f.Decision != "" || f.Hook != "" || changed
	switch {
	case f.Label.Name != "" && !hasFew:
		l.And("l.name = " + l.Arg(f.Label.Name) + " AND l.value = " + l.Arg(f.Label.Value))
		query = merge("labels l JOIN runs r ON r.num = l.run", "l.status", "l.run")
	case !hasFew && !hasOwn && (f.By != "" || f.Turn != "" || f.HasTurn || f.LastTurn || f.HasHooks || f.Phase != "" || f.Name != "" || f.Kind != "" ||
		len(f.Status) > 0):
		query = merge("runs r", "r.status", "r.num")
	default:
		if len(f.Status) > 0 {
			l.And("(r.status = ANY (" + statuses() + ")) IS TRUE") // which rules out the index of statuses
		}
		l.AndLabel(f.Label)
		l.And("r.num < " + behind)
		query = "SELECT " + runs.Columns + " FROM runs r WHERE " + strings.Join(l.Where, " AND ") + " ORDER BY r.num DESC LIMIT " + limit
	}
	return query, l.Args
}

// countQuery returns the query for the length of a list.
func countQuery(f durable.Filter, below store.Position) (query string, args []any) {
	query, args = listQuery(f, below)
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

// openQuery returns the query of a list of open waits. The filter decides which index it reads: by run, by deadline
// (few have passed), or one in the order of the list. It merges one list per kind. Row comparisons in place of
// an equals sign rule out other indexes: see listQuery.
func openQuery(f durable.WaitFilter) (query string, args []any) {
	l := &store.Listing{Where: []string{isOpen}}
	limit := l.Arg(f.Limit)
	after := "'-infinity', '', ''"
	if f.After != nil {
		after = fmt.Sprintf("%s::timestamptz, %s, %s",
			l.Arg(f.After.Asked.Truncate(time.Microsecond)), l.Arg(string(f.After.Run)), l.Arg(f.After.ID))
	}
	kinds := ""
	if len(f.Kinds) > 0 {
		kinds = l.Arg(storedTexts(f.Kinds)) + "::text[]"
	}
	var few []string // conditions that select few waits
	if f.Expired {
		few = append(few, "w.deadline <= now() AND w.deadline IS NOT NULL")
	}
	if f.Run != "" {
		few = append(few, "w.run = (SELECT num FROM runs WHERE id = "+l.Arg(string(f.Run))+")")
	}
	all := "SELECT " + store.WaitColumns + " FROM "
	end := " ORDER BY w.asked, w.run_id, w.id LIMIT " + limit
	switch {
	case len(few) > 0:
		l.And("(w.asked, w.run_id, w.id) > (" + after + ")")
		if kinds != "" {
			l.And("w.kind = ANY (" + kinds + ")")
		}
		//nolint:unqueryvet // the outer query selects columns
		return "WITH w AS MATERIALIZED (SELECT w.* FROM waits w WHERE w.answered IS NULL AND " + strings.Join(few, " AND ") + ") " +
			all + "w WHERE " + strings.Join(l.Where, " AND ") + end, l.Args
	case kinds != "":
		l.And("(w.kind, w.asked, w.run_id, w.id) > (wanted, " + after + ") AND (w.kind, w.asked) <= (wanted, 'infinity')")
		//nolint:unqueryvet // the outer query selects columns
		return all + "unnest(" + kinds + ") wanted CROSS JOIN LATERAL (SELECT w.* FROM waits w WHERE " + strings.Join(l.Where, " AND ") +
			" ORDER BY w.kind, w.asked, w.run_id, w.id LIMIT " + limit + ") w" + end, l.Args
	}
	l.And("(w.asked, w.run_id, w.id) > (" + after + ")")
	return all + "waits w WHERE " + strings.Join(l.Where, " AND ") + end, l.Args
}

// auditQuery returns the query of a list of audit records. The filter decides which index it reads: by run, by subject,
// by kind, or else by number. Row comparisons in place of an equals sign rule out the others: see
// listQuery.
func auditQuery(f durable.AuditFilter) (query string, args []any) {
	l := &store.Listing{}
	limit := l.Arg(f.Limit)
	before := l.Arg(cmp.Or(max(f.Before, 0), math.MaxInt64)) + "::bigint"
	order := "a.num DESC"
	by := func(column, value string) {
		l.And("(" + column + ", a.num) >= (" + value + ", 0) AND (" + column + ", a.num) < (" + value + ", " + before + ")")
		order = column + " DESC, a.num DESC"
	}
	kind, subject := "", ""
	if f.Kind != "" {
		kind = l.Arg(string(f.Kind)) + "::text"
	}
	if f.Subject != "" {
		subject = l.Arg(f.Subject) + "::text"
		l.And("a.subject = " + subject)
	}
	switch {
	case f.Run != "":
		l.And("a.run <> ''") // the index covers only these rows
		by("a.run", l.Arg(string(f.Run))+"::text")
	case f.Subject != "":
		by("left(a.subject, 200)", "left("+subject+", 200)")
	case f.Kind != "" && f.Kind != durable.AuditAnswer:
		l.And("a.kind <> 'answer'") // the index covers only these rows
		by("a.kind", kind)
		kind = ""
	default:
		l.And("a.num < " + before)
	}
	if kind != "" {
		l.And("a.kind = " + kind)
	}
	return "SELECT " + store.RecordColumns + " FROM audit a WHERE " +
		strings.Join(l.Where, " AND ") + " ORDER BY " + order + " LIMIT " + limit, l.Args
}
