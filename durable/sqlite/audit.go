package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strings"

	"github.com/grapnel-go/grapnel/durable"
)

const (
	insertRecord = `INSERT INTO audit (at, kind, run, subject, who, wait, about, more, ends, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	insertWaiver = `INSERT INTO waivers (id, at, who, expires, data) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`
	updateWaiver = `UPDATE waivers SET revoked = ?2, revoked_by = ?3 WHERE id = ?1 AND revoked IS NULL`
	hasWaiver    = `SELECT EXISTS (SELECT 1 FROM waivers WHERE id = ?)`
	// selectWaivers reads all waivers: there are few.
	selectWaivers = `SELECT id, at, who, expires, revoked, revoked_by, data FROM waivers
		WHERE ?1 OR revoked IS NULL AND expires > ?2 ORDER BY at, id`
)

// addRecord adds a record to the audit log. The store numbers it.
func addRecord(ctx context.Context, t tx, r durable.AuditRecord) error {
	var a durable.Answer
	if r.Answer != nil {
		a = *r.Answer
	}
	_, err := t.exec(ctx, insertRecord, micros{r.At}, string(r.Kind), string(r.Run), r.Subject, r.By, a.Wait, a.Subject, a.More, a.Ends, a.Data)
	return err
}

// AuditRecords implements durable.Store.
func (s *Store) AuditRecords(ctx context.Context, f durable.AuditFilter) (all []durable.AuditRecord, err error) {
	query, args := selectRecords(f)
	err = s.read(ctx, "reading the audit log", func() error {
		all = nil
		rows, err := s.readers.QueryContext(ctx, query, args...)
		return scanRows(rows, err, func(rows *sql.Rows) error {
			var r durable.AuditRecord
			var a durable.Answer
			var at micros
			err := rows.Scan(&r.Seq, &at, &r.Kind, &r.Run, &r.Subject, &r.By, &a.Wait, &a.Subject, &a.More, &a.Ends, &a.Data)
			r.At = at.Time
			if r.Kind == durable.AuditAnswer {
				a.By, a.At = r.By, r.At
				r.Answer = &a
			}
			all = append(all, r)
			return err
		})
	})
	return ignoreNoRows(all, err)
}

// selectRecords reads the index that leaves the fewest records. Each has the records of a value in their order.
func selectRecords(f durable.AuditFilter) (query string, args []any) {
	from := "audit"
	where, args := []string{"n < ?"}, []any{f.Before}
	if f.Before == 0 {
		args[0] = int64(math.MaxInt64)
	}
	for _, c := range []struct{ column, value, index string }{
		{"kind", string(f.Kind), "audit_by_kind"}, {"subject", f.Subject, "audit_by_subject"}, {"run", string(f.Run), "audit_by_run"},
	} {
		if c.value != "" {
			from = "audit INDEXED BY " + c.index
			where, args = append(where, c.column+" = ?"), append(args, c.value)
		}
	}
	return "SELECT n, at, kind, run, subject, who, wait, about, more, ends, data FROM " + from + " WHERE " + strings.Join(where, " AND ") +
		" ORDER BY n DESC LIMIT ?", append(args, limitOr(f.Limit))
}

// limitOr returns the limit of a list.
func limitOr(limit int) int {
	if limit <= 0 {
		return durable.DefaultLimit
	}
	return limit
}

// AddWaiver implements durable.Store.
func (s *Store) AddWaiver(ctx context.Context, w durable.Waiver) error {
	return s.write(ctx, "adding a waiver", func(ctx context.Context, t tx) error {
		added, err := t.exec(ctx, insertWaiver, w.ID, micros{w.Created}, w.By, micros{w.Expires}, w.Data)
		if err != nil {
			return err
		}
		if added == 0 {
			return fmt.Errorf("waiver %q: %w", w.ID, durable.ErrExists)
		}
		return addRecord(ctx, t, durable.AuditRecord{At: fromMicros(s.clock()), Kind: durable.AuditWaiver, Subject: w.ID, By: w.By})
	})
}

// RevokeWaiver implements durable.Store.
func (s *Store) RevokeWaiver(ctx context.Context, id, by string) error {
	return s.write(ctx, "revoking a waiver", func(ctx context.Context, t tx) error {
		now := s.clock()
		revoked, err := t.exec(ctx, updateWaiver, id, now, by)
		if err != nil {
			return err
		}
		if revoked > 0 {
			return addRecord(ctx, t, durable.AuditRecord{At: fromMicros(now), Kind: durable.AuditWaiverRevoked, Subject: id, By: by})
		}
		var there bool
		if err := t.one(ctx, hasWaiver, id).Scan(&there); err != nil || there {
			return err
		}
		return fmt.Errorf("waiver %q: %w", id, durable.ErrNotFound)
	})
}

// Waivers implements durable.Store.
func (s *Store) Waivers(ctx context.Context, all bool) (waivers []durable.Waiver, err error) {
	err = s.read(ctx, "reading the waivers", func() error {
		waivers = nil
		rows, err := s.statements[selectWaivers].QueryContext(ctx, all, s.clock())
		return scanRows(rows, err, func(rows *sql.Rows) error {
			var w durable.Waiver
			var created, expires, revoked micros
			err := rows.Scan(&w.ID, &created, &w.By, &expires, &revoked, &w.RevokedBy, &w.Data)
			w.Created, w.Expires, w.Revoked = created.Time, expires.Time, revoked.Time
			waivers = append(waivers, w)
			return err
		})
	})
	return ignoreNoRows(waivers, err)
}
