package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// tx reads, locks and writes rows. Writes are sent with the next read, or with the end of the transaction. It begins a transaction
// in the database only for a lock, or to read what it has written: other writes are one message, and other reads need no transaction.
type tx struct {
	*db
	store.Tables

	ctx    context.Context //nolint:containedctx // a transaction is one call
	writes bool            // it is a call of Write
	conn   *pgxpool.Conn
	begun  bool
	err    error // of the database
	now    time.Time

	// The writes that were not sent, in the order in which they are.
	batch  []*write
	put    []store.Run
	notify bool

	stored  []durable.Key                // queues that were sent
	waits   map[agent.RunID][]store.Wait // of locked runs, until they are read
	awaited map[agent.RunID]bool         // whether runs wait for the end of a locked run

	// Most idempotency keys are new. The first attempt presumes that of all, and looks for none.
	presumes, presumed bool
}

// Read implements store.DB.
func (d *db) Read(ctx context.Context, doing string, f func(store.Rows) error) error {
	return d.attempt(ctx, doing, false, func(t *tx) error { return f(t) })
}

// Write implements store.DB.
func (d *db) Write(ctx context.Context, doing string, f func(store.Tx) error) error {
	return d.attempt(ctx, doing, true, func(t *tx) error { return f(t) })
}

// attempt calls f until the database accepts what it does. An error of f itself is returned unchanged.
func (d *db) attempt(ctx context.Context, doing string, writes bool, f func(*tx) error) (refused error) {
	presumes := true
	err := d.call(ctx, doing, func(ctx context.Context) error {
		for {
			t := &tx{db: d, ctx: ctx, writes: writes, presumes: presumes, waits: map[agent.RunID][]store.Wait{}, awaited: map[agent.RunID]bool{}}
			t.Tables = store.Tables{SQL: t, Table: runs, Queries: queries}
			refused = t.run(f)
			isTaken := violates(t.err, "runs_idempotency_key", "documents_newest", "documents_pkey") // by another process, meanwhile
			if t.presumed && (refused != nil || isTaken) || isTaken && ctx.Err() == nil {
				presumes = false
				continue
			}
			d.queues.record(t.stored, cmp.Or(t.err, refused))
			return t.err
		}
	})
	switch {
	case err != nil:
		return err
	case errors.Is(refused, errTaken):
		return fmt.Errorf("%s: %w", doing, durable.ErrExists)
	}
	return refused
}

// errTaken is returned when an ID is taken.
var errTaken = errors.New("the ID is taken")

// run calls f and ends the transaction. It returns an error of f itself.
func (t *tx) run(f func(*tx) error) (refused error) {
	defer t.release()
	refused = f(t)
	if refused == nil {
		_ = t.send(true)
	}
	switch {
	case violates(t.err, "runs_id_key"):
		t.err = nil
		return errTaken
	case t.err != nil:
		return nil
	}
	return refused
}

// violates reports whether one of some constraints has rejected a write.
func violates(err error, constraints ...string) bool {
	said, ok := errors.AsType[*pgconn.PgError](err)
	return ok && slices.Contains(constraints, said.ConstraintName)
}

// release undoes a transaction that has not ended, and gives the connection back.
func (t *tx) release() {
	if t.conn == nil {
		return
	}
	if t.begun && t.ctx.Err() == nil {
		_, _ = t.conn.Exec(t.ctx, `rollback`)
	}
	t.conn.Release()
}

// Exec implements store.SQL. It adds a statement to those that are not sent.
func (t *tx) Exec(sql string, args ...any) error {
	t.batch = append(t.batch, &write{sql: sql, rows: [][]any{arguments(args)}})
	return t.err
}

// write is a statement that is not sent, with its arguments, or an insertion of rows.
type write struct {
	sql  string
	into *store.Insertion
	rows [][]any
}

// Insert implements store.SQL. Insertions that follow each other are one statement for each table. None comes before an insertion of
// rows that it looks up.
func (t *tx) Insert(into *store.Insertion, values ...any) error {
	for _, w := range slices.Backward(t.batch) {
		if w.into == into {
			w.rows = append(w.rows, arguments(values))
			return t.err
		}
		if w.into == nil || strings.Contains(into.Lookup, " "+w.into.Table+" ") {
			break
		}
	}
	t.batch = append(t.batch, &write{into: into, rows: [][]any{arguments(values)}})
	return t.err
}

// send sends the writes that are not sent, and then reads. With last, it ends the transaction.
func (t *tx) send(last bool, reads ...*pgx.QueuedQuery) error {
	if t.err != nil {
		return t.err
	}
	var b pgx.Batch
	if !last && t.conn == nil {
		if t.conn, t.err = t.pool.Acquire(t.ctx); t.err != nil {
			return t.err
		}
		b.Queue(`begin`)
	}
	t.queueWrites(&b, last)
	b.QueuedQueries = append(b.QueuedQueries, reads...)
	if last && t.begun {
		b.Queue(`commit`)
	}
	switch {
	case b.Len() == 0:
	case t.conn == nil:
		t.err = t.pool.SendBatch(t.ctx, &b).Close()
	default:
		t.begun = true
		t.err = t.conn.SendBatch(t.ctx, &b).Close()
	}
	t.begun = t.begun && (t.err != nil || !last)
	return t.err
}

