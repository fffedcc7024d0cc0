package postgres

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// cause is a reason why time changes a run. Its index contains only runs that it may change.
type cause int

const (
	unstarted cause = iota // did not start in time: first, because it ends the run
	expired
	overdue
	due
	late
	causes
)

// causeConditions are the conditions on the run r of each cause. An index of the same name as the time begins with it.
var causeConditions = [causes]string{
	unstarted: `r.start_by <= now() AND r.start_by IS NOT NULL AND r.ended IS NULL AND r.attempts = 0 AND ` + notHeld,
	expired:   `r.expires <= now() AND r.expires IS NOT NULL`,
	overdue:   `r.answer_by <= now() AND r.answer_by IS NOT NULL AND r.status = 'waiting' AND r.expires IS NULL AND NOT r.paused`,
	due:       `r.not_before <= now() AND r.status = 'pending'`,
	late:      `r.deadline <= now() AND r.deadline IS NOT NULL AND r.ended IS NULL AND r.cancel_reason = ''`,
}

var causeTimes = [causes]string{unstarted: "start_by", expired: "expires", overdue: "answer_by", due: "not_before", late: "deadline"}

// reconcileAtOnce is how many runs of each cause one call of Reconcile changes at most.
const reconcileAtOnce = 1000

// lookQuery returns the query that looks whether there are runs of each cause. It writes nothing and locks nothing.
func lookQuery() string {
	looks := make([]string, len(causeConditions))
	for c, condition := range causeConditions {
		looks[c] = `EXISTS (SELECT FROM runs r WHERE ` + condition + `)`
	}
	return `SELECT ` + strings.Join(looks, `, `)
}

// lockQuery returns the query that locks the first $1 runs of a cause. It skips runs that other sessions are changing.
func lockQuery(c cause) string {
	return `SELECT r.num FROM runs r WHERE ` + causeConditions[c] + ` ORDER BY r.` + causeTimes[c] + ` LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED`
}

// Reconcile changes the runs that time changes: see durable.Store. It is one transaction, and none when there is nothing to do.
// If the reply of the database was lost, the counts are lost, too.
func (s *Store) Reconcile(ctx context.Context) (durable.Reconciled, error) {
	done := durable.Reconciled{Done: true}
	err := s.call(ctx, "reconcile runs", func(ctx context.Context) error {
		_, err := s.idle.Do(ctx, "reconcile", func() (_ struct{}, idle bool, err error) {
			done, err = s.reconcileRuns(ctx)
			return struct{}{}, !done.Changed(), err
		})
		return err
	})
	return done, err
}

func (s *Store) reconcileRuns(ctx context.Context) (done durable.Reconciled, err error) {
	var found [causes]bool
	err = s.pool.QueryRow(ctx, lookQuery()).Scan(lo.Map(found[:], func(_ bool, i int) any { return &found[i] })...)
	if err != nil {
		return durable.Reconciled{}, err
	}
	if !lo.Contains(found[:], true) {
		return durable.Reconciled{Done: true}, nil
	}
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		runs, err := lockCauses(ctx, tx, found)
		if err != nil {
			return err
		}
		done = durable.Reconciled{
			Expired: len(runs[expired]), Overdue: len(runs[overdue]), Due: len(runs[due]), Late: len(runs[late]) + len(runs[unstarted]),
			Done: !lo.SomeBy(runs[:], func(nums []int64) bool { return len(nums) == reconcileAtOnce }),
		}
		return changeRuns(ctx, tx, runs)
	})
	if err != nil {
		return durable.Reconciled{}, err
	}
	return done, nil
}

// lockCauses locks the runs of the causes that were found, and returns their numbers.
func lockCauses(ctx context.Context, tx pgx.Tx, found [causes]bool) (runs [causes][]int64, err error) {
	var b pgx.Batch
	for c := range causes {
		if found[c] {
			b.Queue(lockQuery(c), reconcileAtOnce).Query(func(rows pgx.Rows) error {
				runs[c], err = pgx.CollectRows(rows, pgx.RowTo[int64])
				return err
			})
		}
	}
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return runs, err
	}
	// A run that did not start in time ends, whatever else applies to it.
	for c := unstarted + 1; c < causes; c++ {
		runs[c] = lo.Without(runs[c], runs[unstarted]...)
	}
	return runs, nil
}

const (
	// unstartedReason and lateReason are the reasons of a cancellation for each cause.
	unstartedReason text = "it did not start in time"
	lateReason      text = "the deadline has passed"
)

// changeRuns changes locked runs.
func changeRuns(ctx context.Context, tx pgx.Tx, runs [causes][]int64) error {
	const these = `r.num = ANY ($1)`
	var (
		b         pgx.Batch
		cancelled []*[]agent.RunID
	)
	if nums := runs[expired]; len(nums) > 0 {
		batchMove(&b, these, afterRelease, nums)
	}
	if nums := slices.Concat(runs[overdue], runs[due]); len(nums) > 0 {
		batchMove(&b, these, `'ready'`, nums)
	}
	if nums := runs[late]; len(nums) > 0 {
		cancelled = append(cancelled, batchCancel(&b, these, nums, lateReason))
		b.Queue(`SELECT ` + wakeListeners) // a signal was sent
	}
	if nums := runs[unstarted]; len(nums) > 0 {
		cancelled = append(cancelled, batchCancel(&b, these, nums, unstartedReason))
	}
	if b.Len() == 0 {
		return nil
	}
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return err
	}
	ended := lo.FlatMap(cancelled, func(ids *[]agent.RunID, _ int) []agent.RunID { return *ids })
	if len(ended) == 0 {
		return nil
	}
	b = pgx.Batch{}
	batchWakeParents(&b, ended...)
	return tx.SendBatch(ctx, &b).Close()
}
