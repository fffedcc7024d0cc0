package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// byLease is the condition that the newest lease of a run is the given one, and that its journal ends before
// the first given entry.
const byLease = `id = ?1 AND owner = ?2 AND owner <> '' AND epoch = ?3 AND entries = coalesce(?4, entries)`

// entriesAtOnce is the maximum number of entries in one statement: a step with one call adds at most so many in a commit.
const entriesAtOnce = 3

// insertEntries are the statements that add one entry to a run, two, and so on.
var insertEntries = func() (queries [entriesAtOnce]string) {
	query := `INSERT INTO entries (run, seq, kind, key, at, data) VALUES `
	for i := range queries {
		p := 5 * i
		query += fmt.Sprintf(`((SELECT n FROM runs WHERE id = ?1), ?%d, ?%d, ?%d, ?%d, ?%d)`, p+2, p+3, p+4, p+5, p+6)
		queries[i] = query
		query += `, `
	}
	return queries
}()

const (
	// insertEvent is executed after the events are counted: ?2 events follow this one.
	insertEvent = `INSERT INTO events (run, seq, at, name, data) SELECT n, events - ?2, ?3, ?4, ?5 FROM runs WHERE id = ?1`

	// updateRun updates a run whose status does not change. It sets no column of an index, so that the
	// commit of a step costs little.
	updateRun = `UPDATE runs SET entries = entries + ?5, events = events + ?6, handled = max(handled, ?7), updated = ?8,
			steps = coalesce(?9, steps), reason = coalesce(?10, reason), ended_by = NULL
		WHERE ` + byLease + ` AND status = coalesce(?11, status) AND blocked = coalesce(?12, blocked)`
	updateStatus = `UPDATE runs SET status = ?2, blocked = ?3 WHERE id = ?1`
	endRun       = `UPDATE runs SET entries = entries + ?5, events = events + ?6, handled = max(handled, ?7), updated = ?8,
			steps = ?9, reason = ?10, status = ?11, blocked = ?12, ended_by = ?13, paused = 0, answer_by = NULL, ` + noLease + `
		WHERE ` + byLease
	isRepeated   = `SELECT EXISTS (SELECT 1 FROM runs WHERE id = ?1 AND ended_by = ?2)`
	upsertResult = `INSERT INTO payloads (run, result) SELECT n, ?2 FROM runs WHERE id = ?1
		ON CONFLICT (run) DO UPDATE SET result = excluded.result`

	// wakeParents makes the runs ready that wait for an ended run.
	wakeParents = `UPDATE runs SET ` + becomesReady + ` WHERE status = 'waiting' AND paused = 0 AND ` + free + ` AND n IN
		(SELECT run FROM waits WHERE child = ?3 AND child <> '' AND answered IS NULL)`
	// answerAfter answers the waits of runs that start after an ended run: it may be deleted before they start.
	answerAfter = `UPDATE waits SET answered = ?1, ends = 1
		WHERE child = ?2 AND child <> '' AND id = 'after' AND kind = 'child' AND answered IS NULL`

	// A run without entries gives one row of NULLs, which shows that the run exists.
	selectEntries = `SELECT e.seq, e.kind, e.key, e.at, e.data FROM runs r LEFT JOIN entries e ON e.run = r.n AND e.seq > ?2
		WHERE r.id = ?1 ORDER BY e.seq`
)

// Commit implements durable.Store.
func (s *Store) Commit(ctx context.Context, l durable.Lease, c durable.Commit) (err error) {
	if err := c.Check(); err != nil {
		return fmt.Errorf("run %q: %w", l.Run, err)
	}
	if c.Jobs, err = prepareJobs(c.Jobs); err != nil {
		return err
	}
	return s.write(ctx, "writing to a journal", func(ctx context.Context, t tx) error {
		now := s.clock()
		if err := update(ctx, t, l, c, now); errors.Is(err, errRepeated) {
			return nil
		} else if err != nil {
			return err
		}
		for entries := range slices.Chunk(c.Entries, entriesAtOnce) {
			args := make([]any, 1, 1+5*entriesAtOnce)
			args[0] = string(l.Run)
			for _, e := range entries {
				args = append(args, e.Seq, string(e.Kind), e.Key, micros{e.At}, e.Data)
			}
			if _, err := t.exec(ctx, insertEntries[len(entries)-1], args...); err != nil {
				return err
			}
		}
		for i, e := range c.Events {
			if _, err := t.exec(ctx, insertEvent, string(l.Run), len(c.Events)-1-i, micros{e.At}, e.Name, e.Data); err != nil {
				return err
			}
		}
		for _, r := range c.Records {
			r.Run = l.Run
			if err := addRecord(ctx, t, r); err != nil {
				return err
			}
		}
		for _, j := range c.Jobs {
			if _, err := submitJob(ctx, t, j, now); err != nil {
				return err
			}
		}
		if c.Document != nil {
			_, err := addVersion(ctx, t, *c.Document, now)
			return err
		}
		return nil
	})
}

