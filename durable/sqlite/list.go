package sqlite

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// selectList returns the query of a list.
func selectList(f durable.Filter, below store.Position) (query string, args []any) {
	numbers, order, args := selectNumbers(f, below)
	return "SELECT " + runs.Columns + " FROM (" + numbers + ") CROSS JOIN runs r ON r.num = listed ORDER BY " +
		strings.Replace(order, "l.run", "r.num", 1), args
}

// selectCount returns the query for the length of a list.
func selectCount(f durable.Filter, below store.Position) (query string, args []any) {
	numbers, _, args := selectNumbers(f, below)
	return "SELECT count(*) FROM (" + numbers + ")", args
}

// selectNumbers reads one index in the order of the list, so that a page costs a page and not all runs. An index
// that begins or ends with the status is read once for each status. Other conditions are checked in each row.
func selectNumbers(f durable.Filter, below store.Position) (query, order string, args []any) {
	l := store.ListRuns(f, "INDEXED BY runs_by_session")
	from, status := selectIndex(l, f)
	order = "r.num DESC"
	if status == "l.status" {
		order = "l.run DESC"
		l.And("l.name = " + l.Arg(f.Label.Name) + " AND l.value = " + l.Arg(f.Label.Value))
	} else {
		l.AndLabel(f.Label)
	}
	switch {
	case from != byCreation:
		l.And(strings.TrimSuffix(order, " DESC") + " < " + l.Arg(below.Num))
	case !below.Created.IsZero():
		l.And("(r.created, r.num) < (" + l.Arg(&below.Created) + ", " + l.Arg(below.Num) + ")")
	}
	if from == byCreation {
		order = "r.created DESC, r.num DESC"
	}
	if status != "" || from == by+"block" || from == by+"decision" { // others leave few runs
		andTimes(l, strings.TrimSuffix(order, " DESC"), f)
	}
	if len(f.Sessions) > 0 {
		sessions, _ := json.Marshal(f.Sessions) //nolint:errchkjson // texts can always be written
		l.And("r.session IN (SELECT value FROM json_each(" + l.Arg(string(sessions)) + ")) AND r.session <> ''")
	}
	if f.Blocked {
		l.And("r.blocked = 1 AND r.blocked <> 0")
	}
	if f.HasHooks {
		l.And("r.has_hooks = 1 AND r.has_hooks <> 0")
	}
	if f.Decision != "" || f.Hook != "" {
		l.And("r.decisions <> '' AND EXISTS (SELECT 1 FROM json_each(nullif(r.decisions, '')) WHERE " +
			l.Arg(string(f.Decision)) + " IN ('', value ->> 'decision') AND " + l.Arg(f.Hook) + " IN ('', value ->> 'hook'))")
	}
	if status == "" && len(f.Status) > 0 {
		andIn(l, "r.status", f.Status)
	}
	limit := l.Arg(f.Limit)
	page := func(conditions ...string) string {
		return "SELECT r.num AS listed FROM " + from + " WHERE " + strings.Join(slices.Concat(l.Where, conditions), " AND ") +
			" ORDER BY " + order + " LIMIT " + limit
	}
	if status == "" {
		return page(), order, l.Args
	}
	pages := lo.Map(lo.Ternary(len(f.Status) > 0, f.Status, durable.Statuses), func(s durable.Status, _ int) string {
		// Without the +, SQLite would plan the query for each status, in case that a partial index of one status helps.
		return page(status + " = +" + l.Arg(string(s)))
	})
	return merge(pages) + " ORDER BY listed DESC LIMIT " + limit, order, l.Args
}

// andTimes adds the conditions of the numbers that runs of a time have: otherwise, a list in which few match would read all older
// runs. Numbers follow the times except among runs that are stored at the same time, which are fewer than 1000.
func andTimes(l *store.Listing, number string, f durable.Filter) {
	const created = "SELECT num FROM runs INDEXED BY runs_by_creation WHERE created "
	if !f.Since.IsZero() {
		l.And(number + " >= (SELECT min(num) FROM (" + created + ">= " + l.Arg(&f.Since) + " ORDER BY created, num LIMIT 1000))")
	}
	if !f.Until.IsZero() {
		l.And(number + " <= (SELECT max(num) FROM (" + created + "< " + l.Arg(&f.Until) + " ORDER BY created DESC, num DESC LIMIT 1000))")
	}
}

