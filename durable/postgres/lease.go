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

// Create adds a run: see durable.Store. If the reply of the database was lost, a repeated call returns ErrExists once the
// run exists; its owner then claims it.
func (s *Store) Create(ctx context.Context, r durable.Run, owner string, ttl time.Duration) (durable.Lease, error) {
	l := durable.Lease{Run: r.ID, Owner: owner}
	err := s.call(ctx, fmt.Sprintf("create run %s", r.ID), func(ctx context.Context) error {
		err := s.pool.QueryRow(ctx, `
			INSERT INTO runs (id, session, agent, parent, root, status, reason, steps, owner, expires)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, now() + $10::interval)
			ON CONFLICT (id) DO NOTHING RETURNING epoch, expires`,
			text(r.ID), text(r.Session), text(r.Agent), text(r.Parent), text(r.Root), text(agent.StatusRunning), text(r.Reason), r.Steps,
			text(owner), ttl).Scan(&l.Epoch, when{&l.Expires})
		if errors.Is(err, pgx.ErrNoRows) {
			return durable.ErrExists
		}
		return err
	})
	if err != nil {
		return durable.Lease{}, err
	}
	return l, nil
}

// Claim leases a run: see durable.Store. If the reply of the database was lost, the same owner may repeat the call and
// gets the next epoch.
func (s *Store) Claim(ctx context.Context, id agent.RunID, owner string, ttl time.Duration, take durable.Take) (durable.Lease, error) {
	l := durable.Lease{Run: id, Owner: owner}
	err := s.call(ctx, fmt.Sprintf("claim run %s", id), func(ctx context.Context) error {
		var b pgx.Batch
		r := batchLock(&b, id)
		l.Epoch = 0
		b.Queue(`UPDATE runs SET owner = $2, epoch = epoch + 1, expires = clock_timestamp() + $3::interval
			WHERE id = $1 AND ended IS NULL AND ($4 OR expires IS NULL OR owner = $2 OR expires <= clock_timestamp())
			RETURNING epoch, expires`, text(id), text(owner), ttl, take == durable.TakeOver).
			QueryRow(scanOptional(&l.Epoch, when{&l.Expires}))
		switch err := s.batch(ctx, &b); {
		case err != nil:
			return err
		case l.Epoch > 0:
			return nil
		case !r.there:
			return durable.ErrNotFound
		case r.Status.Terminal():
			return durable.ErrEnded
		}
		return &durable.HeldError{Run: id, Owner: r.Owner, Expires: r.Expires}
	})
	if err != nil {
		return durable.Lease{}, err
	}
	return l, nil
}

// Renew extends a lease by another ttl: see durable.Store. Repeating the call is safe.
func (s *Store) Renew(ctx context.Context, l durable.Lease, ttl time.Duration) (durable.Lease, error) {
	err := s.call(ctx, fmt.Sprintf("renew the lease of run %s", l.Run), func(ctx context.Context) error {
		return s.holding(ctx, l, `UPDATE runs SET expires = clock_timestamp() + $3::interval WHERE `+holds+` RETURNING expires`,
			when{&l.Expires}, ttl)
	})
	if err != nil {
		return durable.Lease{}, err
	}
	return l, nil
}

// Release releases a lease: see durable.Store. If the reply of the database was lost, a repeated call returns ErrStale
// once the lease is released.
func (s *Store) Release(ctx context.Context, l durable.Lease) error {
	return s.call(ctx, fmt.Sprintf("release run %s", l.Run), func(ctx context.Context) error {
		var epoch int64
		return s.holding(ctx, l, `UPDATE runs SET owner = '', expires = NULL WHERE `+holds+` RETURNING epoch`, &epoch)
	})
}

// holds is the condition that the lease of the first two arguments is valid. The end of a run releases its lease, too.
const holds = `id = $1 AND epoch = $2 AND expires IS NOT NULL`

// holding executes one statement on a run that the lease holds.
func (s *Store) holding(ctx context.Context, l durable.Lease, statement string, to any, args ...any) error {
	var (
		b           pgx.Batch
		done, there bool
	)
	b.Queue(statement, append([]any{text(l.Run), l.Epoch}, args...)...).QueryRow(func(row pgx.Row) error {
		err := row.Scan(to)
		done = err == nil
		return ignoreNoRows(err)
	})
	b.Queue(`SELECT true FROM runs WHERE id = $1`, text(l.Run)).QueryRow(scanOptional(&there))
	switch err := s.batch(ctx, &b); {
	case err != nil || done:
		return err
	case there:
		return durable.ErrStale
	}
	return durable.ErrNotFound
}

// found is the row of a run that a batch has locked.
type found struct {
	durable.Run

	there    bool
	appended []byte
}

// batchLock locks a run. It is the first statement of a batch that changes the run in several statements.
func batchLock(b *pgx.Batch, id agent.RunID) *found {
	f := new(found)
	b.Queue(`SELECT `+runColumns+`, r.appended FROM runs r WHERE r.id = $1 FOR NO KEY UPDATE`, text(id)).QueryRow(func(row pgx.Row) error {
		var err error
		f.Run, err = scanRun(row, &f.appended)
		f.there = err == nil
		return ignoreNoRows(err)
	})
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
