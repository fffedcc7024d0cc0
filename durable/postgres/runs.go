package postgres

import (
	"fmt"
	"slices"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// runs is the table of runs.
var runs = store.NewRunTable(false)

func byID(all []store.Run) map[agent.RunID]store.Run {
	return lo.KeyBy(all, func(r store.Run) agent.RunID { return r.ID })
}

// Runs implements store.Rows.
func (t *tx) Runs(ids ...agent.RunID) (map[agent.RunID]store.Run, error) {
	all, err := store.SelectAll(t, runs.Targets, `SELECT `+runs.Columns+` FROM runs r WHERE r.id = ANY ($1)`, storedTexts(ids))
	return byID(all), err
}

// RunsByKey implements store.Rows.
func (t *tx) RunsByKey(keys ...string) (map[string]store.Run, error) {
	if t.presumes {
		t.presumed = true
		return map[string]store.Run{}, nil
	}
	all, err := store.SelectAll(t, runs.Targets,
		`SELECT `+runs.Columns+` FROM runs r WHERE r.idempotency_key = ANY ($1) AND r.idempotency_key <> ''`, storedTexts(keys))
	return lo.KeyBy(all, func(r store.Run) string { return r.IdempotencyKey }), err
}

// AddNewDocument implements store.Tx. Like keys, the first attempt presumes the name to be new.
func (t *tx) AddNewDocument(d durable.Document) error {
	if t.presumes {
		t.presumed = true
		return t.Tables.AddNewDocument(d)
	}
	version, err := t.AddDocument(d)
	if err == nil && version != 1 {
		err = durable.ErrExists
	}
	return err
}

// PutRun implements store.Tx. It keeps the newest state of a run until the writes are sent.
func (t *tx) PutRun(old, r store.Run) error {
	if err := t.PutPhase(old, r); err != nil {
		return err
	}
	t.put = append(slices.DeleteFunc(t.put, func(other store.Run) bool { return other.ID == r.ID }), r)
	return t.err
}

// updateRun stores what can change of a run. Equal values in indexed columns change no index.
var updateRun = `UPDATE runs SET ` + store.Assign(runs.StateColumns(&store.Run{}), 2) + ` WHERE id = $1`

// pruneQuery leaves out runs that others have locked. The list is materialized: a plan that makes it again for each run would skip some.
const pruneQuery = `WITH old AS MATERIALIZED (
		SELECT num FROM runs WHERE ended < $1 ORDER BY ended, num LIMIT $2 FOR UPDATE SKIP LOCKED
	) DELETE FROM runs r USING old WHERE r.num = old.num RETURNING r.num`

// Due implements store.Rows. It asks for the time: an estimate may be before the times that the database has just set.
func (t *tx) Due(_ time.Time, limit int) (map[store.Cause][]agent.RunID, error) {
	now, _, err := store.SelectOne(t, timeField, clockQuery)
	if err != nil {
		return nil, err
	}
	return t.Tables.Due(now, limit)
}

var dueQuery = store.DueQuery(`SELECT r.id FROM runs r WHERE r.expires <= $1 AND r.expires IS NOT NULL ORDER BY r.expires LIMIT $2`,
	func(string) string { return "" })

// lockName makes transactions that change the same thing wait for each other. The statements that follow see what it waited for.
func (t *tx) lockName(name string) error {
	if !t.writes {
		return nil
	}
	return t.send(false, newQuery(`SELECT FROM pg_advisory_xact_lock(hashtextextended('grapnel/' || current_schema() || $1, 0))`,
		[]any{fmt.Sprintf("/%x", name)}, nil, func() {}))
}

// Audit implements store.Rows.
func (t *tx) Audit(f durable.AuditFilter) ([]durable.AuditRecord, error) {
	sql, args := auditQuery(f)
	return store.SelectRecords(t, sql, args...)
}

// Waivers implements store.Rows.
func (t *tx) Waivers() ([]durable.Waiver, error) {
	if err := t.lockName("waivers"); err != nil {
		return nil, err
	}
	return t.Tables.Waivers()
}

// Document implements store.Rows.
func (t *tx) Document(kind, name string, version int64) (store.Version, bool, error) {
	if err := t.lockName("document/" + kind + "\x00" + name); err != nil {
		return store.Version{}, false, err
	}
	return t.Tables.Document(kind, name, version)
}