// merge returns the query for the numbers that other queries list.
func merge(pages []string) string {
	return "SELECT listed FROM (" + strings.Join(pages, ") UNION ALL SELECT listed FROM (") + ")"
}

// andIn adds the condition that a column has one of some values.
func andIn[S ~string](l *store.Listing, column string, values []S) {
	l.And(column + " IN (" + strings.Join(lo.Map(values, func(v S, _ int) string { return l.Arg(string(v)) }), ", ") + ")")
}

const by, byCreation = "runs r INDEXED BY runs_by_", by + "creation"

// selectIndex selects the index for a filter: the first one that fits is the one that leaves the fewest runs, as far as the store can
// tell. Status is the index's column with the status, if it has one.
func selectIndex(l *store.Listing, f durable.Filter) (from, status string) {
	changed := ""
	if !f.ChangedSince.IsZero() { // an ended run does not change; a run that no process holds has the time in idle; few have an owner
		since := l.Arg(&f.ChangedSince)
		l.And("r.updated >= " + since)
		changed = "(SELECT num AS changed FROM runs INDEXED BY runs_ended WHERE ended >= " + since +
			" UNION ALL SELECT num FROM runs INDEXED BY runs_idle WHERE idle >= " + since +
			" UNION ALL SELECT num FROM runs INDEXED BY runs_held WHERE owner <> '' AND updated >= " + since + ") CROSS JOIN runs r ON r.num = changed"
	}
	for _, i := range []struct {
		fits         bool
		from, status string
	}{
		{f.Parent != "", by + "parent", ""},
		{f.Session != "" || len(f.Sessions) > 0, by + "session", ""},
		{f.RetryOf != "", by + "retry", ""},
		{f.ParentSession != "", by + "parent_session", ""},
		{f.Label.Name != "", "labels l INDEXED BY labels_by_value CROSS JOIN runs r ON r.num = l.run", "l.status"},
		{f.Blocked, by + "block", ""},
		{f.Decision != "" || f.Hook != "", by + "decision", ""},
		{changed != "", changed, ""},
		{f.HasHooks, by + "hooks", "r.status"},
		{f.Phase != "", by + "phase", "r.status"},
		{f.By != "", by + "submitter", "r.status"},
		{f.Name != "", by + "name", "r.status"},
		{f.Turn != "" || f.HasTurn || f.LastTurn, by + "turn", "r.status"},
		{f.Kind != "", by + "kind", "r.status"},
		{len(f.Status) > 0, by + "status", "r.status"},
		{!f.Since.IsZero() || !f.Until.IsZero(), byCreation, ""},
	} {
		if i.fits {
			return i.from, i.status
		}
	}
	return "runs r", ""
}

// waitOrder is the order of OpenWaits. An index has the waits in the order of its first column.
const waitOrder = ` ORDER BY w.asked, w.run_id, w.id`

// waitPage returns the query for the numbers of waits w, which it reads by an index, and which run r has.
func waitPage(l *store.Listing, limit, index string, conditions ...string) string {
	return "SELECT w.num AS listed FROM waits w INDEXED BY " + index + " CROSS JOIN runs r ON r.num = w.run WHERE " +
		strings.Join(slices.Concat(l.Where, conditions), " AND ") + waitOrder + " LIMIT " + limit
}

// readListed returns the query for the waits that others list. It reads the waits after the others have found them, so that no data is
// sorted.
func readListed(l *store.Listing, limit string, pages ...string) (query string, args []any) {
	return "SELECT " + store.WaitColumns + " FROM (" + merge(pages) + ") CROSS JOIN waits w ON w.num = listed" + waitOrder + " LIMIT " + limit, l.Args
}

