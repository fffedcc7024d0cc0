package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

const (
	deleteRun = `DELETE FROM runs WHERE n = ?`
	pruneRuns = `DELETE FROM runs WHERE n IN
		(SELECT n FROM runs INDEXED BY runs_by_end WHERE status NOT IN ` + live + ` AND updated < ? ORDER BY updated LIMIT ?)`
	pruneQueues = `DELETE FROM queues WHERE NOT EXISTS (SELECT 1 FROM runs INDEXED BY runs_by_queue WHERE queue = queues.id)`

	selectKeyID = `SELECT key_id FROM encryption WHERE only = 1`
	upsertKeyID = `INSERT INTO encryption (only, key_id) VALUES (1, ?1) ON CONFLICT (only) DO UPDATE SET key_id = ?1`

	selectDeny = `SELECT is_on, reason, who, since FROM deny_tools`
	upsertDeny = `INSERT INTO deny_tools (only, is_on, reason, who, since) VALUES (1, ?1, ?2, ?3, ?4)
		ON CONFLICT (only) DO UPDATE SET is_on = ?1, reason = ?2, who = ?3, since = ?4`
)

// Delete implements durable.Store.
func (s *Store) Delete(ctx context.Context, id agent.RunID) error {
	return s.write(ctx, "deleting a run", func(ctx context.Context, t tx) error {
		h, err := readRun(ctx, t, id)
		if err != nil {
			return err
		}
		if h.good(s.clock()) {
			return &durable.HeldError{Run: id, Owner: h.owner, Expires: h.expires.Time}
		}
		_, err = t.exec(ctx, deleteRun, h.n)
		return err
	})
}

// atATime is the number of runs deleted in one transaction, so that other writers wait hundredths of a second and not for
// the whole deletion.
const atATime = 200

// Prune implements durable.Store.
func (s *Store) Prune(ctx context.Context, before time.Time) (n int, err error) {
	for deleted := int64(atATime); err == nil && deleted == atATime; {
		deleted = 0
		err = s.write(ctx, "deleting old runs", func(ctx context.Context, t tx) (err error) {
			deleted, err = t.exec(ctx, pruneRuns, before.UnixMicro(), atATime)
			return err
		})
		if err == nil {
			n += int(deleted)
		}
	}
	if err == nil && n > 0 {
		err = s.write(ctx, "deleting empty queues", func(ctx context.Context, t tx) error {
			_, err := t.exec(ctx, pruneQueues)
			return err
		})
	}
	return n, err
}

// DenyTools implements durable.Store.
func (s *Store) DenyTools(ctx context.Context) (sw durable.Switch, err error) {
	err = s.read(ctx, "reading the switch that denies tools", func() error {
		var since micros
		err := s.statements[selectDeny].QueryRowContext(ctx).Scan(&sw.On, &sw.Reason, &sw.By, &since)
		sw.Since = since.Time
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return ignoreNoRows(sw, err)
}

// SetDenyTools implements durable.Store.
func (s *Store) SetDenyTools(ctx context.Context, sw durable.Switch) error {
	return s.write(ctx, "setting the switch that denies tools", func(ctx context.Context, t tx) error {
		_, err := t.exec(ctx, upsertDeny, sw.On, sw.Reason, sw.By, micros{sw.Since})
		return err
	})
}

// KeyID implements durable.Store.
func (s *Store) KeyID(ctx context.Context) (id string, err error) {
	err = s.read(ctx, "reading the ID of the key", func() error {
		err := s.statements[selectKeyID].QueryRowContext(ctx).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return ignoreNoRows(id, err)
}

// SetKeyID implements durable.Store.
func (s *Store) SetKeyID(ctx context.Context, id string) error {
	return s.write(ctx, "recording the ID of the key", func(ctx context.Context, t tx) error {
		_, err := t.exec(ctx, upsertKeyID, id)
		return err
	})
}
