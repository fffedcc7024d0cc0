package postgres

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
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

// addQueue stores a queue that is not known.
func (t *tx) addQueue(n durable.Needs) {
	key := n.Key()
	if !slices.Contains(t.stored, key) && !t.queues.has(key) {
		t.needs, t.stored = append(t.needs, n), append(t.stored, key)
	}
}

func insertQueues(b *pgx.Batch, needs []durable.Needs) {
	key := func(n durable.Needs) []byte { k := n.Key(); return k[:] }
	slices.SortFunc(needs, func(x, y durable.Needs) int { return bytes.Compare(key(x), key(y)) }) // no deadlock
	b.Queue(`INSERT INTO queues (key, kind, name, demands)
		SELECT n.key, n.kind, n.name, n.demands FROM unnest($1::bytea[], $2::text[], $3::text[], $4::text[]) n (key, kind, name, demands)
		ON CONFLICT (key) DO NOTHING`,
		column(needs, key), textsOf(needs, func(n durable.Needs) durable.Kind { return n.Kind }),
		textsOf(needs, func(n durable.Needs) string { return n.Name }), column(needs, func(n durable.Needs) string { return pairsText(n.Demands) }))
}

// Queues implements store.Rows.
func (t *tx) Queues() ([]durable.Needs, error) {
	return readAll(t, func(row pgx.CollectableRow) (n durable.Needs, err error) {
		return n, row.Scan((*text)(&n.Kind), (*text)(&n.Name), pairs{&n.Demands})
	}, `SELECT kind, name, demands FROM queues`)
}

// queuesOfKeys are the queues q with the keys $1. It looks up each key: the planner would rather read all queues.
const queuesOfKeys = `unnest($1::bytea[]) k CROSS JOIN LATERAL (SELECT id, key, polled FROM queues WHERE key = k LIMIT 1) q`

const (
	servedQuery = `SELECT q.key, q.polled, r.backlog, r.oldest FROM ` + queuesOfKeys + `
		CROSS JOIN LATERAL (SELECT count(*) AS backlog, min(ready) AS oldest FROM runs WHERE queue = q.id AND status = 'ready') r`
	// putPoll records polls. It does not wait for other processes, which record one, too.
	putPoll = `UPDATE queues SET polled = clock_timestamp() WHERE id IN (
		SELECT q.id FROM unnest($1::bytea[]) k CROSS JOIN LATERAL (
			SELECT id FROM queues WHERE key = k LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
		) q)`
	// pruneQueuesQuery deletes the queues without runs. It skips a queue for which another session is storing a run.
	pruneQueuesQuery = `DELETE FROM queues WHERE id IN (
		SELECT q.id FROM queues q LEFT JOIN LATERAL (SELECT true AS used FROM runs r WHERE r.queue = q.id LIMIT 1) r ON true
		WHERE r.used IS NULL FOR UPDATE OF q SKIP LOCKED)`
)

// Services implements store.Rows.
func (t *tx) Services(keys ...durable.Key) (map[durable.Key]durable.Service, error) {
	all := map[durable.Key]durable.Service{}
	_, err := readAll(t, func(row pgx.CollectableRow) (s durable.Service, err error) {
		var key []byte
		err = row.Scan(&key, when{&s.LastPoll}, &s.Backlog, when{&s.Oldest})
		all[durable.Key(key)] = s
		return s, err
	}, servedQuery, keyValues(keys))
	return all, err
}

// LastPolls implements store.Rows.
func (t *tx) LastPolls(keys ...durable.Key) (map[durable.Key]time.Time, error) {
	all := map[durable.Key]time.Time{}
	_, err := readAll(t, func(row pgx.CollectableRow) (at time.Time, err error) {
		var key []byte
		err = row.Scan(&key, when{&at})
		all[durable.Key(key)] = at
		return at, err
	}, `SELECT q.key, q.polled FROM `+queuesOfKeys, keyValues(keys))
	return all, err
}

// PutPoll implements store.Tx.
func (t *tx) PutPoll(keys ...durable.Key) error { return t.enqueue(putPoll, keyValues(keys)) }

// PruneQueues implements store.Tx.
func (t *tx) PruneQueues() error { return t.enqueue(pruneQueuesQuery) }

func keyValues(keys []durable.Key) [][]byte {
	return column(keys, func(k durable.Key) []byte { return k[:] })
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
	return readAll(t, func(row pgx.CollectableRow) (o durable.Offer, err error) {
		var key []byte
		err = row.Scan((*text)(&o.Run), &o.Seq, &key, &o.Priority)
		copy(o.Key[:], key)
		return o, err
	}, owedQuery, retry, limit)
}

// PutOffers implements store.Tx. The next pause is as long as the run has been ready, and at most an hour. It locks the runs in order,
// so that calls do not wait for each other.
func (t *tx) PutOffers(offers ...durable.OfferID) error {
	return t.enqueue(`UPDATE runs r SET offered = now() + least(greatest(now() - r.ready, interval '0'), interval '1 hour') FROM (
			SELECT r.num FROM unnest($1::text[], $2::bigint[]) o (id, seq) JOIN runs r ON r.id = o.id
			WHERE r.offer_seq = o.seq AND r.status = 'ready' ORDER BY r.id FOR NO KEY UPDATE OF r
		) o WHERE r.num = o.num`,
		textsOf(offers, func(o durable.OfferID) agent.RunID { return o.Run }), column(offers, func(o durable.OfferID) int64 { return o.Seq }))
}
