package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

const (
	updateCancel = `UPDATE runs SET cancel_reason = ?2, updated = ?3 WHERE n = ?1 AND cancel_reason = ''`
	// endUnstarted ends a run that has never started.
	endUnstarted = `UPDATE runs SET ` + noLease + `, status = 'cancelled', reason = ?4, updated = ?1, ready = NULL, paused = 0,
		answer_by = NULL WHERE n = ?3 AND attempts = 0 AND ` + free + ` AND status IN ` + live + ` RETURNING id`
	// wakeCancelled makes a run ready, so that a worker ends it.
	wakeCancelled = `UPDATE runs SET ` + becomesReady + ` WHERE n = ?3 AND status IN ('pending', 'waiting') AND ` + free

	// updatePause pauses a run. One that is to be cancelled stays ready.
	updatePause = `UPDATE runs SET paused = 1, updated = ?1,
			status = iif(status IN ('pending', 'ready') AND cancel_reason = '', 'waiting', status),
			ready = iif(cancel_reason = '', NULL, ready)
		WHERE n = ?2 AND paused = 0`

	// updateResume ends a pause. A run that waits, and that no process holds, is pending or ready again, unless it
	// waits for answers, too.
	updateResume = `UPDATE runs SET paused = 0, updated = ?1, status = coalesce(next, status),
			ready = iif(next = 'ready', ?1, ready), offer_seq = offer_seq + (next IS 'ready'), offered = iif(next = 'ready', NULL, offered),
			owner = iif(next IS NULL, owner, ''), leased = iif(next IS NULL, leased, NULL), expires = iif(next IS NULL, expires, NULL)
		FROM (SELECT n AS resumed, CASE
				WHEN status <> 'waiting' OR NOT ` + free + ` THEN NULL
				WHEN cancel_reason <> '' THEN 'ready'
				WHEN attempts = 0 AND not_before > ?1 THEN 'pending'
				WHEN answer_by <= ?1 OR ` + satisfied + ` THEN 'ready'
			END AS next FROM runs WHERE n = ?3)
		WHERE n = resumed AND paused <> 0`

	countSignal  = `UPDATE runs SET signals = signals + 1, updated = ?2 WHERE n = ?1`
	insertSignal = `INSERT INTO signals (run, seq, kind, text, who, at) SELECT n, signals, ?2, ?3, ?4, ?5 FROM runs WHERE n = ?1`

	selectSignals = `SELECT r.id, r.cancel_reason, r.paused, s.seq, s.kind, s.text, s.who, s.at
		FROM runs r INDEXED BY runs_held LEFT JOIN signals s ON s.run = r.n AND s.seq > r.handled
		WHERE r.owner = ?1 AND r.owner <> '' AND (r.cancel_reason <> '' OR r.paused <> 0 OR r.signals > r.handled)
		ORDER BY r.n, s.seq`
)

// Signal implements durable.Store.
func (s *Store) Signal(ctx context.Context, id agent.RunID, signal durable.Signal) error {
	switch signal.Kind {
	case durable.SignalCancel, durable.SignalPause, durable.SignalResume, durable.SignalContext:
	default:
		return fmt.Errorf("signal to run %q: unknown kind %q", id, signal.Kind)
	}
	return s.write(ctx, "sending a signal", func(ctx context.Context, t tx) error {
		h, err := readRun(ctx, t, id)
		if err != nil || h.status.Ended() {
			return err
		}
		t.notify()
		now := s.clock()
		switch signal.Kind {
		case durable.SignalCancel:
			return requestCancel(ctx, t, h.n, cmp.Or(signal.Text, "cancelled"), now)
		case durable.SignalPause:
			_, err = t.exec(ctx, updatePause, now, h.n)
			return err
		case durable.SignalResume:
			if _, err := t.exec(ctx, updateResume, now, now+skew, h.n); err != nil || signal.Text == "" {
				return err
			}
		}
		if _, err := t.exec(ctx, countSignal, h.n, now); err != nil {
			return err
		}
		_, err = t.exec(ctx, insertSignal, h.n, string(signal.Kind), signal.Text, signal.By, now)
		return err
	})
}

// requestCancel requests the cancellation of a run that has not ended. If no process holds it, the run ends when it has
// never started, and becomes ready otherwise.
func requestCancel(ctx context.Context, t tx, n int64, reason string, now int64) error {
	if _, err := t.exec(ctx, updateCancel, n, reason, now); err != nil {
		return err
	}
	var id agent.RunID
	err := t.one(ctx, endUnstarted, now, now+skew, n, string(agent.StopUser)).Scan(&id)
	switch {
	case err == nil:
		return endRunWith(ctx, t, id, nil, now)
	case !errors.Is(err, sql.ErrNoRows):
		return err
	}
	_, err = t.exec(ctx, wakeCancelled, now, now+skew, n)
	return err
}

// Signals implements durable.Store.
func (s *Store) Signals(ctx context.Context, owner string) (all []durable.Signal, err error) {
	err = s.read(ctx, "reading signals", func() error {
		all = nil
		var last []durable.Signal // pause and cancel of the run of the previous row
		var run agent.RunID
		rows, err := s.statements[selectSignals].QueryContext(ctx, owner)
		err = scanRows(rows, err, func(rows *sql.Rows) error {
			var id, reason string
			var paused bool
			var seq sql.NullInt64
			var kind, text, by sql.NullString
			var sent micros
			if err := rows.Scan(&id, &reason, &paused, &seq, &kind, &text, &by, &sent); err != nil {
				return err
			}
			if run != agent.RunID(id) {
				all = append(all, last...)
				run, last = agent.RunID(id), lastingSignals(agent.RunID(id), paused, reason)
			}
			if seq.Valid {
				all = append(all, durable.Signal{
					Run: run, Seq: seq.Int64, Kind: durable.SignalKind(kind.String), Text: text.String, By: by.String, At: sent.Time,
				})
			}
			return nil
		})
		all = append(all, last...)
		return err
	})
	return ignoreNoRows(all, err)
}

// lastingSignals returns the signals that follow from the state of a run.
func lastingSignals(id agent.RunID, paused bool, cancelReason string) (all []durable.Signal) {
	if paused {
		all = append(all, durable.Signal{Run: id, Kind: durable.SignalPause})
	}
	if cancelReason != "" {
		all = append(all, durable.Signal{Run: id, Kind: durable.SignalCancel, Text: cancelReason})
	}
	return all
}
