package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/grapnel-go/grapnel/durable"
)

const (
	// selectOwed returns offers that are not recorded, those recorded long enough ago, and those that must not be made
	// again before ?2, by a clock that was set back since. Each list is as long as the limit at most. The column offered is
	// when an offer may be made again, as updateOffered computes it; offeredAt restores when it was made.
	selectOwed = `SELECT r.id, r.offer_seq, q.key, r.priority FROM (
			SELECT n AS owed, since FROM (
				SELECT n, since FROM (SELECT n, ready AS since FROM runs INDEXED BY runs_owed
					WHERE status = 'ready' AND offered IS NULL ORDER BY ready LIMIT ?3)
				UNION ALL
				SELECT n, since FROM (SELECT n, ready AS since FROM runs INDEXED BY runs_owed
					WHERE status = 'ready' AND offered < ?1 AND ` + offeredAt + ` < ?4 ORDER BY offered, ready LIMIT ?3)
				UNION ALL
				SELECT n, since FROM (SELECT n, ready AS since FROM runs INDEXED BY runs_owed
					WHERE status = 'ready' AND offered > ?2 ORDER BY offered, ready LIMIT ?3)
			) ORDER BY since, n LIMIT ?3
		) CROSS JOIN runs r ON r.n = owed JOIN queues q ON q.id = r.queue ORDER BY since, owed`
	offeredAt = `max(offered - 3600000000, ready + (offered - ready) / 2)`
	// updateOffered records an offer: the next pause is as long as the run has been ready, and at most an hour.
	updateOffered = `UPDATE runs SET offered = ?3 + min(max(?3 - ready, 0), 3600000000) WHERE id = ?1 AND offer_seq = ?2 AND status = 'ready'`

	// Of the queues with the given keys, selectUnpolled selects those polled before ?2, and those polled after ?3, by a
	// clock that was set back since.
	selectUnpolled = `SELECT q.id FROM json_each(?1) k CROSS JOIN queues q ON q.key = unhex(k.value)
		WHERE q.polled IS NULL OR q.polled < ?2 OR q.polled > ?3`
	updatePolled = `UPDATE queues SET polled = ?2 WHERE id = ?1`
	selectServed = `SELECT q.key, q.polled, count(r.n), min(r.ready) FROM json_each(?1) k CROSS JOIN queues q ON q.key = unhex(k.value)
		LEFT JOIN runs r INDEXED BY runs_ready ON r.queue = q.id AND r.status = 'ready' GROUP BY k.key`
)

// maxPause is the longest pause, in microseconds, between two offers of a run.
const maxPause = int64(time.Hour / time.Microsecond)

// pollPrecision is how old, in microseconds, the time of the last poll may be when a worker polls again.
const pollPrecision = int64(20 * time.Second / time.Microsecond)

// Owed implements durable.Store.
func (s *Store) Owed(ctx context.Context, retry time.Duration, limit int) (all []durable.Offer, err error) {
	err = s.read(ctx, "looking for owed offers", func() error {
		all = nil
		now := s.clock()
		rows, err := s.statements[selectOwed].QueryContext(ctx, now, now+maxPause+skew, max(limit, 0), now-retry.Microseconds())
		return scanRows(rows, err, func(rows *sql.Rows) error {
			var o durable.Offer
			var key []byte
			err := rows.Scan(&o.Run, &o.Seq, &key, &o.Priority)
			copy(o.Key[:], key)
			all = append(all, o)
			return err
		})
	})
	return ignoreNoRows(all, err)
}

// RecordOffers implements durable.Store.
func (s *Store) RecordOffers(ctx context.Context, offers ...durable.OfferID) error {
	if len(offers) == 0 {
		return nil
	}
	return s.write(ctx, "recording offers", func(ctx context.Context, t tx) error {
		now := s.clock()
		for _, o := range offers {
			if _, err := t.exec(ctx, updateOffered, string(o.Run), o.Seq, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// RecordPoll implements durable.Store.
func (s *Store) RecordPoll(ctx context.Context, keys ...durable.Key) error {
	list := listKeys(keys)
	_, err := s.idle.Do(ctx, "poll "+list, func() (_ struct{}, share bool, err error) {
		return struct{}{}, true, s.writePoll(ctx, list)
	})
	return err
}

func (s *Store) writePoll(ctx context.Context, list string) error {
	now := s.clock()
	var queues []int64
	err := s.read(ctx, "looking for queues that were not polled", func() error {
		queues = nil
		rows, err := s.statements[selectUnpolled].QueryContext(ctx, list, now-pollPrecision, now+skew)
		return scanRows(rows, err, func(rows *sql.Rows) error {
			var queue int64
			err := rows.Scan(&queue)
			queues = append(queues, queue)
			return err
		})
	})
	if err != nil || len(queues) == 0 {
		return err
	}
	return s.write(ctx, "recording a poll", func(ctx context.Context, t tx) error {
		for _, queue := range queues {
			if _, err := t.exec(ctx, updatePolled, queue, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// QueueServices implements durable.Store.
func (s *Store) QueueServices(ctx context.Context, keys ...durable.Key) (all map[durable.Key]durable.Service, err error) {
	err = s.read(ctx, "reading how queues are served", func() error {
		all = map[durable.Key]durable.Service{}
		rows, err := s.statements[selectServed].QueryContext(ctx, listKeys(keys))
		return scanRows(rows, err, func(rows *sql.Rows) error {
			var key []byte
			var polled, oldest micros
			var served durable.Service
			err := rows.Scan(&key, &polled, &served.Backlog, &oldest)
			served.LastPoll, served.Oldest = polled.Time, oldest.Time
			var k durable.Key
			copy(k[:], key)
			all[k] = served
			return err
		})
	})
	return ignoreNoRows(all, err)
}
