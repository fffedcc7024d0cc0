package postgres

import (
	"fmt"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// checksQuery reads the waits that an owner $1 may watch: those that it or no owner watches, and those of owners whose claims have run
// out; if there are too many, those that it watches already come first. Row comparisons in place of equals signs rule out other
// indexes: see listQuery. The planner would rather read all waits than look up each one.
var checksQuery = `WITH places AS (SELECT kind, host FROM unnest($3::text[]) kind, unnest($4::text[]) host),
	mine AS (
		SELECT w.num, w.asked, w.run_id, w.id, watcher <> '' AS own FROM places p CROSS JOIN unnest(ARRAY['', $1::text]) watcher CROSS JOIN LATERAL (
			SELECT w.num, w.asked, w.run_id, w.id FROM waits w
			WHERE w.answered IS NULL AND (w.checker, w.kind, w.host) >= (watcher, p.kind, p.host)
				AND (w.checker, w.kind, w.host) <= (watcher, p.kind, p.host) AND ` + isChecked + `
			ORDER BY w.checker, w.kind, w.host, w.asked, w.run_id, w.id LIMIT $2
		) w
	),
	lapsed AS (
		SELECT w.num, w.asked, w.run_id, w.id, false FROM places p CROSS JOIN LATERAL (
			SELECT w.num, w.asked, w.run_id, w.id FROM waits w
			WHERE w.answered IS NULL AND w.kind = p.kind AND w.host = p.host AND w.checked_until <= now() AND w.checked_until IS NOT NULL
				AND w.checker <> $1 AND ` + isChecked + ` ORDER BY w.asked, w.run_id, w.id LIMIT $2
		) w
	),
	picked AS (SELECT w.num FROM (TABLE mine UNION ALL TABLE lapsed) w ORDER BY w.own DESC, w.asked, w.run_id, w.id LIMIT $2)
	SELECT ` + store.WaitColumns + ` FROM picked p CROSS JOIN LATERAL (SELECT ` + store.WaitColumns + ` FROM waits w WHERE w.num = p.num LIMIT 1) w`

// isChecked is the condition that the run of the wait w waits for it. It looks up the run: the planner might join all runs to
// an EXISTS.
const isChecked = `(SELECT r.status = 'waiting' AND NOT r.paused FROM runs r WHERE r.num = w.run)`

// Checks implements store.Rows.
func (t *tx) Checks(owner string, kinds []durable.WaitKind, hosts []string, limit int) ([]store.Wait, error) {
	if err := t.lockName("checks"); err != nil {
		return nil, err
	}
	return store.SelectWaits(t, checksQuery, owner, limit, storedTexts(kinds), storedTexts(hosts))
}

// isOpen is the condition that the wait w has no decision and its run waits, or waited until a deadline passed. It looks up the
// run: the planner might join all runs to an EXISTS.
const isOpen = `w.answered IS NULL
	AND (SELECT r.status = 'waiting' OR r.status = 'ready' AND r.answer_by <= now() FROM runs r WHERE r.num = w.run)`

// OpenWaits implements store.Rows. Waits that began in the same microsecond are in the order of their runs.
func (t *tx) OpenWaits(f durable.WaitFilter) ([]store.Wait, error) {
	sql, args := openQuery(f)
	return store.SelectWaits(t, sql, args...)
}

// openQuery returns the query of a list of open waits. The filter decides which index it reads: that of a run, that of the
// deadlines, as few have passed, or those that have the order of the list. It merges one list per kind. Row comparisons in place of
// an equals sign rule out other indexes: see listQuery.
func openQuery(f durable.WaitFilter) (query string, args []any) {
	l := &listing{where: []string{isOpen}}
	l.limit = l.arg(f.Limit)
	after := "'-infinity', '', ''"
	if f.After != nil {
		after = fmt.Sprintf("%s::timestamptz, %s, %s",
			l.arg(f.After.Asked.Truncate(time.Microsecond)), l.arg(string(f.After.Run)), l.arg(f.After.ID))
	}
	kinds := ""
	if len(f.Kinds) > 0 {
		kinds = l.arg(storedTexts(f.Kinds)) + "::text[]"
	}
	var few []string // conditions that select few waits
	if f.Expired {
		few = append(few, "w.deadline <= now() AND w.deadline IS NOT NULL")
	}
	if f.Run != "" {
		few = append(few, "w.run = (SELECT num FROM runs WHERE id = "+l.arg(string(f.Run))+")")
	}
	all := "SELECT " + store.WaitColumns + " FROM "
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
