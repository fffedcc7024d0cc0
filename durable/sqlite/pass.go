package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/grapnel-go/grapnel/durable"
)

const (
	selectNeeds = `SELECT kind, name, ` + jobDemands + ` FROM runs WHERE id = ?1`
	// passRun passes a run on to the queue ?9. A run that is to be cancelled is ready even if it is paused, so that a worker ends it.
	passRun = `UPDATE runs SET entries = entries + ?5, events = events + ?6, handled = max(handled, ?7), updated = ?8, ` + noLease + `,
			queue = ?9, demands = ` + jobDemands + `, phase = ?10, attempts = 0, any_wait = 0, answer_by = NULL, ended_by = ?11,
			status = iif(` + staysPaused + `, 'waiting', 'ready'), ready = iif(` + staysPaused + `, NULL, ?8),
			offer_seq = offer_seq + NOT ` + staysPaused + `, offered = iif(` + staysPaused + `, offered, NULL)
		WHERE ` + byLease + ` RETURNING status`
	staysPaused = `(paused <> 0 AND cancel_reason = '')`

	// replaceInput keeps the first input of a run.
	replaceInput = `INSERT INTO payloads (run, input, replaced) SELECT n, ?2, 1 FROM runs WHERE id = ?1
		ON CONFLICT (run) DO UPDATE SET submitted = iif(replaced = 0, input, submitted), input = excluded.input, replaced = 1`
)

// passOn updates the row of a run that is passed on, and its input. It returns false if the lease or the numbers of the entries
// do not fit. Printed is the fingerprint of the Commit.
func passOn(ctx context.Context, t tx, l durable.Lease, c durable.Commit, now int64, printed []byte) (changed bool, err error) {
	var r durable.Run
	var demands string
	err = t.one(ctx, selectNeeds, string(l.Run)).Scan(&r.Kind, &r.Name, &demands)
	if errors.Is(err, sql.ErrNoRows) {
		return false, notFound(l.Run)
	}
	if err == nil {
		r.Demands, err = parseNames(demands)
	}
	if err != nil {
		return false, err
	}
	p := c.Update.Pass
	r.Phase = p.Phase
	queue, err := queueOf(ctx, t, r.Needs())
	if err != nil {
		return false, err
	}
	args := []any{string(l.Run), l.Owner, l.Epoch, nil, len(c.Entries), len(c.Events), c.HandledSignals, now, queue, string(p.Phase), printed}
	if len(c.Entries) > 0 {
		args[3] = c.Entries[0].Seq - 1
	}
	var status durable.Status
	err = t.one(ctx, passRun, args...).Scan(&status)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if status == durable.StatusReady {
		t.notify()
	}
	if p.Input != nil {
		_, err = t.exec(ctx, replaceInput, string(l.Run), p.Input)
	}
	return true, err
}
