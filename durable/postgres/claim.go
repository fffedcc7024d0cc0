package postgres

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/durable"
)

// claimQuery returns the query that leases the best ready runs among some heads: ready runs in the order of claims, with num,
// priority and ready. It locks heads one after the other until it has $4 runs: it locks no run that it does not lease, and skips
// those that other sessions lease. It returns with each run how many heads there were, and a row of nulls if there were heads but
// each was skipped.
//
// The subquery with LIMIT 1 looks up each head by its number: otherwise the planner may read all runs, because it does not know
// the limits. Only the rows of a materialized query without a sort come in its order, so nothing below heads sorts.
func claimQuery(heads, count string) string {
	return `WITH ` + heads + `,
	picked AS MATERIALIZED (
		SELECT l.num, h.ready FROM heads h CROSS JOIN LATERAL (
			SELECT r.num FROM runs r WHERE r.num = h.num AND r.status = 'ready' LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
		) l LIMIT $4
	),
	claimed AS (
		UPDATE runs r SET status = 'running', ready = NULL, owner = $2, epoch = r.epoch + 1, attempts = r.attempts + 1,
			expires = clock_timestamp() + $3::interval, updated = clock_timestamp()
		FROM picked p WHERE r.num = p.num RETURNING r.*, p.ready AS was_ready
	)
	SELECT ` + runColumns + `, h.count FROM (SELECT ` + count + ` AS count) h LEFT JOIN claimed r ON true
	WHERE h.count > 0 ORDER BY r.priority DESC, r.was_ready, r.num`
}

// claimByQueue returns the query that claims the first runs of each queue, to a depth. The depth is a part of the query, so that
// the planner knows that it is small.
func claimByQueue(depth int) string {
	limit := `LIMIT ` + strconv.Itoa(depth)
	return claimQuery(`heads AS MATERIALIZED (
		SELECT h.num, h.priority, h.ready FROM `+queuesOfKeys+` CROSS JOIN LATERAL (
			SELECT r.num, r.priority, r.ready FROM runs r WHERE r.queue = q.id AND r.status = 'ready'
			ORDER BY r.priority DESC, r.ready, r.num `+limit+`
		) h
		ORDER BY h.priority DESC, h.ready, h.num `+limit+`
	)`, `(SELECT count(*) FROM heads)`)
}

// claimFirst claims runs among the first ready runs of all queues. It is for workers that serve many queues, whose heads take
// longer to read. The count is firstDepth if there may be more heads behind the first runs.
var claimFirst = claimQuery(`first AS MATERIALIZED (
		SELECT r.num, r.priority, r.ready, r.queue FROM runs r WHERE r.ready IS NOT NULL
		ORDER BY r.priority DESC, r.ready, r.num LIMIT `+strconv.Itoa(firstRuns)+`
	),
	heads AS MATERIALIZED (
		SELECT f.num, f.priority, f.ready FROM first f WHERE (SELECT q.key FROM queues q WHERE q.id = f.queue) = ANY ($1)
		LIMIT `+strconv.Itoa(firstDepth)+`
	)`, `(SELECT count(*) FROM heads) + CASE WHEN (SELECT count(*) FROM first) = `+strconv.Itoa(firstRuns)+` THEN `+strconv.Itoa(firstDepth)+` ELSE 0 END`)

const (
	// manyQueues is the number of keys from which on claimFirst is tried.
	manyQueues = 16
	// firstRuns is how many runs of any queue claimFirst reads at most, and firstDepth is how many of those it may lease.
	firstRuns, firstDepth = 256, 32
)

// idleAtOnce is how many claims of a process run at once, so that their commits wait for the disk together.
const idleAtOnce = 4

// maxDepth is how many heads of each queue Claim reads at most.
const maxDepth = 1 << 15

// Claim leases ready runs: see durable.Store. If the reply of the database was lost, the runs become ready again when their
// leases expire, or the same owner acquires them.
func (s *Store) Claim(ctx context.Context, owner string, ttl time.Duration, limit int, keys ...durable.Key) (all []durable.Run, err error) {
	if limit <= 0 || len(keys) == 0 {
		return nil, nil
	}
	keys = lo.Uniq(keys)
	set, depth := setOf(keys), 8
	for depth < limit+4 && depth < maxDepth {
		depth *= 8
	}
	first := len(keys) >= manyQueues && limit < firstDepth
	for {
		query, enough := claimByQueue(depth), depth
		if first {
			query, enough = claimFirst, firstDepth
		}
		var (
			runs  []durable.Run
			heads int
		)
		err := s.call(ctx, "claim runs", func(ctx context.Context) error {
			_, err := s.idle.Do(ctx, "claim "+set, func() (_ struct{}, empty bool, err error) {
				runs, heads, err = s.claimHeads(ctx, query, owner, ttl, limit-len(all), keys)
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
		if len(all) >= limit || heads < enough || depth >= maxDepth {
			return all, nil
		}
		if !first {
			depth *= 8
		}
		first = false
	}
}

// setOf returns a text for keys in an order.
func setOf(keys []durable.Key) string { return string(slices.Concat(keyValues(keys)...)) }

// claimHeads leases some of the first ready runs by a query, and returns how many heads it has seen.
func (s *Store) claimHeads(
	ctx context.Context, query, owner string, ttl time.Duration, limit int, keys []durable.Key,
) (runs []durable.Run, heads int, err error) {
	rows, err := s.pool.Query(ctx, query, keyValues(keys), text(owner), ttl, limit)
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
