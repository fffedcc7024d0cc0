package sqlite

import (
	"context"
	"database/sql"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// runs is the table of runs.
var runs = store.NewRunTable(true)

var queries = &store.Queries{
	Keys: listKeys, Polled: selectPolled, Served: selectServed, PutPoll: updatePolled, PruneQueues: pruneQueues, Prune: pruneRuns, Due: selectDue,
}

// view reads rows, with the readers or in a transaction of the writer.
type view struct {
	*statements
	store.Tables

	ctx    context.Context //nolint:containedctx // a view lasts as long as one call
	now    time.Time
	failed error // the first error of the database
}

// fail records an error of the database.
func (v *view) fail(err error) error {
	if err != nil && v.failed == nil {
		v.failed = err
	}
	return err
}

// Select implements store.SQL. It prepares the query.
func (v *view) Select(query string, args, targets []any, next func()) error {
	stmt, err := v.prepare(v.ctx, query) //nolint:sqlclosecheck // it stays open for the next query
	if err != nil {
		return v.fail(err)
	}
	rows, err := stmt.QueryContext(v.ctx, toFields(args)...)
	return v.fail(scanRows(rows, err, targets, next))
}

// Exec implements store.SQL.
func (v *view) Exec(query string, args ...any) error {
	_, err := v.execCount(query, args...)
	return err
}

// insertions are the texts of each *store.Insertion.
var insertions sync.Map

// Insert implements store.SQL.
func (v *view) Insert(into *store.Insertion, values ...any) error {
	query, known := insertions.Load(into)
	if !known {
		query, _ = insertions.LoadOrStore(into, into.Statement(func(int) string { return "?" }))
	}
	text, _ := query.(string)
	return v.Exec(text, values...)
}

// HasQueue implements store.SQL. An insertion that finds the queue would write, too.
func (v *view) HasQueue(key durable.Key) (bool, error) {
	_, found, err := store.SelectOne(v, func(id *int64) []any { return []any{id} }, `SELECT id FROM queues WHERE key = ?`, key[:])
	return found, err
}

// execCount executes a statement and returns the number of changed rows.
func (v *view) execCount(query string, args ...any) (int64, error) {
	stmt, err := v.prepare(v.ctx, query) //nolint:sqlclosecheck // it stays open for the next transaction
	if err != nil {
		return 0, v.fail(err)
	}
	result, err := stmt.ExecContext(v.ctx, toFields(args)...)
	if isTaken(err) {
		return 0, durable.ErrExists
	}
	if err != nil {
		return 0, v.fail(err)
	}
	n, err := result.RowsAffected()
	return n, v.fail(err)
}

// lister is a view whose queries are composed: not all of them stay prepared.
type lister struct{ *view }

// Select implements store.SQL.
func (l lister) Select(query string, args, targets []any, next func()) error {
	stmt, err := l.prepareList(l.ctx, query) //nolint:sqlclosecheck // it stays open for the next query
	if err != nil {
		return l.fail(err)
	}
	var rows *sql.Rows
	if stmt != nil {
		rows, err = stmt.QueryContext(l.ctx, toFields(args)...)
	} else {
		rows, err = l.conn.QueryContext(l.ctx, query, toFields(args)...)
	}
	return l.fail(scanRows(rows, err, targets, next))
}

// scanRows scans the rows of a query.
func scanRows(rows *sql.Rows, err error, targets []any, next func()) error {
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // Err returns the error
	targets = toFields(targets)
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		next()
	}
	return rows.Err()
}

// Now implements store.Rows.
func (v *view) Now() time.Time { return v.now }

func (v *view) micros() int64 { return v.now.UnixMicro() }

var (
	selectRun   = `SELECT ` + runs.Columns + ` FROM runs r WHERE r.id = ?`
	selectByKey = `SELECT ` + runs.Columns + ` FROM runs r WHERE r.idempotency_key = ? AND r.idempotency_key <> ''`
)

// Runs implements store.Rows.
func (v *view) Runs(ids ...agent.RunID) (map[agent.RunID]store.Run, error) {
	return readEach(v, selectRun, ids)
}

