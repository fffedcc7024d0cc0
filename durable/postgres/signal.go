package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// Signal sends a signal to a run: see durable.Store. Repeating the call is safe, except that an added context is added again.
func (s *Store) Signal(ctx context.Context, id agent.RunID, sig durable.Signal) error {
	return s.call(ctx, fmt.Sprintf("send signal %q to run %s", sig.Kind, id), func(ctx context.Context) error {
		var b pgx.Batch
		r := batchLock(&b, id)
		b.Queue(`SELECT `+wakeListeners+` FROM runs WHERE id = $1 AND ended IS NULL`, text(id))
		switch sig.Kind {
		case durable.SignalCancel:
			batchCancel(&b, `r.id = $1`, text(id), text(lo.CoalesceOrEmpty(sig.Text, "cancelled")))
			batchWakeParents(&b, id)
		case durable.SignalPause:
			b.Queue(`UPDATE runs SET paused = true, updated = clock_timestamp() WHERE id = $1 AND ended IS NULL AND NOT paused`, text(id))
			batchMove(&b, `r.id = $1 AND r.paused AND r.status IN ('pending', 'ready') AND r.cancel_reason = ''`, `'waiting'`, text(id))
		case durable.SignalResume:
			batchMove(&b, `r.id = $1 AND r.paused AND r.status = 'waiting' AND `+notHeld, afterPause, text(id))
			b.Queue(`UPDATE runs SET paused = false, updated = clock_timestamp() WHERE id = $1 AND paused`, text(id))
		case durable.SignalContext:
		default:
			return fmt.Errorf("unknown kind of signal: use %s, %s, %s or %s",
				durable.SignalCancel, durable.SignalPause, durable.SignalResume, durable.SignalContext)
		}
		if sig.Kind == durable.SignalContext || sig.Kind == durable.SignalResume && sig.Text != "" {
			b.Queue(`WITH r AS (UPDATE runs SET signals = signals + 1, updated = clock_timestamp() WHERE id = $1 AND ended IS NULL RETURNING num, signals)
				INSERT INTO signals (run, seq, kind, text, by, at) SELECT num, signals, $2, $3, $4, clock_timestamp() FROM r`,
				text(id), text(sig.Kind), text(sig.Text), text(sig.By))
		}
		switch err := s.batch(ctx, &b); {
		case err != nil:
			return err
		case !r.there:
			return durable.ErrNotFound
		}
		return nil
	})
}

// batchCancel requests the cancellation of the runs of a condition on r and the argument $1, for the reason $2 or an earlier one.
// Of those that no process holds, it ends the ones that have never started, makes the others ready, and returns the IDs of
// the ended ones once the batch was sent. The caller wakes their parents.
func batchCancel(b *pgx.Batch, where string, which any, reason text) (ended *[]agent.RunID) {
	ended = new([]agent.RunID)
	b.Queue(`UPDATE runs r SET cancel_reason = $2, updated = clock_timestamp()
		WHERE `+where+` AND r.ended IS NULL AND r.cancel_reason = ''`, which, reason)
	b.Queue(`WITH r AS (
			UPDATE runs r SET status = 'cancelled', reason = $2, ended = clock_timestamp(), updated = clock_timestamp(), ready = NULL,
				answer_by = NULL, owner = '', expires = NULL, paused = false
			WHERE `+where+` AND r.ended IS NULL AND r.attempts = 0 AND `+notHeld+` RETURNING r.num, r.id
		), q AS (DELETE FROM waits q USING r WHERE q.run = r.num RETURNING q.token, q.run, q.id, q.subject),
		spent AS (INSERT INTO tokens (token, run, wait, subject) SELECT token, run, id, subject FROM q WHERE token IS NOT NULL ON CONFLICT DO NOTHING)
		SELECT id FROM r`, which, text(agent.StopUser)).Query(func(rows pgx.Rows) (err error) {
		*ended, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (id agent.RunID, err error) {
			return id, row.Scan((*text)(&id))
		})
		return err
	})
	batchMove(b, where+` AND r.status IN ('pending', 'waiting') AND `+notHeld, `'ready'`, which)
	return ended
}

// afterPause is the status of the waiting run r when its pause ends.
const afterPause = `CASE
	WHEN r.attempts = 0 AND r.not_before > clock_timestamp() THEN 'pending'
	WHEN r.cancel_reason <> '' OR r.answer_by <= clock_timestamp() OR ` + isSatisfied + ` THEN 'ready'
	ELSE 'waiting' END`

// signalsQuery reads the signals for the runs of an owner.
const signalsQuery = `SELECT id, seq, kind, text, by, at FROM (
		SELECT r.num, r.id, 0 AS place, s.seq, s.kind, s.text, s.by, s.at
		FROM runs r JOIN signals s ON s.run = r.num AND s.seq > r.handled WHERE r.owner = $1 AND r.owner <> '' AND r.signals > r.handled
		UNION ALL SELECT r.num, r.id, 1, 0, 'pause', '', '', NULL FROM runs r WHERE r.owner = $1 AND r.owner <> '' AND r.paused
		UNION ALL SELECT r.num, r.id, 2, 0, 'cancel', r.cancel_reason, '', NULL FROM runs r
		WHERE r.owner = $1 AND r.owner <> '' AND r.cancel_reason <> ''
	) s ORDER BY num, place, seq`

// Signals returns the signals for the runs of an owner: see durable.Store.
func (s *Store) Signals(ctx context.Context, owner string) (all []durable.Signal, err error) {
	err = s.call(ctx, "read the signals for "+owner, func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, signalsQuery, text(owner))
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, scanSignal)
		return err
	})
	return all, err
}
