package postgres

import (
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/grapnel-go/grapnel/durable"
)

// runColumns are the columns that scanRun reads, of a table or alias named r.
const runColumns = `r.id, r.session, r.kind, r.name, r.version, r.parent, r.root, r.status, r.reason, r.blocked, r.paused, r.cancel_reason,
	` + jobDemands + `, r.labels, r.priority, r.idempotency_key, r.steps, r.attempts, r.entries, r.events,
	r.created, r.updated, r.ready, r.not_before, r.start_by, r.deadline, r.submitted_by, r.answer_by, r.owner, r.epoch, r.expires, r.phase`

// jobDemands are the demands of the job of the run r. While the run has a phase, its queue does not have them.
const jobDemands = `CASE WHEN r.phase = '' THEN (SELECT q.demands FROM queues q WHERE q.id = r.queue) ELSE r.demands END`

func scanRun(row pgx.Row, more ...any) (r durable.Run, err error) {
	err = row.Scan(append([]any{
		(*text)(&r.ID), (*text)(&r.Session), (*text)(&r.Kind), (*text)(&r.Name), (*text)(&r.Version), (*text)(&r.Parent), (*text)(&r.Root),
		(*text)(&r.Status), (*text)(&r.Reason), &r.Blocked, &r.Paused, (*text)(&r.CancelReason),
		pairs{&r.Demands}, pairs{&r.Labels}, &r.Priority, (*text)(&r.IdempotencyKey), &r.Steps, &r.Attempts, &r.Entries, &r.Events,
		when{&r.Created}, when{&r.Updated}, when{&r.Ready}, when{&r.NotBefore}, when{&r.StartBy}, when{&r.Deadline}, (*text)(&r.By), when{&r.AnswerBy},
		(*text)(&r.Owner), &r.Epoch, when{&r.Expires}, (*text)(&r.Phase),
	}, more...)...)
	return r, err
}

func collectRun(row pgx.CollectableRow) (durable.Run, error) { return scanRun(row) }

// pairs reads labels or demands, which are stored as JSON, into To; an empty text is nil.
type pairs struct{ To *map[string]string }

// ScanText sets To.
func (p pairs) ScanText(v pgtype.Text) error {
	*p.To = nil
	if v.String == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(v.String), p.To); err != nil {
		return fmt.Errorf("read labels %q: %w", v.String, err)
	}
	return nil
}

// pairsText returns the stored form of labels or demands. Their names and values are valid texts: see durable.Job.
func pairsText(pairs map[string]string) string {
	if len(pairs) == 0 {
		return ""
	}
	b, err := json.Marshal(pairs)
	if err != nil {
		panic(err) // strings can always be written
	}
	return string(b)
}

func scanNeeds(row pgx.CollectableRow) (n durable.Needs, err error) {
	err = row.Scan((*text)(&n.Kind), (*text)(&n.Name), pairs{&n.Demands})
	return n, err
}

func scanEntry(row pgx.CollectableRow) (e durable.Entry, err error) {
	err = row.Scan(&e.Seq, (*text)(&e.Kind), (*text)(&e.Key), when{&e.At}, &e.Data)
	return e, err
}

func scanEvent(row pgx.CollectableRow) (e durable.Event, err error) {
	err = row.Scan((*text)(&e.Run), &e.Seq, when{&e.At}, (*text)(&e.Name), &e.Data)
	return e, err
}

func scanSignal(row pgx.CollectableRow) (s durable.Signal, err error) {
	err = row.Scan((*text)(&s.Run), &s.Seq, (*text)(&s.Kind), (*text)(&s.Text), (*text)(&s.By), when{&s.At})
	return s, err
}

func scanOffer(row pgx.CollectableRow) (o durable.Offer, err error) {
	var key []byte
	err = row.Scan((*text)(&o.Run), &o.Seq, &key, &o.Priority)
	copy(o.Key[:], key)
	return o, err
}
