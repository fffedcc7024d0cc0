package postgres

import (
	"github.com/jackc/pgx/v5"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// The column ready is the time since when, or from when on, a run can continue; null while an answer is missing. Every
// statement that changes this updates the column, so that a search for due runs need not read questions. Whether a run is
// due follows from this column and the lease.

// wake marks the runs that wait for an ended run as ready.
func (a appending) wake(b *pgx.Batch) {
	if a.ends() {
		b.Queue(`UPDATE runs SET ready = least(ready, clock_timestamp())
			WHERE ended IS NULL AND num IN (SELECT run FROM questions WHERE child = $1 AND child <> '' AND answered IS NULL)
				AND EXISTS (SELECT FROM runs c WHERE c.id = $1 AND c.ended IS NOT NULL)`, text(a.l.Run))
	}
}

// updateDue sets the time from which a run can continue, computed from its status, its questions, a requested
// cancellation, and the deadline of its first open question.
func updateDue(b *pgx.Batch, id agent.RunID) {
	b.Queue(`
		UPDATE runs r SET deadline = w.deadline, ready = CASE
			WHEN r.ended IS NOT NULL THEN NULL
			WHEN r.status <> 'parked' OR r.cancel_reason <> '' OR w.told THEN least(r.ready, clock_timestamp())
			ELSE w.deadline END
		FROM (
			SELECT min(q.deadline) FILTER (WHERE q.answered IS NULL) AS deadline,
				count(q.id) FILTER (WHERE q.answered IS NULL) = 0 OR bool_or(q.ends) OR bool_or(q.answered IS NULL AND c.ended IS NOT NULL) AS told
			FROM runs x LEFT JOIN questions q ON q.run = x.num LEFT JOIN runs c ON c.id = q.child WHERE x.id = $1
		) w
		WHERE r.id = $1`, text(id))
}

// lockChildren keeps the child runs in the questions from ending at the same time: either this Append sees that a child
// has ended, or the child's last Append sees the question. It locks the children before the run itself, as wake does, to
// avoid a deadlock.
func (a appending) lockChildren(b *pgx.Batch) {
	children := lo.FilterMap(a.u.Questions, func(q durable.Question, _ int) (text, bool) { return text(q.Child), q.Child != "" })
	if len(children) > 0 && !a.ends() {
		b.Queue(`SELECT FROM runs WHERE id = ANY ($1) ORDER BY num FOR SHARE`, children)
	}
}