// queueWrites queues the writes that are not sent.
func (t *tx) queueWrites(b *pgx.Batch, last bool) {
	for _, w := range t.batch {
		sql, args := w.sql, w.rows[0]
		if w.into != nil {
			sql, args = insertStatement(w.into, w.rows)
		}
		b.Queue(sql, args...)
	}
	for _, r := range t.put {
		b.Queue(updateRun, append([]any{storedText(r.ID)}, arguments(store.Values(runs.StateColumns(&r)))...)...)
	}
	if last && t.notify {
		b.Queue(`SELECT pg_notify(current_schema(), '')`)
	}
	t.batch, t.put = nil, nil
}

// query returns a query whose rows are added to all.
func query[T any](all *[]T, fields func(*T) []any, sql string, args ...any) *pgx.QueuedQuery {
	into, next := store.Collect(all, fields)
	return newQuery(sql, args, into, next)
}

func newQuery(sql string, args, into []any, next func()) *pgx.QueuedQuery {
	q := &pgx.QueuedQuery{SQL: sql, Arguments: arguments(args)}
	q.Query(func(rows pgx.Rows) error { return scan(rows, into, next) })
	return q
}

// scan scans the rows of a query.
func scan(rows pgx.Rows, into []any, next func()) error {
	_, err := pgx.ForEachRow(rows, scanTargets(into), func() error {
		next()
		return nil
	})
	return err
}

// Select implements store.SQL. A query before all writes and locks needs no transaction.
func (t *tx) Select(sql string, args, into []any, next func()) error {
	if t.err != nil || t.conn != nil || len(t.batch)+len(t.put) > 0 {
		return t.send(false, newQuery(sql, args, into, next))
	}
	rows, err := t.pool.Query(t.ctx, sql, arguments(args)...)
	if err == nil {
		err = scan(rows, into, next)
	}
	t.err = err
	return err
}

const clockQuery = `SELECT clock_timestamp()`

func timeField(at *time.Time) []any { return []any{at} }

// Now implements store.Rows: the time of the newest lock. Without a lock, an estimate will do.
func (t *tx) Now() time.Time {
	known := !t.now.IsZero()
	if !known {
		t.now, known = t.clock.estimate()
	}
	if !known {
		if t.now, _, _ = store.SelectOne(t, timeField, clockQuery); t.err == nil {
			t.clock.set(t.now)
		}
	}
	return t.now
}

// awaitedQuery returns the time, and with it each of some runs for whose end another run waits.
const awaitedQuery = `SELECT clock_timestamp(), coalesce(w.child, '') FROM (VALUES (0)) one LEFT JOIN waits w ON w.child = ANY ($1) AND ` + openChild

// lockWhere locks the runs r of a condition on IDs, and then reads the time, the waits of these runs, and which of the IDs are
// awaited. Others is what it does about runs that other transactions have locked; empty means that it waits.
func (t *tx) lockWhere(where string, ids []string, others string) (locked []store.Run, awaited map[agent.RunID]bool, err error) {
	var now time.Time
	var waits []store.WaitRow
	var child agent.RunID
	awaited = map[agent.RunID]bool{}
	err = t.send(false,
		query(&locked, runs.Targets, `SELECT `+runs.Columns+` FROM runs r WHERE `+where+` ORDER BY r.id FOR NO KEY UPDATE OF r `+others, ids),
		newQuery(awaitedQuery, []any{ids}, []any{&now, (*string)(&child)}, func() { awaited[child] = true }),
		query(&waits, store.WaitTargets,
			`SELECT `+store.WaitColumns+` FROM waits w WHERE w.run IN (SELECT r.num FROM runs r WHERE `+where+`) ORDER BY w.place`, ids),
	)
	if err != nil {
		return nil, nil, err
	}
	t.now = now
	t.clock.set(t.now)
	for _, r := range locked {
		t.waits[r.ID] = nil
	}
	for _, w := range waits {
		if of, found := t.waits[w.Run]; found {
			t.waits[w.Run] = append(of, w.Read())
		}
	}
	return locked, awaited, nil
}

const openChild = `w.child <> '' AND w.answered IS NULL`

// Lock implements store.Tx. It also looks for runs that wait for these: others begin to wait only after the lock.
func (t *tx) Lock(ids ...agent.RunID) (map[agent.RunID]store.Run, error) { return t.lockRuns("", ids) }

// LockFree implements store.Tx.
func (t *tx) LockFree(ids ...agent.RunID) (map[agent.RunID]store.Run, error) {
	return t.lockRuns("SKIP LOCKED", ids)
}

func (t *tx) lockRuns(others string, ids []agent.RunID) (map[agent.RunID]store.Run, error) {
	all, awaited, err := t.lockWhere(`r.id = ANY ($1)`, storedTexts(ids), others)
	for _, r := range all {
		t.awaited[r.ID] = awaited[r.ID]
	}
	return byID(all), err
}

// LockWaiters implements store.Tx.
func (t *tx) LockWaiters(child agent.RunID) ([]store.Run, error) {
	if awaited, locked := t.awaited[child]; locked && !awaited {
		return nil, t.err
	}
	all, _, err := t.lockWhere(`r.num IN (SELECT w.run FROM waits w WHERE w.child = ANY ($1) AND `+openChild+`)`, storedTexts([]agent.RunID{child}), "")
	for _, r := range all {
		if len(t.waits[r.ID]) == 0 { // it waits for something else now, which the condition has not found
			delete(t.waits, r.ID)
		}
	}
	return all, err
}

// Waits implements store.Rows.
func (t *tx) Waits(id agent.RunID) ([]store.Wait, error) {
	if waits, read := t.waits[id]; read && t.err == nil {
		delete(t.waits, id)
		return waits, nil
	}
	return t.Tables.Waits(id)
}

// Notify implements store.Tx.
func (t *tx) Notify() { t.notify = true }
