package postgres

import (
	"github.com/jackc/pgx/v5"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// The column ready says since when, or from when on, there is something to do for a
// run: null while an answer is missing. Whatever changes that writes it,
// so that a search for due runs need not look at questions. The database makes of
// it, and of the lease, when a run is due.

// wake makes the runs that wait for one that has ended ready to go on.
func (a appending) wake(b *pgx.Batch) {
	if a.ends() {
		b.Queue(`UPDATE runs SET ready = least(ready, clock_timestamp())
			WHERE ended IS NULL AND num IN (SELECT run FROM questions WHERE child = $1 AND child <> '' AND answered IS NULL)
				AND EXISTS (SELECT FROM runs c WHERE c.id = $1 AND c.ended IS NOT NULL)`, text(a.l.Run))
	}
}

// updateDue writes from when on there is something to do for a run, which is a matter of
// its status, its questions and whether it is to be cancelled, and when the time of its
// first open question is over.
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

// lockChildren keeps runs that are asked about from ending meanwhile: either this
// Append sees that a child has ended, or the child's last one sees the question. The
// children come before the run itself, as in wake, or two could wait for each other.
func (a appending) lockChildren(b *pgx.Batch) {
	children := lo.FilterMap(a.u.Questions, func(q durable.Question, _ int) (text, bool) { return text(q.Child), q.Child != "" })
	if len(children) > 0 && !a.ends() {
		b.Queue(`SELECT FROM runs WHERE id = ANY ($1) ORDER BY num FOR SHARE`, children)
	}
}
