package postgres

import (
	"github.com/jackc/pgx/v5"

	"github.com/grapnel-go/grapnel/agent"
)

// The columns status and ready say whether a worker may claim a run. Every statement that changes what a run waits for moves
// the run in the same transaction, so a search for ready runs reads neither waits nor leases. Statements that decide by
// waits or by other runs follow a statement that has locked the run: they see what the lock waited for.

// notHeld is the condition that no process holds the run r.
const notHeld = `(r.expires IS NULL OR r.expires <= clock_timestamp())`

// isSatisfied is the condition that the run r has what it waits for: no open wait, an answer that ends it or, where one wait is
// enough, any answer, or a child that has ended.
const isSatisfied = `(SELECT count(*) FILTER (WHERE w.answered IS NULL) = 0 OR coalesce(bool_or(
		CASE WHEN w.answered IS NULL THEN EXISTS (SELECT FROM runs c WHERE c.id = w.child AND c.ended IS NOT NULL) ELSE w.ends OR r.any_wait END), false)
	FROM waits w WHERE w.run = r.num)`

// afterRelease is the status of the run r when its lease is given up or lost.
const afterRelease = `CASE
	WHEN r.cancel_reason <> '' THEN 'ready'
	WHEN r.paused THEN 'waiting'
	WHEN r.status <> 'waiting' THEN 'ready'
	WHEN r.answer_by <= clock_timestamp() OR ` + isSatisfied + ` THEN 'ready'
	ELSE 'waiting' END`

// wakeListeners is an expression that announces a change when the transaction commits: see Changes. Announcing transactions
// commit one after the other, so a transaction that makes no run ready must not use it.
const wakeListeners = `pg_notify(current_schema(), '')::text`

// moveQuery returns a statement that moves the runs of a condition on r to the status of an expression on r, without a lease.
// It returns how many there are. Set is added to the changes of a run r with the next row n.
func moveQuery(where, status, set string) string {
	return `WITH next AS (SELECT r.num, ` + status + ` AS status FROM runs r WHERE ` + where + `),
		moved AS (
			UPDATE runs r SET owner = '', expires = NULL, updated = clock_timestamp(), status = n.status,
				ready = CASE WHEN n.status = 'ready' THEN clock_timestamp() END,
				offer_seq = r.offer_seq + CASE WHEN n.status = 'ready' THEN 1 ELSE 0 END,
				offered = NULL` + set + `
			FROM next n WHERE r.num = n.num RETURNING r.status
		)
		SELECT count(*), (SELECT ` + wakeListeners + ` FROM moved WHERE status = 'ready' LIMIT 1) FROM moved`
}

// batchMove moves runs in a batch: see moveQuery.
func batchMove(b *pgx.Batch, where, status string, args ...any) {
	batchMoveQuery(b, moveQuery(where, status, ""), args...)
}

func batchMoveQuery(b *pgx.Batch, query string, args ...any) (n *int) {
	n = new(int)
	b.Queue(query, args...).QueryRow(func(row pgx.Row) error {
		var none *string
		return row.Scan(n, &none)
	})
	return n
}

// isParent is the condition that the run r has an open wait for one of the runs $1.
const isParent = `r.num IN (SELECT w.run FROM waits w WHERE w.child = ANY ($1) AND w.child <> '' AND w.answered IS NULL)`

// endsNow is the condition that this transaction has ended the run c: a refused Commit wakes no other run.
const endsNow = `c.ended IS NOT NULL AND c.xmin = pg_current_xact_id()::xid`

// batchWakeParents makes the runs ready that wait for runs which this transaction has ended. It first locks all of them, including those that a
// process holds: either that process sees the end when it releases its run, or the run is seen here as released.
func batchWakeParents(b *pgx.Batch, ended ...agent.RunID) {
	children := texts(ended)
	b.Queue(`SELECT FROM runs r WHERE `+isParent+` ORDER BY r.num FOR NO KEY UPDATE`, children)
	batchMove(b, isParent+` AND r.status = 'waiting' AND NOT r.paused AND `+notHeld+`
		AND EXISTS (SELECT FROM runs c WHERE c.id = ANY ($1) AND `+endsNow+`)`, `'ready'`, children)
	b.Queue(answerAfter, children)
}

// answerAfter answers the waits of runs that start after the runs $1, if this transaction has ended those: they may be deleted before.
const answerAfter = `UPDATE waits w SET answered = clock_timestamp(), ends = true
	WHERE w.child = ANY ($1) AND w.child <> '' AND w.id = 'after' AND w.kind = 'child' AND w.answered IS NULL
		AND EXISTS (SELECT FROM runs c WHERE c.id = w.child AND ` + endsNow + `)`

// lockChildren keeps the runs that waits are for from ending at the same time: either this transaction sees that a child
// has ended, or the child's last Commit sees the wait. It locks the children before the run itself, as the end of a child
// does, to avoid a deadlock. It sets locked to those that exist.
func lockChildren(b *pgx.Batch, children []agent.RunID, locked *[]agent.RunID) {
	if len(children) == 0 {
		return
	}
	b.Queue(`SELECT id FROM runs WHERE id = ANY ($1) ORDER BY num FOR SHARE`, texts(children)).Query(func(rows pgx.Rows) (err error) {
		*locked, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (id agent.RunID, err error) {
			return id, row.Scan((*text)(&id))
		})
		return err
	})
}
