package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// tx is a transaction of the writer, as one write sees it.
type tx struct {
	view

	notifies bool // the commit is a change for Changes
}

// exec executes a statement and returns the number of changed rows.
func (t *tx) exec(query string, args ...any) (int64, error) {
	stmt, err := t.prepare(t.ctx, query) //nolint:sqlclosecheck // it stays open for the next transaction
	if err != nil {
		return 0, t.fail(err)
	}
	result, err := stmt.ExecContext(t.ctx, args...)
	if err != nil {
		return 0, t.fail(err)
	}
	n, err := result.RowsAffected()
	return n, t.fail(err)
}

// run executes a statement.
func (t *tx) run(query string, args ...any) error {
	_, err := t.exec(query, args...)
	return err
}

// Notify implements store.Tx.
func (t *tx) Notify() { t.notifies = true }

// Lock implements store.Tx: there is one writer.
func (t *tx) Lock(ids ...agent.RunID) (map[agent.RunID]store.Run, error) { return t.Runs(ids...) }

// LockFree implements store.Tx.
func (t *tx) LockFree(ids ...agent.RunID) (map[agent.RunID]store.Run, error) { return t.Runs(ids...) }

var selectWaiters = `SELECT ` + runColumns + ` FROM runs
	WHERE n IN (SELECT run FROM waits INDEXED BY waits_by_child WHERE child = ?1 AND child <> '' AND answered IS NULL) ORDER BY n`

// LockWaiters implements store.Tx.
func (t *tx) LockWaiters(child agent.RunID) ([]store.Run, error) {
	return scanAll(&t.view, newSelection(selectWaiters, string(child)), scanRun)
}

const (
	selectQueue = `SELECT id FROM queues WHERE key = ?`
	insertQueue = `INSERT INTO queues (key, kind, name, demands) VALUES (?, ?, ?, ?)`
	insertInput = `INSERT INTO payloads (run, input) VALUES (` + numberOf + `, ?2)`
	insertLabel = `INSERT INTO labels (run, name, value, status) VALUES (` + numberOf + `, ?2, ?3, ?4)`
	putResult   = `INSERT INTO payloads (run, result) VALUES (` + numberOf + `, ?2) ON CONFLICT (run) DO UPDATE SET result = excluded.result`
	// putInput keeps the first input of a run.
	putInput = `INSERT INTO payloads (run, input, replaced) VALUES (` + numberOf + `, ?2, 1)
		ON CONFLICT (run) DO UPDATE SET submitted = iif(replaced = 0, input, submitted), input = excluded.input, replaced = 1`
)

// queueOf returns the number of a queue, and adds the queue if it is new.
func (t *tx) queueOf(n durable.Needs) (queue int64, err error) {
	k := n.Key()
	find := newSelection(selectQueue, k[:])
	number := func(n *int64) []any { return []any{n} }
	queue, found, err := scanOne(&t.view, find, number)
	if err != nil || found {
		return queue, err
	}
	if err := t.run(insertQueue, k[:], string(n.Kind), n.Name, asJSON{&n.Demands}); err != nil {
		return 0, err
	}
	queue, _, err = scanOne(&t.view, find, number)
	return queue, err
}

