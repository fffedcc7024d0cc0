package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// jobDemands are the demands of the job of a run. While the run has a phase, its queue does not have them.
const jobDemands = `iif(phase = '', (SELECT queues.demands FROM queues WHERE queues.id = runs.queue), runs.demands)`

const runColumns = `id, session, kind, runs.name, version, parent, root, runs.status, reason, blocked, paused, cancel_reason,
	` + jobDemands + `, (SELECT json_group_object(name, value) FROM labels WHERE run = runs.n),
	priority, idempotency_key, steps, attempts, entries, events, created, updated, ready, not_before, start_by, deadline, answer_by,
	owner, epoch, expires, submitted_by, phase`

const (
	selectRun      = `SELECT ` + runColumns + ` FROM runs WHERE id = ?`
	selectPosition = `SELECT n, created FROM runs WHERE id = ?`
)

// Run implements durable.Store.
func (s *Store) Run(ctx context.Context, id agent.RunID) (r durable.Run, err error) {
	err = s.read(ctx, "reading a run", func() error {
		r, err = scanRun(s.statements[selectRun].QueryRowContext(ctx, id).Scan)
		if errors.Is(err, sql.ErrNoRows) {
			return notFound(id)
		}
		return err
	})
	return ignoreNoRows(r, err)
}

func scanRuns(rows *sql.Rows, err error) (runs []durable.Run, _ error) {
	err = scanRows(rows, err, func(rows *sql.Rows) error {
		r, err := scanRun(rows.Scan)
		runs = append(runs, r)
		return err
	})
	return runs, err
}

// scanRun reads a row of runColumns.
func scanRun(scan func(...any) error) (durable.Run, error) {
	var r durable.Run
	var demands, labels sql.NullString
	var created, updated, ready, notBefore, startBy, deadline, answerBy, expires micros
	err := scan(&r.ID, &r.Session, &r.Kind, &r.Name, &r.Version, &r.Parent, &r.Root, &r.Status, &r.Reason, &r.Blocked, &r.Paused,
		&r.CancelReason, &demands, &labels, &r.Priority, &r.IdempotencyKey, &r.Steps, &r.Attempts, &r.Entries, &r.Events,
		&created, &updated, &ready, &notBefore, &startBy, &deadline, &answerBy, &r.Owner, &r.Epoch, &expires, &r.By, &r.Phase)
	if err != nil {
		return durable.Run{}, err
	}
	r.Created, r.Updated, r.Ready, r.NotBefore, r.StartBy = created.Time, updated.Time, ready.Time, notBefore.Time, startBy.Time
	r.Deadline, r.AnswerBy, r.Expires = deadline.Time, answerBy.Time, expires.Time
	if r.Demands, err = parseNames(demands.String); err != nil {
		return durable.Run{}, err
	}
	r.Labels, err = parseNames(labels.String)
	return r, err
}
