package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

const (
	insertEntry = `INSERT INTO entries (run, seq, kind, key, at, data) SELECT n, ?2, ?3, ?4, ?5, ?6 FROM runs WHERE id = ?1`
	updateWrote = `UPDATE runs SET entries = entries + ?5, updated = ?6
		WHERE id = ?1 AND owner = ?2 AND owner <> '' AND epoch = ?3 AND entries = coalesce(?4, entries)`
	updateState = `UPDATE runs SET status = ?2, reason = ?3, steps = ?4 WHERE n = ?1`
	endLease    = `UPDATE runs SET owner = '', leased = NULL, expires = NULL WHERE n = ?`

	// wakeParents marks the runs that wait for an ended run as ready.
	wakeParents = `UPDATE runs SET ready = coalesce(ready, ?2) WHERE status = 'parked' AND n IN
		(SELECT run FROM questions WHERE child = ?1 AND child <> '' AND answered IS NULL)`

	// settleRun computes the columns that follow from the rest of the record of a run:
	// its deadline, and the time since when it is ready to continue.
	settleRun = `UPDATE runs SET
		deadline = (SELECT min(deadline) FROM questions WHERE run = runs.n AND answered IS NULL),
		ready = CASE
			WHEN status NOT IN ('running', 'parked') THEN NULL
			WHEN cancel_reason <> '' THEN coalesce(ready, ?2)
			WHEN status = 'running' THEN CASE WHEN owner = '' THEN coalesce(ready, ?2) END
			WHEN NOT EXISTS (SELECT 1 FROM questions WHERE run = runs.n AND answered IS NULL)
				OR EXISTS (SELECT 1 FROM questions WHERE run = runs.n AND answered IS NOT NULL AND ends)
				OR EXISTS (SELECT 1 FROM questions q JOIN runs c ON c.id = q.child
					WHERE q.run = runs.n AND q.answered IS NULL AND c.status NOT IN ('running', 'parked'))
			THEN coalesce(ready, ?2)
		END
		WHERE n = ?1`

	// A run without entries gives one row of NULLs, which shows that the run exists.
	selectEntries = `SELECT e.seq, e.kind, e.key, e.at, e.data FROM runs r LEFT JOIN entries e ON e.run = r.n AND e.seq > ?2
		WHERE r.id = ?1 ORDER BY e.seq`
)

// Append implements durable.Store.
func (s *Store) Append(ctx context.Context, l durable.Lease, u durable.Update, entries ...durable.Entry) error {
	return s.write(ctx, "writing to a journal", func(ctx context.Context, t tx) error {
		now := s.clock()
		if err := countEntries(ctx, t, l, entries, now); err != nil {
			return err
		}
		for _, e := range entries {
			if _, err := t.exec(ctx, insertEntry, l.Run, e.Seq, string(e.Kind), e.Key, micros{e.At}, e.Data); err != nil {
				return err
			}
		}
		return update(ctx, t, l.Run, u, now)
	})
}

// countEntries adds the number of entries to that of their run, unless the lease or the numbers of
// the entries are wrong. It asks for no row, so that the statement costs less than a query.
func countEntries(ctx context.Context, t tx, l durable.Lease, entries []durable.Entry, now int64) error {
	var before any
	if len(entries) > 0 {
		before = entries[0].Seq - 1
	}
	for i, e := range entries {
		if e.Seq != entries[0].Seq+int64(i) {
			return refuseEntries(ctx, t, l, entries)
		}
	}
	changed, err := t.exec(ctx, updateWrote, l.Run, l.Owner, l.Epoch, before, len(entries), now)
	if err == nil && changed == 0 {
		return refuseEntries(ctx, t, l, entries)
	}
	return err
}

// refuseEntries returns what is wrong with a lease or with the numbers of entries.
func refuseEntries(ctx context.Context, t tx, l durable.Lease, entries []durable.Entry) error {
	h, err := readHeld(ctx, t, l)
	if err != nil {
		return err
	}
	for _, e := range entries {
		h.entries++
		if e.Seq != h.entries {
			return &durable.SeqError{Run: l.Run, Got: e.Seq, Want: h.entries}
		}
	}
	return fmt.Errorf("run %q: its row does not match its lease", l.Run)
}

// update updates the record of a run.
func update(ctx context.Context, t tx, id agent.RunID, u durable.Update, now int64) error {
	if u.Status == "" && u.Questions == nil {
		return nil
	}
	h, err := readRun(ctx, t, id)
	if err != nil {
		return err
	}
	if u.Status != "" {
		if _, err := t.exec(ctx, updateState, h.n, string(u.Status), string(u.Reason), u.Steps); err != nil {
			return err
		}
	}
	if u.Status.Terminal() {
		u.Questions = []durable.Question{}
		if _, err := t.exec(ctx, endLease, h.n); err != nil {
			return err
		}
		if _, err := t.exec(ctx, wakeParents, id, now); err != nil {
			return err
		}
	}
	if u.Questions != nil {
		if err := replaceQuestions(ctx, t, h.n, u.Questions); err != nil {
			return err
		}
	}
	return updateDue(ctx, t, h.n, now)
}

func updateDue(ctx context.Context, t tx, n, now int64) error {
	_, err := t.exec(ctx, settleRun, n, now)
	return err
}

// Entries implements durable.Store.
func (s *Store) Entries(ctx context.Context, id agent.RunID, after int64) (all []durable.Entry, err error) {
	err = s.read(ctx, "reading a journal", func() error {
		all = nil
		there := false
		rows, err := s.statements[selectEntries].QueryContext(ctx, id, after)
		err = scanRows(rows, err, func(rows *sql.Rows) error {
			there = true
			var seq sql.NullInt64
			var kind, key sql.NullString
			var written micros
			var data []byte
			if err := rows.Scan(&seq, &kind, &key, &written, &data); err != nil || !seq.Valid {
				return err
			}
			all = append(all, durable.Entry{Seq: seq.Int64, Kind: durable.EntryKind(kind.String), Key: key.String, At: written.Time, Data: data})
			return nil
		})
		if err == nil && !there {
			return notFound(id)
		}
		return err
	})
	return ignoreNoRows(all, err)
}
