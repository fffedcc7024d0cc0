package postgres

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// AddAudit implements store.Tx.
func (t *tx) AddAudit(records ...durable.AuditRecord) error {
	t.records = append(t.records, records...)
	return t.err
}

func recordColumns(r durable.AuditRecord) []store.Column { return store.NewRecordRow(r).Columns() }

var insertRecords = func() string {
	columns := recordColumns(durable.AuditRecord{})
	return `INSERT INTO audit (` + store.Names("", columns) + `) SELECT ` + store.Names("n.", columns) + ` FROM ` + unnestOf(columns) + ` ORDER BY n.nth`
}()

// Audit implements store.Rows.
func (t *tx) Audit(f durable.AuditFilter) ([]durable.AuditRecord, error) {
	sql, args := auditQuery(f)
	return readAll(t, func(row pgx.CollectableRow) (durable.AuditRecord, error) {
		r := &store.RecordRow{}
		err := row.Scan(append([]any{&r.Seq}, targets(r.Columns())...)...)
		return r.Read(), err
	}, sql, args...)
}

// auditQuery returns the query of a list of audit records. The filter decides which index it reads: that of the run, of the
// subject, or of the kind, and otherwise that of the numbers. Row comparisons in place of an equals sign rule out the others: see
// listQuery.
func auditQuery(f durable.AuditFilter) (query string, args []any) {
	l := &listing{}
	l.limit = l.arg(f.Limit)
	before := l.arg(cmp.Or(max(f.Before, 0), math.MaxInt64)) + "::bigint"
	order := "a.num DESC"
	by := func(column, value string) {
		l.and("(" + column + ", a.num) >= (" + value + ", 0) AND (" + column + ", a.num) < (" + value + ", " + before + ")")
		order = column + " DESC, a.num DESC"
	}
	kind, subject := "", ""
	if f.Kind != "" {
		kind = l.arg(text(f.Kind)) + "::text"
	}
	if f.Subject != "" {
		subject = l.arg(text(f.Subject)) + "::text"
		l.and("a.subject = " + subject)
	}
	switch {
	case f.Run != "":
		l.and("a.run <> ''") // the index covers only these rows
		by("a.run", l.arg(text(f.Run))+"::text")
	case f.Subject != "":
		by("left(a.subject, 200)", "left("+subject+", 200)")
	case f.Kind != "" && f.Kind != durable.AuditAnswer:
		l.and("a.kind <> 'answer'") // the index covers only these rows
		by("a.kind", kind)
		kind = ""
	default:
		l.and("a.num < " + before)
	}
	if kind != "" {
		l.and("a.kind = " + kind)
	}
	return "SELECT a.num, " + store.Names("a.", recordColumns(durable.AuditRecord{})) + " FROM audit a WHERE " +
		strings.Join(l.where, " AND ") + " ORDER BY " + order + " LIMIT " + l.limit, l.args
}

// lockName makes transactions that change the same thing wait for each other. The statements that follow see what it waited for.
func (t *tx) lockName(name string) error {
	if !t.writes {
		return nil
	}
	var done []struct{}
	return t.send(false, query(&done, pgx.RowToStructByPos[struct{}],
		`SELECT FROM pg_advisory_xact_lock(hashtextextended('grapnel/' || current_schema() || $1, 0))`,
		fmt.Sprintf("/%x", name)))
}

// Waivers implements store.Rows.
func (t *tx) Waivers() ([]durable.Waiver, error) {
	if err := t.lockName("waivers"); err != nil {
		return nil, err
	}
	return readAll(t, func(row pgx.CollectableRow) (w durable.Waiver, err error) {
		return w, row.Scan((*text)(&w.ID), (*text)(&w.By), when{&w.Created}, when{&w.Expires}, when{&w.Revoked}, (*text)(&w.RevokedBy), &w.Data)
	}, `SELECT id, who, at, expires, revoked, revoked_by, data FROM waivers ORDER BY at NULLS FIRST, id`)
}

// PutWaiver implements store.Tx.
func (t *tx) PutWaiver(w durable.Waiver) error {
	return t.enqueue(`INSERT INTO waivers (id, at, who, expires, revoked, revoked_by, data) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (id) DO UPDATE SET at = excluded.at, who = excluded.who, expires = excluded.expires, revoked = excluded.revoked,
			revoked_by = excluded.revoked_by, data = excluded.data`,
		text(w.ID), orNull(w.Created), text(w.By), orNull(w.Expires), orNull(w.Revoked), text(w.RevokedBy), w.Data)
}

// documentColumns are the columns that scanDocument reads.
const documentColumns = `kind, name, version, at, who, data`

func documentTargets(d *durable.Document, name *[]byte, more ...any) []any {
	return append([]any{(*text)(&d.Kind), name, &d.Version, when{&d.At}, (*text)(&d.By), &d.Data}, more...)
}

// Document implements store.Rows.
func (t *tx) Document(kind, name string, version int64) (store.Version, bool, error) {
	if err := t.lockName("document/" + kind + "\x00" + name); err != nil {
		return store.Version{}, false, err
	}
	which := `$3 = 0 ORDER BY version DESC LIMIT 1`
	if version != 0 {
		which = `version = $3`
	}
	return readOne(t, func(row pgx.CollectableRow) (v store.Version, err error) {
		err = row.Scan(documentTargets(&v.Document, new([]byte), &v.Newest)...)
		v.Name = name
		return v, err
	}, `SELECT `+documentColumns+`, coalesce((SELECT version FROM documents WHERE kind = $1 AND name = $2 AND newest), 0)
		FROM documents WHERE kind = $1 AND name = $2 AND `+which, text(kind), []byte(name), version)
}

// Documents implements store.Rows.
func (t *tx) Documents(kind, after string, limit int) ([]durable.Document, error) {
	return readAll(t, func(row pgx.CollectableRow) (d durable.Document, err error) {
		var name []byte
		err = row.Scan(documentTargets(&d, &name)...)
		d.Name = string(name)
		return d, err
	}, `SELECT `+documentColumns+` FROM documents WHERE kind = $1 AND name > $2 AND newest ORDER BY name LIMIT $3`, text(kind), []byte(after), limit)
}

// AddDocument implements store.Tx.
func (t *tx) AddDocument(d durable.Document) error {
	_ = t.DropDocument(d.Kind, d.Name)
	return t.enqueue(`INSERT INTO documents (kind, name, version, newest, at, who, data) VALUES ($1, $2, $3, true, $4, $5, $6)`,
		text(d.Kind), []byte(d.Name), d.Version, d.At, text(d.By), d.Data)
}

// DropDocument implements store.Tx.
func (t *tx) DropDocument(kind, name string) error {
	return t.enqueue(`UPDATE documents SET newest = false WHERE kind = $1 AND name = $2 AND newest`, text(kind), []byte(name))
}

// Setting implements store.Rows.
func (t *tx) Setting(name string) ([]byte, error) {
	value, _, err := readOne(t, pgx.RowTo[[]byte], `SELECT value FROM settings WHERE name = $1`, name)
	return value, err
}

// PutSetting implements store.Tx.
func (t *tx) PutSetting(name string, value []byte) error {
	return t.enqueue(`INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`, name, value)
}
