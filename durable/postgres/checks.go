package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/durable"
)

// checksQuery reads the waits that an owner $1 may watch: those that it or no owner watches, and those of owners whose claims
// have run out, but not the waits $6; if there are too many, those that it watches already come first. It returns whether the owner has a valid claim,
// and whether it must write one: when the claim is new, or less than half of the time $2 is left. Row comparisons in place of
// equals signs rule out other indexes: see listQuery. The planner would rather read all waits than look up each one.
const checksQuery = `WITH places AS (SELECT kind, host FROM unnest($4::text[]) kind, unnest($5::text[]) host),
	mine AS (
		SELECT w.num, w.asked, w.run_id, w.id, watcher <> '' AS own FROM places p CROSS JOIN unnest(ARRAY['', $1::text]) watcher CROSS JOIN LATERAL (
			SELECT w.num, w.asked, w.run_id, w.id FROM waits w
			WHERE w.answered IS NULL AND (w.checker, w.kind, w.host) >= (watcher, p.kind, p.host)
				AND (w.checker, w.kind, w.host) <= (watcher, p.kind, p.host) AND w.num <> ALL ($6) AND ` + isChecked + `
			ORDER BY w.checker, w.kind, w.host, w.asked, w.run_id, w.id LIMIT $3
		) w
	),
	lapsed AS (
		SELECT w.num, w.asked, w.run_id, w.id, false FROM places p CROSS JOIN LATERAL (
			SELECT w.num, w.asked, w.run_id, w.id FROM waits w
			WHERE w.answered IS NULL AND w.kind = p.kind AND w.host = p.host AND w.checked_until <= now() AND w.checked_until IS NOT NULL
				AND w.checker <> $1 AND w.num <> ALL ($6) AND ` + isChecked + ` ORDER BY w.asked, w.run_id, w.id LIMIT $3
		) w
	),
	picked AS (SELECT w.num FROM (TABLE mine UNION ALL TABLE lapsed) w ORDER BY w.own DESC, w.asked, w.run_id, w.id LIMIT $3)
	SELECT ` + waitColumns + `, p.num, w.checker = $1 AND w.checked_until > now(), w.checker <> $1 OR w.checked_until < now() + $2::interval / 2
	FROM picked p CROSS JOIN LATERAL (SELECT w.checker, w.checked_until, ` + waitColumns + ` FROM waits w WHERE w.num = p.num LIMIT 1) w
	ORDER BY w.asked, w.run_id, w.id`

// isChecked is the condition that the run of the wait w waits for it. It looks up the run: the planner might join all runs to
// an EXISTS.
const isChecked = `(SELECT r.status = 'waiting' AND NOT r.paused FROM runs r WHERE r.num = w.run)`

// watchQuery claims those of the waits $3 that no other owner has claimed meanwhile, and returns them. It waits for no lock.
const watchQuery = `WITH picked AS MATERIALIZED (
		SELECT w.num FROM waits w
		WHERE w.num = ANY ($3) AND w.answered IS NULL AND (w.checker IN ('', $1) OR w.checked_until <= clock_timestamp())
		ORDER BY w.num FOR NO KEY UPDATE SKIP LOCKED
	)
	UPDATE waits w SET checker = $1, checked_until = clock_timestamp() + $2::interval
	WHERE w.num = ANY (ARRAY(SELECT num FROM picked)) RETURNING w.num`

// ClaimChecks returns the waits that an owner must watch: see durable.Store. Without anything to claim or to renew it writes
// nothing. If the reply of the database was lost, a repeated call returns the claimed waits.
func (s *Store) ClaimChecks(
	ctx context.Context, owner string, ttl time.Duration, limit int, kinds []durable.WaitKind, hosts ...string,
) (all []durable.Wait, err error) {
	if limit <= 0 || len(kinds) == 0 {
		return nil, nil
	}
	kindTexts, hostTexts := texts(lo.Uniq(kinds)), texts(lo.Uniq(append([]string{""}, hosts...)))
	err = s.call(ctx, "claim waits to watch", func(ctx context.Context) error {
		lost := []int64{} // to other owners, which claim at the same time
		for {
			rows, err := s.pool.Query(ctx, checksQuery, text(owner), ttl, limit, kindTexts, hostTexts, lost)
			if err != nil {
				return err
			}
			found, err := pgx.CollectRows(rows, scanCheck)
			if err != nil {
				return err
			}
			claimed, err := s.claimFound(ctx, owner, ttl, found)
			if err != nil {
				return err
			}
			all = nil
			before := len(lost)
			for _, c := range found {
				if c.own || slices.Contains(claimed, c.num) {
					all = append(all, c.wait)
				} else {
					lost = append(lost, c.num)
				}
			}
			if len(lost) == before {
				return nil
			}
		}
	})
	return all, err
}

// claimFound writes the claims that the owner must write, and returns the numbers of the claimed waits.
func (s *Store) claimFound(ctx context.Context, owner string, ttl time.Duration, found []check) ([]int64, error) {
	nums := lo.FilterMap(found, func(c check, _ int) (int64, bool) { return c.num, c.write })
	if len(nums) == 0 {
		return nil, nil
	}
	rows, err := s.pool.Query(ctx, watchQuery, text(owner), ttl, nums)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

// check is a wait that an owner may watch.
type check struct {
	wait durable.Wait
	num  int64
	// own says that the owner watches the wait already, and write that it must write its claim.
	own, write bool
}

func scanCheck(row pgx.CollectableRow) (c check, err error) {
	c.wait, err = scanWait(row, &c.num, &c.own, &c.write)
	return c, err
}