// AddRuns implements store.Tx.
func (t *tx) AddRuns(runs ...store.NewRun) error {
	for _, r := range runs {
		if err := t.addRun(r); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) addRun(r store.NewRun) error {
	queue, err := t.queueOf(r.Needs())
	if err != nil {
		return err
	}
	added, err := t.exec(insertRun, append(fields(columnsOf(&r.Run)), queue, phaseDemands(&r.Run))...)
	if err == nil && added == 0 {
		err = fmt.Errorf("run %q: %w", r.ID, durable.ErrExists)
	}
	if err == nil && len(r.Input) > 0 {
		err = t.run(insertInput, string(r.ID), r.Input)
	}
	for name, value := range r.Labels {
		if err == nil {
			err = t.run(insertLabel, string(r.ID), name, value, string(r.Status))
		}
	}
	if err == nil && len(r.Waits) > 0 {
		err = t.PutWaits(r.ID, nil, r.Waits)
	}
	return err
}

// PutRun implements store.Tx. It sets no column of an index that keeps its value.
func (t *tx) PutRun(old, r store.Run) error {
	columns, values, err := changedColumns(old, r)
	if err != nil {
		return err
	}
	if old.Phase != r.Phase {
		queue, err := t.queueOf(r.Needs())
		if err != nil {
			return err
		}
		columns, values = append(columns, "phase", "queue", "demands"), append(values, string(r.Phase), queue, phaseDemands(&r))
	}
	if len(columns) == 0 {
		return nil
	}
	return t.run("UPDATE runs SET "+strings.Join(columns, " = ?, ")+" = ? WHERE id = ?", append(values, string(r.ID))...)
}

// PutResult implements store.Tx.
func (t *tx) PutResult(id agent.RunID, result []byte) error {
	return t.run(putResult, string(id), result)
}

// PutInput implements store.Tx.
func (t *tx) PutInput(id agent.RunID, input []byte) error { return t.run(putInput, string(id), input) }

// entriesAtOnce is the maximum number of entries in one statement: a step with one call adds at most so many in a commit.
const entriesAtOnce = 3

// insertEntries are the statements that add one entry to a run, two, and so on.
var insertEntries = func() (queries [entriesAtOnce]string) {
	query := `INSERT INTO entries (run, seq, kind, key, at, data) VALUES `
	for i := range queries {
		p := 5 * i
		query += fmt.Sprintf(`(`+numberOf+`, ?%d, ?%d, ?%d, ?%d, ?%d)`, p+2, p+3, p+4, p+5, p+6)
		queries[i] = query
		query += `, `
	}
	return queries
}()

const (
	// insertEvent stores event ?2. Without that number, the events are counted already, and ?3 of them follow.
	insertEvent   = `INSERT INTO events (run, seq, at, name, data) SELECT n, ifnull(?2, events - ?3), ?4, ?5, ?6 FROM runs WHERE id = ?1`
	insertSignal  = `INSERT INTO signals (run, seq, kind, text, who, at) VALUES (` + numberOf + `, ?2, ?3, ?4, ?5, ?6)`
	deleteWaits   = `DELETE FROM waits WHERE run = ` + numberOf + ` AND place >= ?2`
	updateChecker = `UPDATE waits SET checker = ?3, checked_until = ?4 WHERE run = ` + numberOf + ` AND id = ?2`
	putToken      = `INSERT OR REPLACE INTO tokens (token, run, wait, subject) VALUES (?2, ` + numberOf + `, ?3, ?4)`
	putWaiver     = `INSERT INTO waivers (id, at, who, expires, revoked, revoked_by, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
		ON CONFLICT (id) DO UPDATE SET revoked = ?5, revoked_by = ?6`
	insertDocument = `INSERT INTO documents (kind, name, version, newest, at, who, data) VALUES (?, ?, ?, 1, ?, ?, ?)`
	dropDocument   = `UPDATE documents SET newest = 0 WHERE kind = ?1 AND name = ?2 AND newest = 1`
	// updateOffered records an offer: the next pause is as long as the run has been ready, and at most an hour.
	updateOffered = `UPDATE runs SET offered = ?3 + min(max(?3 - ready, 0), 3600000000) WHERE id = ?1 AND offer_seq = ?2 AND status = 'ready'`
	updatePolled  = `UPDATE queues SET polled = ?2 WHERE key IN (SELECT unhex(value) FROM json_each(?1))`
	deleteRun     = `DELETE FROM runs WHERE id = ?`
	pruneRuns     = `DELETE FROM runs WHERE n IN
		(SELECT n FROM runs INDEXED BY runs_by_end WHERE status NOT IN ` + live + ` AND updated < ? ORDER BY updated LIMIT ?)`
	pruneQueues = `DELETE FROM queues WHERE NOT EXISTS (SELECT 1 FROM runs INDEXED BY runs_by_queue WHERE queue = queues.id)`
	putSetting  = `INSERT INTO settings (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2`
)

var (
	insertRecord = insertInto("audit", new(store.RecordRow).Columns())
	// insertWait stores a wait of the run with the ID ?1 at the place ?2.
	insertWait = func() string {
		columns, values := waitColumnsOf(&store.WaitRow{}), []string{numberOf, "?2"}
		for i := range columns {
			values = append(values, fmt.Sprintf("?%d", i+3))
		}
		return `INSERT OR REPLACE INTO waits (run, place, ` + store.Names("", columns) + `) VALUES (` + strings.Join(values, ", ") + `)`
	}()
)

// AddEntries implements store.Tx.
func (t *tx) AddEntries(id agent.RunID, entries []durable.Entry) error {
	for some := range slices.Chunk(entries, entriesAtOnce) {
		args := make([]any, 1, 1+5*entriesAtOnce)
		args[0] = string(id)
		for i := range some {
			e := &some[i]
			args = append(args, e.Seq, string(e.Kind), e.Key, micros{&e.At}, e.Data)
		}
		if err := t.run(insertEntries[len(some)-1], args...); err != nil {
			return err
		}
	}
	return nil
}

// AddEvents implements store.Tx.
func (t *tx) AddEvents(id agent.RunID, events []durable.Event) error {
	for _, e := range events {
		if err := t.run(insertEvent, string(id), e.Seq, nil, micros{&e.At}, e.Name, e.Data); err != nil {
			return err
		}
	}
	return nil
}

// AddSignal implements store.Tx.
func (t *tx) AddSignal(s durable.Signal) error {
	return t.run(insertSignal, string(s.Run), s.Seq, string(s.Kind), s.Text, s.By, micros{&s.At})
}

// PutWaits implements store.Tx.
func (t *tx) PutWaits(id agent.RunID, old, waits []store.Wait) error {
	for place, w := range waits {
		if place < len(old) && reflect.DeepEqual(old[place], w) {
			continue
		}
		if err := t.run(insertWait, append([]any{string(id), place}, fields(waitColumnsOf(store.NewWaitRow(w)))...)...); err != nil {
			return err
		}
	}
	if len(old) <= len(waits) {
		return nil
	}
	return t.run(deleteWaits, string(id), len(waits))
}

// PutChecker implements store.Tx.
func (t *tx) PutChecker(waits ...store.Wait) error {
	for _, w := range waits {
		if err := t.run(updateChecker, string(w.Run), w.ID, w.Checker, micros{&w.CheckedUntil}); err != nil {
			return err
		}
	}
	return nil
}

// PutToken implements store.Tx.
func (t *tx) PutToken(token [32]byte, w store.Token) error {
	return t.run(putToken, string(w.Run), token[:], w.Wait, w.Subject)
}

// AddAudit implements store.Tx.
func (t *tx) AddAudit(records ...durable.AuditRecord) error {
	for _, r := range records {
		if err := t.run(insertRecord, fields(store.NewRecordRow(r).Columns())...); err != nil {
			return err
		}
	}
	return nil
}

// PutWaiver implements store.Tx.
func (t *tx) PutWaiver(w durable.Waiver) error {
	return t.run(putWaiver, w.ID, micros{&w.Created}, w.By, micros{&w.Expires}, micros{&w.Revoked}, w.RevokedBy, w.Data)
}

// AddDocument implements store.Tx.
func (t *tx) AddDocument(d durable.Document) error {
	if err := t.DropDocument(d.Kind, d.Name); err != nil {
		return err
	}
	return t.run(insertDocument, d.Kind, d.Name, d.Version, micros{&d.At}, d.By, d.Data)
}

// DropDocument implements store.Tx.
func (t *tx) DropDocument(kind, name string) error { return t.run(dropDocument, kind, name) }

// PutOffers implements store.Tx.
func (t *tx) PutOffers(offers ...durable.OfferID) error {
	for _, o := range offers {
		if err := t.run(updateOffered, string(o.Run), o.Seq, t.micros()); err != nil {
			return err
		}
	}
	return nil
}

// PutPoll implements store.Tx.
func (t *tx) PutPoll(keys ...durable.Key) error {
	return t.run(updatePolled, listKeys(keys), t.micros())
}

// DeleteRun implements store.Tx.
func (t *tx) DeleteRun(id agent.RunID) error { return t.run(deleteRun, string(id)) }

// Prune implements store.Tx.
func (t *tx) Prune(before time.Time, limit int) (int, error) {
	n, err := t.exec(pruneRuns, before.UnixMicro(), limit)
	return int(n), err
}

// PruneQueues implements store.Tx.
func (t *tx) PruneQueues() error { return t.run(pruneQueues) }

// PutSetting implements store.Tx.
func (t *tx) PutSetting(name string, value []byte) error { return t.run(putSetting, name, value) }

// appendStep makes a plain Commit. It sets no column of an index, so that the commit of a step costs little.
const appendStep = `UPDATE runs SET entries = entries + ?5, events = events + ?6, handled = max(handled, ?7), updated = ?8, appended = ?9,
		steps = coalesce(?10, steps), reason = coalesce(?11, reason)
	WHERE id = ?1 AND owner = ?2 AND owner <> '' AND epoch = ?3 AND entries = coalesce(?4, entries) AND appended IS NOT ?9
		AND status = coalesce(?12, status) AND blocked = coalesce(?13, blocked)`

// Step implements store.DB. It refuses a Commit that changes the status.
func (d *db) Step(ctx context.Context, s store.Step) (done bool, err error) {
	l, c, u := s.Lease, s.Commit, s.Commit.Update
	err = d.enqueue(ctx, "writing to a journal", func(t *tx) error {
		args := []any{string(l.Run), l.Owner, l.Epoch, nil, len(c.Entries), len(c.Events), c.HandledSignals, t.micros(), s.Appended, nil, nil, nil, nil}
		if len(c.Entries) > 0 {
			args[3] = c.Entries[0].Seq - 1
		}
		if u.Status != "" {
			args[9], args[10], args[11], args[12] = u.Steps, string(u.Reason), string(u.Status), u.Blocked
		}
		n, err := t.exec(appendStep, args...)
		if done = n > 0; err != nil || !done {
			return err
		}
		if err := t.AddEntries(l.Run, c.Entries); err != nil {
			return err
		}
		for i, e := range c.Events {
			if err := t.run(insertEvent, string(l.Run), nil, len(c.Events)-1-i, micros{&e.At}, e.Name, e.Data); err != nil {
				return err
			}
		}
		return nil
	})
	return done && err == nil, err
}

var (
	// selectReadyQueues returns the queues with ready runs.
	selectReadyQueues = `SELECT q.id` + ofKeys + `WHERE EXISTS (SELECT 1 FROM runs INDEXED BY runs_ready WHERE queue = q.id AND status = 'ready')`
	selectReady       = `SELECT n, priority, ready FROM runs INDEXED BY runs_ready WHERE queue = ?1 AND status = 'ready'
		ORDER BY priority DESC, ready, n LIMIT ?2`
	updateClaimed = `UPDATE runs SET status = 'running', owner = ?2, epoch = epoch + 1, attempts = attempts + 1, leased = ?3, updated = ?3,
		expires = ?4, ready = NULL WHERE n = ?1 RETURNING ` + runColumns
)

// Claim implements store.DB. It writes only when it has seen a ready run, so that idle workers do not keep others from writing.
func (d *db) Claim(ctx context.Context, owner string, ttl time.Duration, limit int, keys []durable.Key) (runs []durable.Run, err error) {
	var queues []int64
	err = d.look(ctx, "looking for ready runs", func(v *view) (err error) {
		queues, err = scanAll(v, newSelection(selectReadyQueues, listKeys(keys)), func(n *int64) []any { return []any{n} })
		return err
	})
	if err != nil || len(queues) == 0 {
		return nil, err
	}
	err = d.enqueue(ctx, "claiming runs", func(t *tx) error {
		runs = nil
		ready, err := t.ready(queues, limit)
		for _, c := range ready {
			if err != nil {
				return err
			}
			var r store.Run
			r, _, err = scanOne(&t.view, newSelection(updateClaimed, c.n, owner, t.micros(), t.now.Add(ttl).UnixMicro()), scanRun)
			runs = append(runs, r.Run)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return runs, nil
}

// readyRun is a ready run that may be claimed.
type readyRun struct{ n, priority, since int64 }

// ready returns the best ready runs of queues, in the order in which they are to be claimed.
func (t *tx) ready(queues []int64, limit int) (best []readyRun, err error) {
	for _, queue := range queues {
		some, err := scanAll(&t.view, newSelection(selectReady, queue, limit), func(r *readyRun) []any { return []any{&r.n, &r.priority, &r.since} })
		if err != nil {
			return nil, err
		}
		best = append(best, some...)
	}
	if len(queues) > 1 {
		slices.SortFunc(best, func(a, b readyRun) int {
			return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.since, b.since), cmp.Compare(a.n, b.n))
		})
	}
	return best[:min(limit, len(best))], nil
}
