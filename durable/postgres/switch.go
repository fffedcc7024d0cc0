package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/grapnel-go/grapnel/durable"
)

// denyTools is the name of the switch that denies all tools.
const denyTools = "deny tools"

// DenyTools returns the switch that denies all tools: see durable.Store.
func (s *Store) DenyTools(ctx context.Context) (sw durable.Switch, err error) {
	err = s.call(ctx, "read the switch that denies tools", func(ctx context.Context) error {
		err := s.pool.QueryRow(ctx, `SELECT is_on, reason, by, since FROM switches WHERE name = $1`, denyTools).
			Scan(&sw.On, (*text)(&sw.Reason), (*text)(&sw.By), when{&sw.Since})
		if errors.Is(err, pgx.ErrNoRows) {
			sw = durable.Switch{}
			return nil
		}
		return err
	})
	return sw, err
}

// SetDenyTools sets the switch that denies all tools: see durable.Store. Repeating the call is safe.
func (s *Store) SetDenyTools(ctx context.Context, sw durable.Switch) error {
	return s.call(ctx, "set the switch that denies tools", func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, `
			INSERT INTO switches (name, is_on, reason, by, since) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (name) DO UPDATE SET is_on = excluded.is_on, reason = excluded.reason, by = excluded.by, since = excluded.since`,
			denyTools, sw.On, text(sw.Reason), text(sw.By), orNull(sw.Since))
		return err
	})
}

// KeyID returns the recorded ID of a key: see durable.Store.
func (s *Store) KeyID(ctx context.Context) (id string, err error) {
	err = s.call(ctx, "read the ID of the key", func(ctx context.Context) error {
		id = ""
		return ignoreNoRows(s.pool.QueryRow(ctx, `SELECT key_id FROM encryption`).Scan((*text)(&id)))
	})
	return id, err
}

// SetKeyID records the ID of a key: see durable.Store. Repeating the call is safe.
func (s *Store) SetKeyID(ctx context.Context, id string) error {
	return s.call(ctx, "record the ID of the key", func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, `INSERT INTO encryption (single, key_id) VALUES (true, $1)
			ON CONFLICT (single) DO UPDATE SET key_id = excluded.key_id`, text(id))
		return err
	})
}
