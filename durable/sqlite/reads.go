package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// runs is the table of runs.
var runs = store.NewRunTable(true)

var queries = &store.Queries{
	Keys: listKeys, Polled: selectPolled, Served: selectServed, PutPoll: updatePolled, PruneQueues: pruneQueues, Prune: pruneRuns, Due: selectDue,
	List: selectList, Count: selectCount, Shards: 1,
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

// Select implements store.SQL.
func (v *view) Select(query string, args, targets []any, next func()) error {
	return v.fail(v.with(v.ctx, query, func(stmt *sql.Stmt) error {
		rows, err := stmt.QueryContext(v.ctx, toFields(args)...)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }() // Err returns the error
		targets := toFields(targets)
		for rows.Next() {
			if err := rows.Scan(targets...); err != nil {
				return err
			}
			next()
		}
		return rows.Err()
	}))
}

// Exec implements store.SQL.
func (v *view) Exec(query string, args ...any) error {
	_, err := v.execCount(query, args...)
	return err
}

// Insert implements store.SQL.
func (v *view) Insert(into *store.Insertion, values ...any) error {
	return v.Exec(into.StatementInOrder(), values...)
}

// HasQueue implements store.SQL. An insertion that finds the queue would write, too.
func (v *view) HasQueue(key durable.Key) (bool, error) {
	_, found, err := store.SelectOne(v, func(id *int64) []any { return []any{id} }, `SELECT id FROM queues WHERE key = ?`, key[:])
	return found, err
}

// execCount executes a statement and returns the number of changed rows.
func (v *view) execCount(query string, args ...any) (n int64, err error) {
	err = v.with(v.ctx, query, func(stmt *sql.Stmt) error {
		result, err := stmt.ExecContext(v.ctx, toFields(args)...)
		if err == nil {
			n, err = result.RowsAffected()
		}
		return err
	})
	if isTaken(err) {
		return 0, durable.ErrExists
	}
	return n, v.fail(err)
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
	query, args := selectOpen(f, v.now)
	return store.SelectWaits(v, query, args...)
}

// Checks implements store.Rows.
func (v *view) Checks(owner string, kinds []durable.WaitKind, hosts []string, limit int) ([]store.Wait, error) {
	c := checks{owner, kinds, hosts, limit}
	query, args := c.selectOwn()
	all, err := store.SelectWaits(v, query, args...)
	if err != nil || len(all) >= limit {
		return all, err
	}
	query, args = c.selectFree(v.now)
	free, err := store.SelectWaits(v, query, args...)
	return append(all, free[:min(len(free), limit-len(all))]...), err
}

// Audit implements store.Rows.
func (v *view) Audit(f durable.AuditFilter) ([]durable.AuditRecord, error) {
	query, args := selectRecords(f)
	return store.SelectRecords(v, query, args...)
}
