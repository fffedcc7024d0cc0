package sqlite

import (
	"context"
	"database/sql"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// A run without events gives one row of NULLs, which shows that the run exists.
const selectEvents = `SELECT e.seq, e.at, e.name, e.data FROM runs r LEFT JOIN events e ON e.run = r.n AND e.seq > ?2
	WHERE r.id = ?1 ORDER BY e.seq LIMIT ?3`

// Events implements durable.Store.
func (s *Store) Events(ctx context.Context, id agent.RunID, after int64, limit int) (all []durable.Event, err error) {
	err = s.read(ctx, "reading events", func() error {
		all = nil
		there := false
		rows, err := s.statements[selectEvents].QueryContext(ctx, id, after, max(limit, 1))
		err = scanRows(rows, err, func(rows *sql.Rows) error {
			there = true
			var seq sql.NullInt64
			var happened micros
			var name sql.NullString
			var data []byte
			if err := rows.Scan(&seq, &happened, &name, &data); err != nil || !seq.Valid || limit <= 0 {
				return err
			}
			all = append(all, durable.Event{Run: id, Seq: seq.Int64, At: happened.Time, Name: name.String, Data: data})
			return nil
		})
		if err == nil && !there {
			return notFound(id)
		}
		return err
	})
	return ignoreNoRows(all, err)
}
