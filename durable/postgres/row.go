package postgres

import (
	"github.com/jackc/pgx/v5"

	"github.com/grapnel-go/grapnel/durable"
)

// runColumns are the columns that scanRun reads, of a table or alias named r.
const runColumns = `r.id, r.session, r.agent, r.parent, r.root, r.status, r.reason, r.steps, r.entries,
	r.created, r.updated, r.deadline, r.cancel_reason, r.owner, r.epoch, r.expires`

func scanRun(row pgx.Row, more ...any) (r durable.Run, err error) {
	err = row.Scan(append([]any{
		(*text)(&r.ID), (*text)(&r.Session), (*text)(&r.Agent), (*text)(&r.Parent), (*text)(&r.Root),
		(*text)(&r.Status), (*text)(&r.Reason), &r.Steps, &r.Entries,
		when{&r.Created}, when{&r.Updated}, when{&r.Deadline}, (*text)(&r.CancelReason), (*text)(&r.Owner), &r.Epoch, when{&r.Expires},
	}, more...)...)
	return r, err
}

func collectRun(row pgx.CollectableRow) (durable.Run, error) { return scanRun(row) }

func scanEntry(row pgx.CollectableRow) (e durable.Entry, err error) {
	err = row.Scan(&e.Seq, (*text)(&e.Kind), (*text)(&e.Key), when{&e.At}, &e.Data)
	return e, err
}

// questionColumns are the columns that scanQuestion reads, of q and its run r.
const questionColumns = `r.id, q.call, q.hash, q.tool, q.asked, q.deadline, q.child, q.token, q.data, q.answered, q.ends, q.answer`

func collectQuestion(row pgx.CollectableRow) (durable.Question, error) { return scanQuestion(row) }

func scanQuestion(row pgx.Row) (q durable.Question, err error) {
	var (
		token []byte
		a     durable.Answer
	)
	err = row.Scan((*text)(&q.Run), (*text)(&q.Call), (*text)(&q.Hash), (*text)(&q.Tool), when{&q.Asked}, when{&q.Deadline},
		(*text)(&q.Child), &token, &q.Data, when{&a.At}, &a.Ends, &a.Data)
	copy(q.TokenHash[:], token)
	if !a.At.IsZero() {
		a.Call, a.Hash = q.Call, q.Hash
		q.Answer = &a
	}
	return q, err
}
