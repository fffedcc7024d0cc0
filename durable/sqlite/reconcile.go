package sqlite

import (
	"context"
	"database/sql"

	"github.com/grapnel-go/grapnel/durable"
)

// What Reconcile looks for. Each condition reads the partial index that is named.
const (
	whereExpired   = `runs INDEXED BY runs_held WHERE owner <> '' AND (expires <= ?1 OR leased > ?2)`
	whereOverdue   = `runs INDEXED BY runs_overdue WHERE status = 'waiting' AND owner = '' AND paused = 0 AND answer_by IS NOT NULL AND answer_by <= ?1`
	whereDue       = `runs INDEXED BY runs_due WHERE status = 'pending' AND not_before <= ?1`
	whereUnstarted = `runs INDEXED BY runs_unstarted WHERE start_by IS NOT NULL AND start_by <= ?1 AND attempts = 0 AND ` + free + ` AND status IN ` + live
	whereLate      = `runs INDEXED BY runs_late WHERE deadline IS NOT NULL AND deadline <= ?1 AND cancel_reason = '' AND status IN ` + live
)

const (
	lookForWork = `SELECT EXISTS (SELECT 1 FROM ` + whereExpired + `), EXISTS (SELECT 1 FROM ` + whereOverdue + `),
		EXISTS (SELECT 1 FROM ` + whereDue + `), EXISTS (SELECT 1 FROM ` + whereUnstarted + `), EXISTS (SELECT 1 FROM ` + whereLate + `)`

	reconcileExpired = `UPDATE runs SET ` + givesUp + ` FROM (` + continues + ` WHERE n IN (SELECT n FROM ` + whereExpired + ` LIMIT ?3))
		WHERE n = given_up`
	reconcileOverdue = `UPDATE runs SET ` + becomesReady + ` WHERE n IN (SELECT n FROM ` + whereOverdue + ` ORDER BY answer_by LIMIT ?2)`
	reconcileDue     = `UPDATE runs SET ` + becomesReady + ` WHERE n IN (SELECT n FROM ` + whereDue + ` ORDER BY not_before LIMIT ?2)`
	selectUnstarted  = `SELECT n FROM ` + whereUnstarted + ` ORDER BY start_by LIMIT ?3`
	selectLate       = `SELECT n FROM ` + whereLate + ` ORDER BY deadline LIMIT ?3`
)

// reconcileLimit is the number of runs that Reconcile handles for each cause.
const reconcileLimit = 1000

// Reconcile implements durable.Store. It writes only when it has seen something to do, and each cause in
// a transaction of its own, so that other writers need not wait for all of them.
func (s *Store) Reconcile(ctx context.Context) (durable.Reconciled, error) {
	r := durable.Reconciled{Done: true}
	_, err := s.idle.Do(ctx, "reconcile", func() (_ struct{}, idle bool, err error) {
		r, err = s.reconcileRuns(ctx)
		return struct{}{}, !r.Changed(), err
	})
	return r, err
}

func (s *Store) reconcileRuns(ctx context.Context) (r durable.Reconciled, err error) {
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
		{unstarted, &r.Late, func(ctx context.Context, t tx, now int64) (int64, error) {
			return cancelEach(ctx, t, selectUnstarted, "it did not start in time", now)
		}},
		{late, &r.Late, func(ctx context.Context, t tx, now int64) (int64, error) {
			return cancelEach(ctx, t, selectLate, "the deadline has passed", now)
		}},
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

// cancelEach cancels the runs that a query finds, at most reconcileLimit, and returns their number.
func cancelEach(ctx context.Context, t tx, query, reason string, now int64) (int64, error) {
	var all []int64
	rows, err := t.rows(ctx, query, now, now+skew, reconcileLimit)
	err = scanRows(rows, err, func(rows *sql.Rows) error {
		var n int64
		err := rows.Scan(&n)
		all = append(all, n)
		return err
	})
	for _, n := range all {
		if err != nil {
			return 0, err
		}
		err = requestCancel(ctx, t, n, reason, now)
	}
	return int64(len(all)), err
}
