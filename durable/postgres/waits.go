package postgres

import (
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