// errRepeated is returned when a Commit is the one that has ended its run or passed it on.
var errRepeated = errors.New("the run was ended or passed on by the same commit")

// update updates the row of a run and its waits.
func update(ctx context.Context, t tx, l durable.Lease, c durable.Commit, now int64) error {
	if !consecutive(c.Entries) {
		return refuseCommit(ctx, t, l, c.Entries, nil)
	}
	var printed []byte
	if c.ReleasesLease() {
		printed = c.Fingerprint(l)
	}
	write := updateRow
	if c.Update.Pass != nil {
		write = passOn
	}
	changed, err := write(ctx, t, l, c, now, printed)
	if err == nil && !changed {
		err = refuseCommit(ctx, t, l, c.Entries, printed)
	}
	switch {
	case err == nil && c.Update.Pass != nil:
		return removeAllWaits(ctx, t, l.Run)
	case err == nil && c.Update.Status.Ended():
		return endRunWith(ctx, t, l.Run, c.Update.Result, now)
	}
	if err != nil || c.Update.Waits == nil {
		return err
	}
	h, err := readRun(ctx, t, l.Run)
	if err != nil {
		return err
	}
	return replaceWaits(ctx, t, h.n, c.Update, now)
}

func consecutive(entries []durable.Entry) bool {
	for i, e := range entries {
		if e.Seq != entries[0].Seq+int64(i) {
			return false
		}
	}
	return true
}

// updateRow updates the row of a run, and reports whether the lease and the numbers of the entries are
// right. It asks for no row, so that the statement costs less than a query. Printed is the fingerprint of an end.
func updateRow(ctx context.Context, t tx, l durable.Lease, c durable.Commit, now int64, printed []byte) (changed bool, err error) {
	args := []any{string(l.Run), l.Owner, l.Epoch, nil, len(c.Entries), len(c.Events), c.HandledSignals, now, nil, nil, nil, nil}
	if len(c.Entries) > 0 {
		args[3] = c.Entries[0].Seq - 1
	}
	u, query := c.Update, updateRun
	if u.Status != "" {
		args[8], args[9], args[10], args[11] = u.Steps, string(u.Reason), string(u.Status), u.Blocked
	}
	if u.Status.Ended() {
		query, args = endRun, append(args, printed)
	}
	n, err := t.exec(ctx, query, args...)
	if err != nil || n > 0 || u.Status == "" || u.Status.Ended() {
		return n > 0, err
	}
	args[10], args[11] = nil, nil
	if n, err = t.exec(ctx, updateRun, args...); n > 0 && err == nil {
		_, err = t.exec(ctx, updateStatus, string(l.Run), string(u.Status), u.Blocked)
	}
	return n > 0, err
}

// refuseCommit returns what is wrong with a lease or with the numbers of entries, or errRepeated when the Commit with a
// fingerprint has ended the run or passed it on before.
func refuseCommit(ctx context.Context, t tx, l durable.Lease, entries []durable.Entry, printed []byte) error {
	if printed != nil {
		var repeated bool
		if err := t.one(ctx, isRepeated, string(l.Run), printed).Scan(&repeated); err != nil {
			return err
		}
		if repeated {
			return errRepeated
		}
	}
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

// endRunWith stores the result of an ended run, removes its waits and wakes the runs that wait for it.
func endRunWith(ctx context.Context, t tx, id agent.RunID, result []byte, now int64) error {
	if len(result) > 0 {
		if _, err := t.exec(ctx, upsertResult, string(id), result); err != nil {
			return err
		}
	}
	if err := removeAllWaits(ctx, t, id); err != nil {
		return err
	}
	woken, err := t.exec(ctx, wakeParents, now, now+skew, string(id))
	if err != nil {
		return err
	}
	if woken > 0 {
		t.notify()
	}
	_, err = t.exec(ctx, answerAfter, now, string(id))
	return err
}

// removeAllWaits removes the waits of a run and keeps their tokens.
func removeAllWaits(ctx context.Context, t tx, id agent.RunID) error {
	if _, err := t.exec(ctx, keepTokensOf, string(id)); err != nil {
		return err
	}
	_, err := t.exec(ctx, removeWaits, string(id))
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