// RunsByKey implements store.Rows.
func (v *view) RunsByKey(keys ...string) (map[string]store.Run, error) {
	return readEach(v, selectByKey, keys)
}

// readEach returns the run that a query finds for each value.
func readEach[K ~string](v *view, query string, values []K) (map[K]store.Run, error) {
	all := map[K]store.Run{}
	for _, value := range values {
		r, found, err := store.SelectOne(v, runs.Targets, query, string(value))
		if err != nil {
			return nil, err
		}
		if found {
			all[value] = r
		}
	}
	return all, nil
}

// selectDue counts a lease as expired, too, if it was granted more than store.Skew in the future.
var selectDue = store.DueQuery(`SELECT id FROM runs INDEXED BY runs_held WHERE owner <> '' AND (expires <= $1 OR leased > $1 + 5000000) LIMIT $2`,
	func(index string) string { return `INDEXED BY ` + index })

const (
	// ofKeys are the queues q with the given keys in hexadecimal.
	ofKeys       = ` FROM json_each(?1) k CROSS JOIN queues q ON q.key = unhex(k.value) `
	selectPolled = `SELECT q.key, q.polled` + ofKeys
	selectServed = `SELECT q.key, q.polled, count(r.num), min(r.ready)` + ofKeys + `
		LEFT JOIN runs r INDEXED BY runs_ready ON r.queue = q.id AND r.status = 'ready' GROUP BY k.key`

	// selectOwed returns offers that are not recorded, those recorded long enough ago, and those that must not be made
	// again before ?2, by a clock that was set back since. Each list is as long as the limit at most. The column offered is
	// when an offer may be made again, as updateOffered computes it; offeredAt restores when it was made.
	selectOwed = `SELECT r.id, r.offer_seq, q.key, r.priority FROM (
			SELECT num AS owed, since FROM (
				SELECT num, since FROM (SELECT num, ready AS since FROM runs INDEXED BY runs_owed
					WHERE status = 'ready' AND offered IS NULL ORDER BY ready LIMIT ?3)
				UNION ALL
				SELECT num, since FROM (SELECT num, ready AS since FROM runs INDEXED BY runs_owed
					WHERE status = 'ready' AND offered < ?1 AND ` + offeredAt + ` < ?4 ORDER BY offered, ready LIMIT ?3)
				UNION ALL
				SELECT num, since FROM (SELECT num, ready AS since FROM runs INDEXED BY runs_owed
					WHERE status = 'ready' AND offered > ?2 ORDER BY offered, ready LIMIT ?3)
			) ORDER BY since, num LIMIT ?3
		) CROSS JOIN runs r ON r.num = owed JOIN queues q ON q.id = r.queue ORDER BY since, owed`
	offeredAt = `max(offered - 3600000000, ready + (offered - ready) / 2)`
)

// Owed implements store.Rows. No pause between two offers is longer than an hour.
func (v *view) Owed(retry time.Duration, limit int) ([]durable.Offer, error) {
	latest := v.now.Add(time.Hour + store.Skew).UnixMicro()
	return store.SelectOffers(v, selectOwed, v.micros(), latest, limit, v.now.Add(-retry).UnixMicro())
}

// OpenWaits implements store.Rows.
func (v *view) OpenWaits(f durable.WaitFilter) ([]store.Wait, error) {
	query, args := selectOpen(f, v.micros())
	return store.SelectWaits(lister{v}, query, args...)
}

// Checks implements store.Rows.
func (v *view) Checks(owner string, kinds []durable.WaitKind, hosts []string, limit int) ([]store.Wait, error) {
	c := checks{owner, kinds, hosts, limit}
	query, args := c.selectOwn()
	all, err := store.SelectWaits(lister{v}, query, args...)
	if err != nil || len(all) >= limit {
		return all, err
	}
	query, args = c.selectFree(v.micros())
	free, err := store.SelectWaits(lister{v}, query, args...)
	return append(all, free[:min(len(free), limit-len(all))]...), err
}

// Audit implements store.Rows.
func (v *view) Audit(f durable.AuditFilter) ([]durable.AuditRecord, error) {
	query, args := selectRecords(f)
	return store.SelectRecords(lister{v}, query, args...)
}
