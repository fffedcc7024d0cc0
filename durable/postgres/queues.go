package postgres

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// queues remembers which queues the database has, so that few calls store one. Prune may delete a queue that is remembered:
// then a run cannot be stored, and the call is repeated.
type queues struct {
	mu    sync.Mutex
	known map[durable.Key]bool
}

// maxQueues limits the memory of queues.
const maxQueues = 10_000

func (q *queues) has(key durable.Key) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.known[key]
}

// record remembers queues that a call has stored. If a queue was missing, it forgets all.
func (q *queues) record(stored []durable.Key, err error) {
	said, ok := errors.AsType[*pgconn.PgError](err)
	missing := ok && (said.Code == missingValue || said.Code == missingRow)
	if !missing && (err != nil || len(stored) == 0) {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if missing || q.known == nil || len(q.known) > maxQueues {
		q.known = map[durable.Key]bool{}
	}
	if !missing {
		for _, key := range stored {
			q.known[key] = true
		}
	}
}

// HasQueue implements store.SQL.
func (t *tx) HasQueue(key durable.Key) (bool, error) {
	has := slices.Contains(t.stored, key) || t.queues.has(key)
	if !has {
		t.stored = append(t.stored, key)
	}
	return has, t.err
}

// queuesOfKeys are the queues q with the keys $1. It looks up each key: the planner would rather read all queues.
const queuesOfKeys = `unnest($1::bytea[]) k CROSS JOIN LATERAL (SELECT id, key, polled FROM queues WHERE key = k LIMIT 1) q`

const (
	servedQuery = `SELECT q.key, q.polled, r.backlog, r.oldest FROM ` + queuesOfKeys + `
		CROSS JOIN LATERAL (SELECT count(*) AS backlog, min(ready) AS oldest FROM runs WHERE queue = q.id AND status = 'ready') r`
	// putPoll records polls. It does not wait for other processes, which record one, too.
	putPoll = `UPDATE queues SET polled = $2 WHERE id IN (
		SELECT q.id FROM unnest($1::bytea[]) k CROSS JOIN LATERAL (
			SELECT id FROM queues WHERE key = k LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
		) q)`
	// pruneQueuesQuery deletes the queues without runs. It skips a queue for which another session is storing a run.
	pruneQueuesQuery = `DELETE FROM queues WHERE id IN (
		SELECT q.id FROM queues q LEFT JOIN LATERAL (SELECT true AS used FROM runs r WHERE r.queue = q.id LIMIT 1) r ON true
		WHERE r.used IS NULL FOR UPDATE OF q SKIP LOCKED)`
)

var queries = &store.Queries{
	Keys: keyValues, Polled: `SELECT q.key, q.polled FROM ` + queuesOfKeys, Served: servedQuery,
	PutPoll: putPoll, PruneQueues: pruneQueuesQuery, Prune: pruneQuery, Due: dueQuery, Shards: 4,
	List: listQuery, Count: countQuery,
}

func keyValues(keys []durable.Key) any {
	return columnOf(keys, func(k durable.Key) []byte { return k[:] })
}

// owedQuery reads the owed offers: those that were never made, those made too long ago, and of both the oldest. The column
// offered is when an offer may be made again, as PutOffers computes it; the second condition on it restores when the offer
// was made. It excludes few runs: those that became ready less than $1 ago.
const owedQuery = `WITH owed AS (
		(SELECT num, ready FROM runs WHERE status = 'ready' AND offered IS NULL ORDER BY ready, num LIMIT $2)
		UNION ALL
		(SELECT num, ready FROM runs WHERE status = 'ready' AND offered IS NOT NULL AND offered < now()
			AND greatest(offered - interval '1 hour', ready + (offered - ready) / 2) < now() - $1::interval ORDER BY offered LIMIT $2)
	)
	SELECT r.id, r.offer_seq, q.key, r.priority FROM (SELECT num, ready FROM owed ORDER BY ready, num LIMIT $2) o
	JOIN runs r ON r.num = o.num JOIN queues q ON q.id = r.queue ORDER BY o.ready, o.num`

// Owed implements store.Rows.
func (t *tx) Owed(retry time.Duration, limit int) ([]durable.Offer, error) {
	return store.SelectOffers(t, owedQuery, retry, limit)
}

// PutOffers implements store.Tx. The next pause is as long as the run has been ready, and at most an hour. It locks the runs in order,
// so that calls do not wait for each other.
func (t *tx) PutOffers(offers ...durable.OfferID) error {
	return t.Exec(`UPDATE runs r SET offered = now() + least(greatest(now() - r.ready, interval '0'), interval '1 hour') FROM (
			SELECT r.num FROM unnest($1::text[], $2::bigint[]) o (id, seq) JOIN runs r ON r.id = o.id
			WHERE r.offer_seq = o.seq AND r.status = 'ready' ORDER BY r.id FOR NO KEY UPDATE OF r
		) o WHERE r.num = o.num`,
		columnOf(offers, func(o durable.OfferID) string { return storedText(o.Run) }), columnOf(offers, func(o durable.OfferID) int64 { return o.Seq }))
}
