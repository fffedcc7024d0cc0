package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// Every statement that checks a lease does so while it holds the lock of the run's row, and uses clock_timestamp(): now()
// would be the time before it waited for the lock.

// Acquire leases a run: see durable.Store. If the reply of the database was lost, the same owner may repeat the call and
// gets the next epoch.
func (s *Store) Acquire(ctx context.Context, id agent.RunID, owner string, ttl time.Duration, take durable.Take) (durable.Lease, error) {
	l := durable.Lease{Run: id, Owner: owner}
	err := s.call(ctx, fmt.Sprintf("acquire run %s", id), func(ctx context.Context) error {
		var b pgx.Batch
		r := batchLock(&b, id)
		l.Epoch = 0
		b.Queue(`UPDATE runs r SET owner = $2, epoch = r.epoch + 1, expires = clock_timestamp() + $3::interval, updated = clock_timestamp(), ready = NULL,
				status = CASE r.status WHEN 'waiting' THEN 'waiting' ELSE 'running' END,
				attempts = r.attempts + CASE r.status WHEN 'waiting' THEN 0 ELSE 1 END
			WHERE r.id = $1 AND r.ended IS NULL AND ($4 OR r.owner = $2 OR `+notHeld+`)
			RETURNING r.epoch, r.expires`, text(id), text(owner), ttl, take == durable.TakeOver).
			QueryRow(scanOptional(&l.Epoch, when{&l.Expires}))
		switch err := s.batch(ctx, &b); {
		case err != nil:
			return err
		case l.Epoch > 0:
			return nil
		case !r.there:
			return durable.ErrNotFound
		case r.ended:
			return durable.ErrEnded
		}
		return &durable.HeldError{Run: id, Owner: r.owner, Expires: r.expires}
	})
	if err != nil {
		return durable.Lease{}, err
	}
	return l, nil
}

// Renew extends a lease by another ttl: see durable.Store. Repeating the call is safe.
func (s *Store) Renew(ctx context.Context, l durable.Lease, ttl time.Duration) (durable.Lease, error) {
	err := s.call(ctx, fmt.Sprintf("renew the lease of run %s", l.Run), func(ctx context.Context) error {
		var (
			b           pgx.Batch
			done, there bool
		)
		b.Queue(`UPDATE runs SET expires = clock_timestamp() + $3::interval
			WHERE id = $1 AND epoch = $2 AND owner = $4 AND expires IS NOT NULL RETURNING true, expires`, text(l.Run), l.Epoch, ttl, text(l.Owner)).
			QueryRow(scanOptional(&done, when{&l.Expires}))
		b.Queue(`SELECT true FROM runs WHERE id = $1`, text(l.Run)).QueryRow(scanOptional(&there))
		switch err := s.batch(ctx, &b); {
		case err != nil || done:
			return err
		case there:
			return durable.ErrStale
		}
		return durable.ErrNotFound
	})
	if err != nil {
		return durable.Lease{}, err
	}
	return l, nil
}

// releaseQuery moves a run whose lease is given up.
var releaseQuery = moveQuery(`r.id = $1 AND r.epoch = $2 AND r.owner = $4 AND r.expires IS NOT NULL`,
	`CASE WHEN $3::interval > '0' AND r.cancel_reason = '' AND NOT r.paused AND r.status <> 'waiting' THEN 'pending' ELSE `+afterRelease+` END`,
	`, not_before = CASE WHEN n.status = 'pending' THEN clock_timestamp() + $3::interval ELSE r.not_before END`)

// Release releases a lease: see durable.Store. If the reply of the database was lost, a repeated call returns ErrStale
// once the lease is released.
func (s *Store) Release(ctx context.Context, l durable.Lease, delay time.Duration) error {
	return s.call(ctx, fmt.Sprintf("release run %s", l.Run), func(ctx context.Context) error {
		var b pgx.Batch
		r := batchLock(&b, l.Run)
		released := batchMoveQuery(&b, releaseQuery, text(l.Run), l.Epoch, max(0, delay), text(l.Owner))
		switch err := s.batch(ctx, &b); {
		case err != nil || *released > 0:
			return err
		case !r.there:
			return durable.ErrNotFound
		}
		return durable.ErrStale
	})
}

// found is what a batch needs of the row of a run that it has locked.
type found struct {
	there    bool
	ended    bool
	entries  int64
	appended []byte
	owner    string
	epoch    int64
	expires  time.Time
}

// batchLock locks a run. It is the first statement of a batch that changes the run in several statements.
func batchLock(b *pgx.Batch, id agent.RunID) *found {
	f := new(found)
	b.Queue(`SELECT true, ended IS NOT NULL, entries, appended, owner, epoch, expires FROM runs WHERE id = $1 FOR NO KEY UPDATE`, text(id)).
		QueryRow(scanOptional(&f.there, &f.ended, &f.entries, &f.appended, (*text)(&f.owner), &f.epoch, when{&f.expires}))
	return f
}

// scanOptional reads a row that may be missing.
func scanOptional(to ...any) func(pgx.Row) error {
	return func(row pgx.Row) error { return ignoreNoRows(row.Scan(to...)) }
}

func ignoreNoRows(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return err
}
