package sqlite

import (
	"context"
	"database/sql"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// What Reconcile looks for. Each condition reads the partial index that is named.
const (
	whereExpired   = `runs INDEXED BY runs_held WHERE owner <> '' AND (expires <= ?1 OR leased > ?2)`
	whereOverdue   = `runs INDEXED BY runs_overdue WHERE status = 'waiting' AND owner = '' AND paused = 0 AND answer_by IS NOT NULL AND answer_by <= ?1`
	whereDue       = `runs INDEXED BY runs_due WHERE status = 'pending' AND not_before <= ?1`
	whereUnstarted = `runs INDEXED BY runs_unstarted WHERE start_by IS NOT NULL AND start_by <= ?1 AND attempts = 0 AND status IN ` + live
	whereLate      = `runs INDEXED BY runs_late WHERE deadline IS NOT NULL AND deadline <= ?1 AND cancel_reason = '' AND status IN ` + live
)

const (
	lookForWork = `SELECT EXISTS (SELECT 1 FROM ` + whereExpired + `), EXISTS (SELECT 1 FROM ` + whereOverdue + `),
		EXISTS (SELECT 1 FROM ` + whereDue + `), EXISTS (SELECT 1 FROM ` + whereUnstarted + `), EXISTS (SELECT 1 FROM ` + whereLate + `)`

	reconcileExpired = `UPDATE runs SET ` + givesUp + ` FROM (` + continues + ` WHERE n IN (SELECT n FROM ` + whereExpired + ` LIMIT ?3))
		WHERE n = given_up`
	reconcileOverdue = `UPDATE runs SET ` + becomesReady + ` WHERE n IN (SELECT n FROM ` + whereOverdue + ` ORDER BY answer_by LIMIT ?2)`
	reconcileDue     = `UPDATE runs SET ` + becomesReady + ` WHERE n IN (SELECT n FROM ` + whereDue + ` ORDER BY not_before LIMIT ?2)`
	selectUnstarted  = `SELECT n, id FROM ` + whereUnstarted + ` ORDER BY start_by LIMIT ?2`
	selectLate       = `SELECT n, id FROM ` + whereLate + ` ORDER BY deadline LIMIT ?2`
	endUnstarted     = `UPDATE runs SET ` + noLease + `, status = 'cancelled', reason = ?3, cancel_reason = ?4, updated = ?2, ready = NULL,
		paused = 0, answer_by = NULL WHERE n = ?1`
)

// reconcileLimit is the number of runs that Reconcile handles for each cause.
const reconcileLimit = 1000

// Reconcile implements durable.Store. It writes only when it has seen something to do, and each cause in
// a transaction of its own, so that other writers need not wait for all of them.
func (s *Store) Reconcile(ctx context.Context) (r durable.Reconciled, err error) {
	var expired, overdue, due, unstarted, late bool
	err = s.read(ctx, "looking for runs to reconcile", func() error {
		now := s.clock()
		return s.statements[lookForWork].QueryRowContext(ctx, now, now+skew).Scan(&expired, &overdue, &due, &unstarted, &late)
	})
	r.Done = true
	for _, cause := range []struct {
		found bool
		count *int
		do    func(ctx context.Context, t tx, now int64) (int64, error)
	}{
		{expired, &r.Expired, func(ctx context.Context, t tx, now int64) (int64, error) {
			return t.exec(ctx, reconcileExpired, now, now+skew, reconcileLimit)
		}},
		{overdue, &r.Overdue, func(ctx context.Context, t tx, now int64) (int64, error) {
			return t.exec(ctx, reconcileOverdue, now, reconcileLimit)
		}},
		{due, &r.Due, func(ctx context.Context, t tx, now int64) (int64, error) {
			return t.exec(ctx, reconcileDue, now, reconcileLimit)
		}},
		{unstarted, &r.Late, cancelUnstarted},
		{late, &r.Late, cancelLate},
	} {
		if err != nil || !cause.found {
			continue
		}
		var n int64
		err = s.write(ctx, "reconciling runs", func(ctx context.Context, t tx) (err error) {
			n, err = cause.do(ctx, t, s.clock())
			if n > 0 {
				t.notify()
			}
			return err
		})
		if err == nil {
			*cause.count += int(n)
			r.Done = r.Done && n < reconcileLimit
		}
	}
	if err != nil {
		r.Done = false
	}
	return r, err
}

// cancelUnstarted ends the runs that did not start in time.
func cancelUnstarted(ctx context.Context, t tx, now int64) (int64, error) {
	return t.forEach(ctx, selectUnstarted, now, func(n int64, id agent.RunID) error {
		_, err := t.exec(ctx, endUnstarted, n, now, string(agent.StopUser), "it did not start in time")
		if err == nil {
			err = endRunWith(ctx, t, id, nil, now)
		}
		return err
	})
}

// cancelLate requests the cancellation of the runs whose deadline has passed.
func cancelLate(ctx context.Context, t tx, now int64) (int64, error) {
	return t.forEach(ctx, selectLate, now, func(n int64, _ agent.RunID) error {
		return requestCancel(ctx, t, n, "the deadline has passed", now)
	})
}

// forEach calls do for each run that a query finds, at most reconcileLimit, and returns their number.
func (t tx) forEach(ctx context.Context, query string, now int64, do func(n int64, id agent.RunID) error) (int64, error) {
	type found struct {
		n  int64
		id agent.RunID
	}
	var all []found
	rows, err := t.prepare(ctx, query).QueryContext(ctx, now, reconcileLimit) //nolint:sqlclosecheck // closed with the transaction
	err = scanRows(rows, err, func(rows *sql.Rows) error {
		var f found
		err := rows.Scan(&f.n, &f.id)
		all = append(all, f)
		return err
	})
	for _, f := range all {
		if err != nil {
			return 0, err
		}
		err = do(f.n, f.id)
	}
	return int64(len(all)), err
}
