package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/durable"
)

// claimQuery leases the best ready runs of some queues. It reads the heads of each queue, to a depth, and locks runs of them in
// order until it has enough: it locks no run that it does not lease, and skips those that other sessions lease. It returns how
// many heads there were with each run, and a row of nulls if there were heads but each was skipped.
const claimQuery = `WITH heads AS MATERIALIZED (
		SELECT h.num, h.priority, h.ready FROM ` + queuesOfKeys + ` CROSS JOIN LATERAL (
			SELECT r.num, r.priority, r.ready FROM runs r WHERE r.queue = q.id AND r.status = 'ready'
			ORDER BY r.priority DESC, r.ready, r.num LIMIT $5
		) h
		ORDER BY h.priority DESC, h.ready, h.num LIMIT $5
	),
	picked AS MATERIALIZED (
		SELECT r.num, h.ready FROM heads h JOIN runs r ON r.num = h.num WHERE r.status = 'ready'
		ORDER BY h.priority DESC, h.ready, h.num LIMIT $4 FOR NO KEY UPDATE OF r SKIP LOCKED
	),
	claimed AS (
		UPDATE runs r SET status = 'running', ready = NULL, owner = $2, epoch = r.epoch + 1, attempts = r.attempts + 1,
			expires = clock_timestamp() + $3::interval, updated = clock_timestamp()
		FROM picked p WHERE r.num = p.num RETURNING r.*, p.ready AS was_ready
	)
	SELECT ` + runColumns + `, h.count FROM (SELECT count(*) AS count FROM heads) h LEFT JOIN claimed r ON true
	WHERE h.count > 0 ORDER BY r.priority DESC, r.was_ready, r.num`

// idleAtOnce is how many claims of a process run at once, so that their commits wait for the disk together.
const idleAtOnce = 4

// maxDepth is how many heads of each queue Claim reads at most.
const maxDepth = 10_000

// Claim leases ready runs: see durable.Store. If the reply of the database was lost, the runs become ready again when their
// leases expire, or the same owner acquires them.
func (s *Store) Claim(ctx context.Context, owner string, ttl time.Duration, limit int, keys ...durable.Key) (all []durable.Run, err error) {
	if limit <= 0 || len(keys) == 0 {
		return nil, nil
	}
	keys = lo.Uniq(keys)
	set, depth := setOf(keys), limit+4
	for {
		var (
			runs  []durable.Run
			heads int
		)
		err := s.call(ctx, "claim runs", func(ctx context.Context) error {
			_, err := s.idle.Do(ctx, "claim "+set, func() (_ struct{}, empty bool, err error) {
				runs, heads, err = s.claimHeads(ctx, owner, ttl, limit-len(all), depth, keys)
				return struct{}{}, heads == 0, err
			})
			return err
		})
		if err != nil {
			if len(all) > 0 { // they are leased
				return all, nil
			}
			return nil, err
		}
		all = append(all, runs...)
		// Other sessions have claimed the heads: there may be runs behind them.
		if len(all) >= limit || heads < depth || depth > maxDepth {
			return all, nil
		}
		depth *= 8
	}
}

// setOf returns a text for keys in an order.
func setOf(keys []durable.Key) string { return string(slices.Concat(keyValues(keys)...)) }

// claimHeads leases some of the first ready runs, and returns how many first runs it has seen.
func (s *Store) claimHeads(
	ctx context.Context, owner string, ttl time.Duration, limit, depth int, keys []durable.Key,
) (runs []durable.Run, heads int, err error) {
	rows, err := s.pool.Query(ctx, claimQuery, keyValues(keys), text(owner), ttl, limit, depth)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	for rows.Next() {
		if rows.RawValues()[0] == nil { // each was skipped
			columns := make([]any, len(rows.FieldDescriptions()))
			columns[len(columns)-1] = &heads
			if err := rows.Scan(columns...); err != nil {
				return nil, 0, err
			}
			continue
		}
		r, err := scanRun(rows, &heads)
		if err != nil {
			return nil, 0, err
		}
		runs = append(runs, r)
	}
	return runs, heads, rows.Err()
}
