package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/durable"
)

// owedQuery reads the owed offers: those that were never made, those made too long ago, and of both the oldest. The column
// offered is when an offer may be made again, as offeredQuery computes it; the second condition on it restores when the offer
// was made. It excludes few runs: those that became ready less than $1 ago.
const owedQuery = `WITH owed AS (
		(SELECT num, ready FROM runs WHERE status = 'ready' AND offered IS NULL ORDER BY ready, num LIMIT $2)
		UNION ALL
		(SELECT num, ready FROM runs WHERE status = 'ready' AND offered IS NOT NULL AND offered < now()
			AND greatest(offered - interval '1 hour', ready + (offered - ready) / 2) < now() - $1::interval ORDER BY offered LIMIT $2)
	)
	SELECT r.id, r.offer_seq, q.key, r.priority FROM (SELECT num, ready FROM owed ORDER BY ready, num LIMIT $2) o
	JOIN runs r ON r.num = o.num JOIN queues q ON q.id = r.queue ORDER BY o.ready, o.num`

// Owed returns the owed offers: see durable.Store.
func (s *Store) Owed(ctx context.Context, retry time.Duration, limit int) (all []durable.Offer, err error) {
	err = s.call(ctx, "look for owed offers", func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, owedQuery, retry, max(0, limit))
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, scanOffer)
		return err
	})
	return all, err
}

// offeredQuery records offers: the next pause is as long as the run has been ready, and at most an hour. It locks the runs in
// order, so that calls do not wait for each other.
const offeredQuery = `UPDATE runs r SET offered = now() + least(greatest(now() - r.ready, interval '0'), interval '1 hour') FROM (
		SELECT r.num FROM unnest($1::text[], $2::bigint[]) o (id, seq) JOIN runs r ON r.id = o.id
		WHERE r.offer_seq = o.seq AND r.status = 'ready' ORDER BY r.num FOR NO KEY UPDATE OF r
	) o WHERE r.num = o.num`

// RecordOffers records that offers were made: see durable.Store. Repeating the call is safe.
func (s *Store) RecordOffers(ctx context.Context, offers ...durable.OfferID) error {
	return s.call(ctx, "record offers", func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, offeredQuery,
			lo.Map(offers, func(o durable.OfferID, _ int) text { return text(o.Run) }),
			lo.Map(offers, func(o durable.OfferID, _ int) int64 { return o.Seq }))
		return err
	})
}
