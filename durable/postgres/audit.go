package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/durable"
)

// batchRecord adds audit records in a batch. A record without a time gets that of the database.
func batchRecord(b *pgx.Batch, records ...durable.AuditRecord) {
	if len(records) == 0 {
		return
	}
	var args []any
	query := insertRecords(records, " FROM ", func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	})
	b.Queue(query, args...)
}

// insertRecords returns the statement that adds audit records. From is the beginning of its FROM clause.
func insertRecords(records []durable.AuditRecord, from string, arg func(any) string) string {
	answers := lo.Map(records, func(r durable.AuditRecord, _ int) durable.Answer { return lo.FromPtr(r.Answer) })
	return `INSERT INTO audit (at, kind, run, subject, who, wait, about, more, ends, data)
		SELECT coalesce(n.at, clock_timestamp()), n.kind, n.run, n.subject, n.who, n.wait, n.about, n.more, n.ends, n.data` + from + `unnest(` +
		arg(lo.Map(records, func(r durable.AuditRecord, _ int) *time.Time { return orNull(r.At) })) + `::timestamptz[], ` +
		arg(lo.Map(records, func(r durable.AuditRecord, _ int) text { return text(r.Kind) })) + `::text[], ` +
		arg(lo.Map(records, func(r durable.AuditRecord, _ int) text { return text(r.Run) })) + `::text[], ` +
		arg(lo.Map(records, func(r durable.AuditRecord, _ int) text { return text(r.Subject) })) + `::text[], ` +
		arg(lo.Map(records, func(r durable.AuditRecord, _ int) text { return text(r.By) })) + `::text[], ` +
		arg(lo.Map(answers, func(a durable.Answer, _ int) text { return text(a.Wait) })) + `::text[], ` +
		arg(lo.Map(answers, func(a durable.Answer, _ int) text { return text(a.Subject) })) + `::text[], ` +
		arg(lo.Map(answers, func(a durable.Answer, _ int) bool { return a.More })) + `::boolean[], ` +
		arg(lo.Map(answers, func(a durable.Answer, _ int) bool { return a.Ends })) + `::boolean[], ` +
		arg(lo.Map(answers, func(a durable.Answer, _ int) []byte { return orNil(a.Data) })) + `::bytea[])
		WITH ORDINALITY n (at, kind, run, subject, who, wait, about, more, ends, data, place) ORDER BY n.place`
}

// AuditRecords returns audit records: see durable.Store.
func (s *Store) AuditRecords(ctx context.Context, f durable.AuditFilter) (all []durable.AuditRecord, err error) {
	err = s.call(ctx, "list audit records", func(ctx context.Context) error {
		query, args := auditQuery(f)
		rows, err := s.pool.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, scanRecord)
		return err
	})
	return all, err
}

// auditQuery returns the query of a list of audit records. The filter decides which index it reads: that of the run, of the
// subject, or of the kind, and otherwise that of the numbers. Row comparisons in place of an equals sign rule out the others: see
// listQuery.
func auditQuery(f durable.AuditFilter) (query string, args []any) {
	l := &listing{}
	l.limit = l.arg(lo.Ternary(f.Limit > 0, f.Limit, durable.DefaultLimit))
	before := l.arg(lo.Ternary(f.Before > 0, f.Before, math.MaxInt64)) + "::bigint"
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
	return "SELECT a.num, a.at, a.kind, a.run, a.subject, a.who, a.wait, a.about, a.more, a.ends, a.data FROM audit a WHERE " +
		strings.Join(l.where, " AND ") + " ORDER BY " + order + " LIMIT " + l.limit, l.args
}

func scanRecord(row pgx.CollectableRow) (r durable.AuditRecord, err error) {
	var a durable.Answer
	err = row.Scan(&r.Seq, when{&r.At}, (*text)(&r.Kind), (*text)(&r.Run), (*text)(&r.Subject), (*text)(&r.By),
		(*text)(&a.Wait), (*text)(&a.Subject), &a.More, &a.Ends, &a.Data)
	if r.Kind == durable.AuditAnswer {
		a.At, a.By = r.At, r.By
		r.Answer = &a
	}
	return r, err
}

// AddWaiver stores a waiver: see durable.Store. If the reply of the database was lost, a repeated call returns ErrExists once the
// waiver is stored.
func (s *Store) AddWaiver(ctx context.Context, w durable.Waiver) error {
	return s.call(ctx, "add waiver "+w.ID, func(ctx context.Context) error {
		var b pgx.Batch
		b.Queue(`INSERT INTO waivers (id, at, who, expires, revoked, revoked_by, data) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			text(w.ID), orNull(w.Created), text(w.By), orNull(w.Expires), orNull(w.Revoked), text(w.RevokedBy), w.Data)
		batchRecord(&b, durable.AuditRecord{Kind: durable.AuditWaiver, Subject: w.ID, By: w.By})
		err := s.batch(ctx, &b)
		if said, ok := errors.AsType[*pgconn.PgError](err); ok && said.ConstraintName == "waivers_pkey" {
			return durable.ErrExists
		}
		return err
	})
}

// RevokeWaiver revokes a waiver: see durable.Store. Repeating the call is safe.
func (s *Store) RevokeWaiver(ctx context.Context, id, by string) error {
	return s.call(ctx, "revoke waiver "+id, func(ctx context.Context) error {
		var (
			b     pgx.Batch
			there bool
		)
		b.Queue(`WITH w AS (
				UPDATE waivers SET revoked = clock_timestamp(), revoked_by = $2 WHERE id = $1 AND revoked IS NULL RETURNING id, revoked
			)
			INSERT INTO audit (at, kind, run, subject, who, wait, about, more, ends)
			SELECT w.revoked, $3, '', w.id, $2, '', '', false, false FROM w`, text(id), text(by), text(durable.AuditWaiverRevoked))
		b.Queue(`SELECT true FROM waivers WHERE id = $1`, text(id)).QueryRow(scanOptional(&there))
		if err := s.batch(ctx, &b); err != nil || there {
			return err
		}
		return durable.ErrNotFound
	})
}

// waiversQuery reads the waivers in force, or all of them.
const waiversQuery = `SELECT id, who, at, expires, revoked, revoked_by, data FROM waivers`

// Waivers returns waivers: see durable.Store.
func (s *Store) Waivers(ctx context.Context, all bool) (waivers []durable.Waiver, err error) {
	err = s.call(ctx, "list waivers", func(ctx context.Context) error {
		query := waiversQuery
		if !all {
			query += ` WHERE revoked IS NULL AND expires > now()`
		}
		rows, err := s.pool.Query(ctx, query+` ORDER BY at NULLS FIRST, id`)
		if err != nil {
			return err
		}
		waivers, err = pgx.CollectRows(rows, scanWaiver)
		return err
	})
	return waivers, err
}

func scanWaiver(row pgx.CollectableRow) (w durable.Waiver, err error) {
	err = row.Scan((*text)(&w.ID), (*text)(&w.By), when{&w.Created}, when{&w.Expires}, when{&w.Revoked}, (*text)(&w.RevokedBy), &w.Data)
	return w, err
}