// selectOpen reads one index in the order of the list, so that a page costs a page and not all waits; the index by kind once
// for each kind.
func selectOpen(f durable.WaitFilter, now time.Time) (query string, args []any) {
	l := &store.Listing{}
	limit, at := l.Arg(f.Limit), l.Arg(&now)
	l.And("w.answered IS NULL AND (r.status = 'waiting' OR r.status = 'ready' AND r.answer_by <= " + at + ")")
	if f.Expired {
		l.And("w.deadline IS NOT NULL AND w.deadline <= " + at)
	}
	if f.After != nil {
		asked := l.Arg((*store.Moment)(&f.After.Asked))
		l.And("w.asked >= " + asked + " AND (w.asked, w.run_id, w.id) > (" + asked + ", " + l.Arg(string(f.After.Run)) + ", " + l.Arg(f.After.ID) + ")")
	} else {
		l.And("w.asked >= " + l.Arg(int64(math.MinInt64)))
	}
	index := "waits_open"
	switch {
	case f.Run != "":
		index = "waits_by_run"
		l.And("w.run = (SELECT num FROM runs WHERE id = " + l.Arg(string(f.Run)) + ")")
	case f.Expired:
		index = "waits_by_deadline"
	case len(f.Kinds) > 0:
		return readListed(l, limit, lo.Map(f.Kinds, func(k durable.WaitKind, _ int) string {
			return waitPage(l, limit, "waits_by_kind", "w.kind = "+l.Arg(string(k)))
		})...)
	}
	if len(f.Kinds) > 0 {
		andIn(l, "w.kind", f.Kinds)
	}
	return readListed(l, limit, waitPage(l, limit, index))
}

// checks is a request for waits to watch.
type checks struct {
	owner string
	kinds []durable.WaitKind
	hosts []string
	limit int
}

func (c checks) list() (l *store.Listing, limit, owner string) {
	l = &store.Listing{Where: []string{"r.status = 'waiting' AND r.paused = 0 AND w.answered IS NULL"}}
	return l, l.Arg(c.limit), l.Arg(c.owner)
}

// andAmong limits a list to the kinds and hosts that the claim accepts.
func (c checks) andAmong(l *store.Listing) {
	andIn(l, "w.kind", c.kinds)
	andIn(l, "w.host", c.hosts)
}

// selectOwn returns the query for the waits that the owner has.
func (c checks) selectOwn() (query string, args []any) {
	l, limit, owner := c.list()
	c.andAmong(l)
	return readListed(l, limit, waitPage(l, limit, "waits_watched", "w.checker = "+owner, "w.checker <> ''"))
}

// selectFree returns the query for the waits that no owner has, or whose owner has not renewed its claim. Its parts read an
// index for each kind and host in the order of the result, so that the query costs what it returns.
func (c checks) selectFree(now time.Time) (query string, args []any) {
	l, limit, owner := c.list()
	var pages []string
	for _, kind := range c.kinds {
		for _, host := range c.hosts {
			pages = append(pages, waitPage(l, limit, "waits_unwatched", "w.checker = ''", "w.kind = "+l.Arg(string(kind)), "w.host = "+l.Arg(host)))
		}
	}
	c.andAmong(l)
	pages = append(pages, waitPage(l, limit, "waits_lapsed", "w.checker <> ''", "w.checker <> "+owner, "w.checked_until <= "+l.Arg(&now)))
	return readListed(l, limit, pages...)
}

// selectRecords reads the index that leaves the fewest records. Each has the records of a value in their order.
func selectRecords(f durable.AuditFilter) (query string, args []any) {
	l, from := &store.Listing{}, "audit"
	limit := l.Arg(f.Limit)
	l.And("num < " + l.Arg(cmp.Or(f.Before, math.MaxInt64)))
	for _, c := range []struct{ column, value string }{{"kind", string(f.Kind)}, {"subject", f.Subject}, {"run", string(f.Run)}} {
		if c.value != "" {
			from = "audit INDEXED BY audit_by_" + c.column
			l.And(c.column + " = " + l.Arg(c.value))
		}
	}
	return "SELECT " + store.RecordColumns + " FROM " + from + " WHERE " + strings.Join(l.Where, " AND ") + " ORDER BY num DESC LIMIT " + limit, l.Args
}
