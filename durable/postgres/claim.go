package postgres

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// claimQuery returns the query that leases the best ready runs among some heads: the IDs of ready runs in the order of claims. It
// locks heads one after the other until it has $4 runs: it locks no run that it does not lease, and skips those that other sessions
// lease. It returns with each run how many heads there were, and a row of nulls if there were heads but each was skipped. It does
// not read the other heads to count them when it has enough runs.
//
// A session plans the query once, perhaps for an empty table. So that every plan looks up runs one by one, it finds them by ID: of
// the columns of that index no other index has any, and "IS TRUE" hides the status from indexes. Nothing below heads sorts, because
// rows come in the order of heads only as long as no join or sort changes it.
func claimQuery(heads, count string) string {
	return `WITH ` + heads + `,
	picked AS MATERIALIZED (
		SELECT array_agg(l.id) AS ids FROM (
			SELECT l.id FROM heads h CROSS JOIN LATERAL (
				SELECT r.id FROM runs r WHERE r.id = h.id AND (r.status = 'ready') IS TRUE LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
			) l LIMIT $4
		) l
	),
	claimed AS (
		UPDATE runs r SET status = 'running', ready = NULL, idle = NULL, owner = $2, epoch = r.epoch + 1, attempts = r.attempts + 1,
			expires = clock_timestamp() + $3::interval, updated = clock_timestamp()
		WHERE r.id = ANY ((SELECT ids FROM picked)::text[]) RETURNING r.*
	)
	SELECT ` + runs.Columns + `, h.count FROM (
		SELECT CASE WHEN cardinality((SELECT ids FROM picked)) = $4 THEN $4 ELSE ` + count + ` END AS count
	) h LEFT JOIN claimed r ON true
	WHERE h.count > 0 ORDER BY array_position((SELECT ids FROM picked), r.id)`
}

// claimByQueue returns the query that claims the first runs of each queue, to a depth. The depth is a part of the query, so that
// the planner knows that it is small.
func claimByQueue(depth int) string {
	limit := `LIMIT ` + strconv.Itoa(depth)
	return claimQuery(`heads AS MATERIALIZED (
		SELECT h.id FROM `+queuesOfKeys+` CROSS JOIN LATERAL (
			SELECT r.id, r.num, r.priority, r.ready FROM runs r WHERE r.queue = q.id AND r.status = 'ready'
			ORDER BY r.priority DESC, r.ready, r.num `+limit+`
		) h
		ORDER BY h.priority DESC, h.ready, h.num `+limit+`
	)`, `(SELECT count(*) FROM heads)`)
}

// claimFirst claims runs among the first ready runs of all queues. It is for workers that serve many queues, whose heads take
// longer to read. The count is at least firstRuns if there may be more heads behind the first runs.
var claimFirst = func() string {
	limit := strconv.Itoa(firstRuns)
	return claimQuery(`first AS MATERIALIZED (
		SELECT r.id, r.queue FROM runs r WHERE r.ready IS NOT NULL ORDER BY r.priority DESC, r.ready, r.num LIMIT `+limit+`
	),
	heads AS MATERIALIZED (SELECT f.id FROM first f WHERE (SELECT q.key FROM queues q WHERE q.id = f.queue) = ANY ($1))`,
		`(SELECT count(*) FROM heads) + (SELECT count(*) FROM first) / `+limit+` * `+limit)
}()

const (
	// manyQueues is the number of keys from which on claimFirst is tried.
	manyQueues = 16
	// firstRuns is how many runs of any queue claimFirst reads at most.
	firstRuns = 128
)

const (
	// maxDepth is how many heads of each queue Claim reads at most.
	maxDepth = 1 << 15
	// claimAtOnce is how many runs one query leases at most.
	claimAtOnce = 1000
)

// Claim implements store.DB. If the reply of the database was lost, the runs become ready again when their leases expire, or the same
// owner acquires them.
func (d *db) Claim(
	ctx context.Context, owner string, ttl time.Duration, limit int, keys []durable.Key, also func(store.Tx, []durable.Run) error,
) (all []durable.Run, err error) {
	depth := 8
	for depth < min(limit, claimAtOnce)+4 {
		depth *= 8
	}
	first := len(keys) >= manyQueues && limit < firstRuns
	for {
		query, enough := claimByQueue(depth), depth
		if first {
			query, enough = claimFirst, firstRuns
		}
		var (
			atOnce = min(limit-len(all), claimAtOnce)
			some   []durable.Run
			heads  int
		)
		err := d.claimHeads(ctx, also, &some, &heads, query, keyValues(keys), storedText(owner), ttl, atOnce)
		if err != nil {
			if len(all) > 0 { // they are leased
				return all, nil
			}
			return nil, err
		}
		all = append(all, some...)
		switch {
		case len(all) == limit:
			return all, nil
		case len(some) == atOnce: // there may be more
		case heads < enough || depth >= maxDepth:
			return all, nil
		case first:
			first = false
		default: // other sessions have claimed the heads: there may be runs behind them
			depth *= 8
		}
	}
}

// claimHeads leases some of the first ready runs by a query, and reads how many heads it has seen.
func (d *db) claimHeads(
	ctx context.Context, also func(store.Tx, []durable.Run) error, claimed *[]durable.Run, heads *int, query string, args ...any,
) error {
	return d.attempt(ctx, "claiming runs", true, func(t *tx) error {
		*claimed = nil
		q := &pgx.QueuedQuery{SQL: query, Arguments: args}
		q.Query(func(rows pgx.Rows) error { return scanHeads(rows, claimed, heads) })
		if err := t.send(also == nil, q); err != nil || also == nil || len(*claimed) == 0 {
			return err
		}
		return also(t, *claimed)
	})
}

// scanHeads reads the runs that a query has leased, and how many heads it has seen.
func scanHeads(rows pgx.Rows, claimed *[]durable.Run, heads *int) error {
	defer rows.Close()
	var r store.Run
	into := scanTargets(append(runs.Targets(&r), heads))
	for rows.Next() {
		r = store.Run{}
		skipped := rows.RawValues()[0] == nil // each was
		if skipped {
			clear(into[:len(into)-1])
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		if !skipped {
			*claimed = append(*claimed, r.Run)
		}
	}
	return rows.Err()
}
