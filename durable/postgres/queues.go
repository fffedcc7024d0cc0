package postgres

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/durable"
)

// Queues returns the needs of all runs that are stored: see durable.Store.
func (s *Store) Queues(ctx context.Context) (all []durable.Needs, err error) {
	err = s.call(ctx, "read the queues", func(ctx context.Context) error {
		all, err = s.listed.Do(ctx, "", func() (read []durable.Needs, share bool, err error) {
			rows, err := s.pool.Query(ctx, `SELECT kind, name, demands FROM queues`)
			if err != nil {
				return nil, false, err
			}
			read, err = pgx.CollectRows(rows, scanNeeds)
			return read, true, err
		})
		return err
	})
	return slices.Clone(all), err
}

const (
	// polledAge is how old the recorded time of the last poll may get before it is recorded again.
	polledAge   = 20 * time.Second
	polledQuery = `UPDATE queues SET polled = now() WHERE id IN (
		SELECT q.id FROM unnest($1::bytea[]) k CROSS JOIN LATERAL (
			SELECT id FROM queues WHERE key = k AND (polled IS NULL OR polled < now() - $2::interval) LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
		) q)`
	servedQuery = `SELECT q.key, q.polled, r.backlog, r.oldest FROM ` + queuesOfKeys + `
		CROSS JOIN LATERAL (SELECT count(*) AS backlog, min(ready) AS oldest FROM runs WHERE queue = q.id AND status = 'ready') r`
)

// queuesOfKeys are the queues q with the keys $1. It looks up each key: the planner would rather read all queues.
const queuesOfKeys = `unnest($1::bytea[]) k CROSS JOIN LATERAL (SELECT id, key, polled FROM queues WHERE key = k LIMIT 1) q`

// RecordPoll records that a worker looks for runs: see durable.Store. Repeating the call is safe.
func (s *Store) RecordPoll(ctx context.Context, keys ...durable.Key) error {
	return s.call(ctx, "record a poll", func(ctx context.Context) error {
		_, err := s.idle.Do(ctx, "poll "+setOf(keys), func() (_ struct{}, share bool, err error) {
			_, err = s.pool.Exec(ctx, polledQuery, keyValues(keys), polledAge)
			return struct{}{}, true, err
		})
		return err
	})
}

// QueueServices returns how queues are served: see durable.Store.
func (s *Store) QueueServices(ctx context.Context, keys ...durable.Key) (all map[durable.Key]durable.Service, err error) {
	err = s.call(ctx, "read how queues are served", func(ctx context.Context) error {
		all = map[durable.Key]durable.Service{}
		rows, err := s.pool.Query(ctx, servedQuery, keyValues(keys))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var (
				key     []byte
				service durable.Service
			)
			if err := rows.Scan(&key, when{&service.LastPoll}, &service.Backlog, when{&service.Oldest}); err != nil {
				return err
			}
			all[durable.Key(key)] = service
		}
		return rows.Err()
	})
	return all, err
}

func keyValues(keys []durable.Key) [][]byte {
	return lo.Map(keys, func(k durable.Key, _ int) []byte { return k[:] })
}

func queueKey(j durable.Job) []byte {
	key := j.Needs().Key()
	return key[:]
}

// queues remembers which queues the database has, so that few calls store one. Prune may delete a queue that is remembered:
// then the run cannot be stored, and the call is repeated.
type queues struct {
	mu    sync.Mutex
	known map[durable.Key]bool
}

// maxQueues limits the memory of queues.
const maxQueues = 10_000

// add stores the queues of jobs that are not known.
func (q *queues) add(b *pgx.Batch, jobs []durable.Job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	missing := lo.UniqBy(lo.Filter(jobs, func(j durable.Job, _ int) bool { return !q.known[j.Needs().Key()] }),
		func(j durable.Job) durable.Key { return j.Needs().Key() })
	if len(missing) == 0 {
		return
	}
	slices.SortFunc(missing, func(x, y durable.Job) int { return bytes.Compare(queueKey(x), queueKey(y)) }) // no deadlock
	b.Queue(`INSERT INTO queues (key, kind, name, demands)
		SELECT k, kind, name, demands FROM unnest($1::bytea[], $2::text[], $3::text[], $4::text[]) n (k, kind, name, demands) ON CONFLICT (key) DO NOTHING`,
		lo.Map(missing, func(j durable.Job, _ int) []byte { return queueKey(j) }),
		lo.Map(missing, func(j durable.Job, _ int) text { return text(j.Needs().Kind) }),
		lo.Map(missing, func(j durable.Job, _ int) text { return text(j.Needs().Name) }),
		lo.Map(missing, func(j durable.Job, _ int) string { return pairsText(j.Needs().Demands) }))
}

// remember records that the queues of jobs are stored.
func (q *queues) remember(jobs []durable.Job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.known == nil || len(q.known) > maxQueues {
		q.known = map[durable.Key]bool{}
	}
	for _, j := range jobs {
		q.known[j.Needs().Key()] = true
	}
}

// explain returns the error of a statement that stores runs in terms of package durable. It forgets all queues if one of them
// was missing.
func (q *queues) explain(err error) error {
	said, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case ok && said.Code == "23505" && said.ConstraintName == "runs_id_key":
		return durable.ErrExists
	case ok && (said.Code == missingValue || said.Code == missingRow):
		q.mu.Lock()
		defer q.mu.Unlock()
		q.known = nil
	}
	return err
}
