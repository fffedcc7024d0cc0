package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// view reads rows, with the readers or in a transaction of the writer.
type view struct {
	*statements

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

// query executes a query, prepared unless it is one of many.
func (v *view) query(s selection) (*sql.Rows, error) {
	if s.once {
		return v.conn.QueryContext(v.ctx, s.text, s.args...)
	}
	stmt, err := v.prepare(v.ctx, s.text) //nolint:sqlclosecheck // it stays open for the next query
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(v.ctx, s.args...)
}

// selection is a query with its arguments. Once says that it is one of many, so that it is not prepared.
type selection struct {
	text string
	args []any
	once bool
}

// scanAll returns the rows of a query, scanned into the fields of each.
func scanAll[T any](v *view, s selection, fields func(*T) []any) (all []T, err error) {
	defer func() { err = v.fail(err) }()
	rows, err := v.query(s)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err returns the error
	var row, empty T
	into := fields(&row)
	for rows.Next() {
		row = empty
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

// scanOne returns the row of a query, and whether there is one.
func scanOne[T any](v *view, s selection, fields func(*T) []any) (row T, found bool, err error) {
	all, err := scanAll(v, s, fields)
	if err != nil || len(all) == 0 {
		return row, false, err
	}
	return all[0], true, nil
}

// newSelection returns a prepared query.
func newSelection(text string, args ...any) selection { return selection{text: text, args: args} }

// Now implements store.Rows.
func (v *view) Now() time.Time { return v.now }

func (v *view) micros() int64 { return v.now.UnixMicro() }

var (
	selectRun   = `SELECT ` + runColumns + ` FROM runs WHERE id = ?`
	selectByKey = `SELECT ` + runColumns + ` FROM runs WHERE idempotency_key = ? AND idempotency_key <> ''`
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
		r, found, err := scanOne(v, newSelection(query, string(value)), scanRun)
		if err != nil {
			return nil, err
		}
		if found {
			all[value] = r
		}
	}
	return all, nil
}

const (
	// live are the statuses of runs that have not ended.
	live = `('pending', 'ready', 'running', 'waiting')`

	// selectDue selects the runs of each cause by a partial index.
	selectDue = `SELECT 0, id FROM (SELECT id FROM runs INDEXED BY runs_held WHERE owner <> '' AND (expires <= ?1 OR leased > ?2) LIMIT ?3)
		UNION ALL SELECT 1, id FROM (SELECT id FROM runs INDEXED BY runs_overdue
			WHERE status = 'waiting' AND owner = '' AND paused = 0 AND answer_by IS NOT NULL AND answer_by <= ?1 ORDER BY answer_by LIMIT ?3)
		UNION ALL SELECT 2, id FROM (SELECT id FROM runs INDEXED BY runs_due
			WHERE status = 'pending' AND not_before <= ?1 ORDER BY not_before LIMIT ?3)
		UNION ALL SELECT 3, id FROM (SELECT id FROM runs INDEXED BY runs_unstarted WHERE start_by IS NOT NULL AND start_by <= ?1
			AND attempts = 0 AND (owner = '' OR expires <= ?1 OR leased > ?2) AND status IN ` + live + ` ORDER BY start_by LIMIT ?3)
		UNION ALL SELECT 4, id FROM (SELECT id FROM runs INDEXED BY runs_late
			WHERE deadline IS NOT NULL AND deadline <= ?1 AND cancel_cause = '' AND status IN ` + live + ` ORDER BY deadline LIMIT ?3)`
)

// Due implements store.Rows.
func (v *view) Due(limit int) (map[store.Cause][]agent.RunID, error) {
	type due struct {
		store.Cause
		agent.RunID
	}
	found, err := scanAll(v, newSelection(selectDue, v.micros(), v.now.Add(store.Skew).UnixMicro(), limit), func(d *due) []any {
		return []any{&d.Cause, &d.RunID}
	})
	all := map[store.Cause][]agent.RunID{}
	for _, d := range found {
		all[d.Cause] = append(all[d.Cause], d.RunID)
	}
	return all, err
}

const (
	selectQueues = `SELECT kind, name, demands FROM queues`
	// ofKeys are the queues q with the given keys in hexadecimal.
	ofKeys       = ` FROM json_each(?1) k CROSS JOIN queues q ON q.key = unhex(k.value) `
	selectPolled = `SELECT q.key, q.polled` + ofKeys
	selectServed = `SELECT q.key, q.polled, count(r.n), min(r.ready)` + ofKeys + `
		LEFT JOIN runs r INDEXED BY runs_ready ON r.queue = q.id AND r.status = 'ready' GROUP BY k.key`
)

// Queues implements store.Rows.
func (v *view) Queues() ([]durable.Needs, error) {
	return scanAll(v, newSelection(selectQueues), func(n *durable.Needs) []any { return []any{&n.Kind, &n.Name, asJSON{&n.Demands}} })
}

// served is how a queue is served.
type served struct {
	key durable.Key
	durable.Service
}

// Services implements store.Rows.
func (v *view) Services(keys ...durable.Key) (map[durable.Key]durable.Service, error) {
	all, err := scanAll(v, newSelection(selectServed, listKeys(keys)), func(s *served) []any {
		return []any{key{&s.key}, micros{&s.LastPoll}, &s.Backlog, micros{&s.Oldest}}
	})
	return lo.SliceToMap(all, func(s served) (durable.Key, durable.Service) { return s.key, s.Service }), err
}

// LastPolls implements store.Rows.
func (v *view) LastPolls(keys ...durable.Key) (map[durable.Key]time.Time, error) {
	all, err := scanAll(v, newSelection(selectPolled, listKeys(keys)), func(s *served) []any { return []any{key{&s.key}, micros{&s.LastPoll}} })
	return lo.SliceToMap(all, func(s served) (durable.Key, time.Time) { return s.key, s.LastPoll }), err
}

const (
	// selectOwed returns offers that are not recorded, those recorded long enough ago, and those that must not be made
	// again before ?2, by a clock that was set back since. Each list is as long as the limit at most. The column offered is
	// when an offer may be made again, as updateOffered computes it; offeredAt restores when it was made.
	selectOwed = `SELECT r.id, r.offer_seq, q.key, r.priority FROM (
			SELECT n AS owed, since FROM (
				SELECT n, since FROM (SELECT n, ready AS since FROM runs INDEXED BY runs_owed
					WHERE status = 'ready' AND offered IS NULL ORDER BY ready LIMIT ?3)
				UNION ALL
				SELECT n, since FROM (SELECT n, ready AS since FROM runs INDEXED BY runs_owed
					WHERE status = 'ready' AND offered < ?1 AND ` + offeredAt + ` < ?4 ORDER BY offered, ready LIMIT ?3)
				UNION ALL
				SELECT n, since FROM (SELECT n, ready AS since FROM runs INDEXED BY runs_owed
					WHERE status = 'ready' AND offered > ?2 ORDER BY offered, ready LIMIT ?3)
			) ORDER BY since, n LIMIT ?3
		) CROSS JOIN runs r ON r.n = owed JOIN queues q ON q.id = r.queue ORDER BY since, owed`
	offeredAt = `max(offered - 3600000000, ready + (offered - ready) / 2)`
)

// Owed implements store.Rows.
func (v *view) Owed(retry time.Duration, limit int) ([]durable.Offer, error) {
	// No pause between two offers is longer than an hour.
	latest := v.now.Add(time.Hour + store.Skew).UnixMicro()
	return scanAll(v, newSelection(selectOwed, v.micros(), latest, limit, v.now.Add(-retry).UnixMicro()), func(o *durable.Offer) []any {
		return []any{&o.Run, &o.Seq, key{&o.Key}, &o.Priority}
	})
}

const (
	numberOf      = `(SELECT n FROM runs WHERE id = ?1)`
	selectPayload = `SELECT input, iif(replaced, submitted, NULL), replaced, result FROM payloads WHERE run = ` + numberOf
	selectEntries = `SELECT seq, kind, key, at, data FROM entries WHERE run = ` + numberOf + ` AND seq > ?2 ORDER BY seq`
	selectEvents  = `SELECT ?1, seq, at, name, data FROM events WHERE run = ` + numberOf + ` AND seq > ?2 ORDER BY seq LIMIT ?3`
	selectSignals = `SELECT r.id, r.cancel_reason, r.cancel_cause, r.paused,
			ifnull(s.seq, 0), ifnull(s.kind, ''), ifnull(s.text, ''), ifnull(s.who, ''), s.at
		FROM runs r INDEXED BY runs_held LEFT JOIN signals s ON s.run = r.n AND s.seq > r.handled
		WHERE r.owner = ?1 AND r.owner <> '' AND (r.cancel_cause <> '' OR r.paused <> 0 OR r.signals > r.handled)
		ORDER BY r.n, s.seq`
	selectToken   = `SELECT r.id, t.wait, t.subject FROM tokens t JOIN runs r ON r.n = t.run WHERE t.token = ?` //nolint:gosec // no credential
	selectSetting = `SELECT value FROM settings WHERE name = ?`
	selectWaivers = `SELECT id, at, who, expires, revoked, revoked_by, data FROM waivers`

	documentColumns = `kind, name, version, at, who, data, ifnull((SELECT version FROM documents x INDEXED BY documents_newest
		WHERE x.kind = d.kind AND x.name = d.name AND x.newest = 1), 0)`
	selectDocument  = `SELECT ` + documentColumns + ` FROM documents d WHERE kind = ?1 AND name = ?2 AND version = ?3`
	selectLast      = `SELECT ` + documentColumns + ` FROM documents d WHERE kind = ?1 AND name = ?2 ORDER BY version DESC LIMIT 1`
	selectDocuments = `SELECT ` + documentColumns + ` FROM documents d INDEXED BY documents_newest WHERE kind = ?1 AND name > ?2 AND newest = 1
		ORDER BY name LIMIT ?3`
)

var selectWaits = `SELECT ` + waitColumns + ` FROM runs r JOIN waits w ON w.run = r.n WHERE r.id = ? ORDER BY w.place`

// Payload implements store.Rows.
func (v *view) Payload(id agent.RunID) (store.Payload, error) {
	type row struct {
		store.Payload

		replaced bool
	}
	r, _, err := scanOne(v, newSelection(selectPayload, string(id)), func(r *row) []any { return []any{&r.Input, &r.Submitted, &r.replaced, &r.Result} })
	if !r.replaced {
		r.Submitted = r.Input
	}
	return r.Payload, err
}

// Entries implements store.Rows.
func (v *view) Entries(id agent.RunID, after int64) ([]durable.Entry, error) {
	return scanAll(v, newSelection(selectEntries, string(id), after), func(e *durable.Entry) []any {
		return []any{&e.Seq, &e.Kind, &e.Key, micros{&e.At}, &e.Data}
	})
}

// Events implements store.Rows.
func (v *view) Events(id agent.RunID, after int64, limit int) ([]durable.Event, error) {
	return scanAll(v, newSelection(selectEvents, string(id), after, limit), func(e *durable.Event) []any {
		return []any{&e.Run, &e.Seq, micros{&e.At}, &e.Name, &e.Data}
	})
}

// Signals implements store.Rows.
func (v *view) Signals(owner string) (all []store.Signalled, err error) {
	type row struct {
		store.Signalled

		s durable.Signal
	}
	rows, err := scanAll(v, newSelection(selectSignals, owner), func(r *row) []any {
		return []any{&r.Run, &r.CancelReason, &r.CancelCause, &r.Paused, &r.s.Seq, &r.s.Kind, &r.s.Text, &r.s.By, micros{&r.s.At}}
	})
	for _, r := range rows {
		all = store.AddSignalled(all, r.Signalled, r.s)
	}
	return all, err
}

// Waits implements store.Rows.
func (v *view) Waits(id agent.RunID) ([]store.Wait, error) {
	return v.readWaits(newSelection(selectWaits, string(id)))
}

// OpenWaits implements store.Rows.
func (v *view) OpenWaits(f durable.WaitFilter) ([]durable.Wait, error) {
	waits, err := v.readWaits(selectOpen(f, v.micros()))
	return lo.Map(waits, func(w store.Wait, _ int) durable.Wait { return w.Wait }), err
}

// Checks implements store.Rows.
func (v *view) Checks(owner string, kinds []durable.WaitKind, hosts []string, limit int) ([]store.Wait, error) {
	c := checks{owner, kinds, hosts, limit}
	all, err := v.readWaits(c.selectOwn())
	if err != nil || len(all) >= limit {
		return all, err
	}
	free, err := v.readWaits(c.selectFree(v.micros()))
	return append(all, free[:min(len(free), limit-len(all))]...), err
}

// Token implements store.Rows.
func (v *view) Token(token [32]byte) (store.Token, bool, error) {
	return scanOne(v, newSelection(selectToken, token[:]), func(t *store.Token) []any { return []any{&t.Run, &t.Wait, &t.Subject} })
}

// Audit implements store.Rows.
func (v *view) Audit(f durable.AuditFilter) ([]durable.AuditRecord, error) {
	rows, err := scanAll(v, selectRecords(f), func(r *store.RecordRow) []any { return append([]any{&r.Seq}, fields(r.Columns())...) })
	return lo.Map(rows, func(r store.RecordRow, _ int) durable.AuditRecord { return r.Read() }), err
}

// Waivers implements store.Rows.
func (v *view) Waivers() ([]durable.Waiver, error) {
	return scanAll(v, newSelection(selectWaivers), func(w *durable.Waiver) []any {
		return []any{&w.ID, micros{&w.Created}, &w.By, micros{&w.Expires}, micros{&w.Revoked}, &w.RevokedBy, &w.Data}
	})
}

// Document implements store.Rows.
func (v *view) Document(kind, name string, version int64) (store.Version, bool, error) {
	s := newSelection(selectLast, kind, name)
	if version != 0 {
		s = newSelection(selectDocument, kind, name, version)
	}
	return scanOne(v, s, documentFields)
}

// Documents implements store.Rows.
func (v *view) Documents(kind, after string, limit int) ([]durable.Document, error) {
	all, err := scanAll(v, newSelection(selectDocuments, kind, after, limit), documentFields)
	return lo.Map(all, func(d store.Version, _ int) durable.Document { return d.Document }), err
}

// Setting implements store.Rows.
func (v *view) Setting(name string) ([]byte, error) {
	value, _, err := scanOne(v, newSelection(selectSetting, name), func(value *[]byte) []any { return []any{value} })
	return value, err
}
