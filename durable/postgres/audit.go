package postgres

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// Audit implements store.Rows.
func (t *tx) Audit(f durable.AuditFilter) ([]durable.AuditRecord, error) {
	sql, args := auditQuery(f)
	return store.SelectRecords(t, sql, args...)
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
		kind = l.arg(string(f.Kind)) + "::text"
	}
	if f.Subject != "" {
		subject = l.arg(f.Subject) + "::text"
		l.and("a.subject = " + subject)
	}
	switch {
	case f.Run != "":
		l.and("a.run <> ''") // the index covers only these rows
		by("a.run", l.arg(string(f.Run))+"::text")
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
	return "SELECT " + store.RecordColumns + " FROM audit a WHERE " +
		strings.Join(l.where, " AND ") + " ORDER BY " + order + " LIMIT " + l.limit, l.args
}

// lockName makes transactions that change the same thing wait for each other. The statements that follow see what it waited for.
func (t *tx) lockName(name string) error {
	if !t.writes {
		return nil
	}
	return t.send(false, newQuery(`SELECT FROM pg_advisory_xact_lock(hashtextextended('grapnel/' || current_schema() || $1, 0))`,
		[]any{fmt.Sprintf("/%x", name)}, nil, func() {}))
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
