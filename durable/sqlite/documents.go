package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/grapnel-go/grapnel/durable"
)

const documentColumns = `kind, name, version, at, who, data`

const (
	selectVersions = `SELECT ifnull(max(version), 0), ifnull(max(version) FILTER (WHERE newest = 1), 0) FROM documents WHERE kind = ?1 AND name = ?2`
	insertDocument = `INSERT INTO documents (kind, name, version, newest, at, who, data) VALUES (?, ?, ?, 1, ?, ?, ?)`
	// updateReplaced is executed when a version is replaced, and when the document is deleted.
	updateReplaced = `UPDATE documents SET newest = 0 WHERE kind = ?1 AND name = ?2 AND newest = 1`
	selectNewest   = `SELECT ` + documentColumns + ` FROM documents INDEXED BY documents_newest WHERE kind = ?1 AND name = ?2 AND newest = 1`
	selectVersion  = `SELECT ` + documentColumns + ` FROM documents WHERE kind = ?1 AND name = ?2 AND version = ?3`
	selectDocs     = `SELECT ` + documentColumns + ` FROM documents INDEXED BY documents_newest WHERE kind = ?1 AND name > ?2 AND newest = 1
		ORDER BY name LIMIT ?3`
)

// PutDocument implements durable.Store.
func (s *Store) PutDocument(ctx context.Context, d durable.Document) (durable.Document, error) {
	if err := d.Check(); err != nil {
		return durable.Document{}, err
	}
	var stored durable.Document
	err := s.write(ctx, "storing a document", func(ctx context.Context, t tx) (err error) {
		stored, err = addVersion(ctx, t, d, s.clock())
		return err
	})
	return ignoreNoRows(stored, err)
}

// addVersion stores the next version of a document.
func addVersion(ctx context.Context, t tx, d durable.Document, now int64) (durable.Document, error) {
	var highest, newest int64
	if err := t.one(ctx, selectVersions, d.Kind, d.Name).Scan(&highest, &newest); err != nil {
		return durable.Document{}, err
	}
	if d.Version != newest {
		return durable.Document{}, fmt.Errorf("document %q of kind %q, version %d: %w", d.Name, d.Kind, d.Version, durable.ErrConflict)
	}
	if _, err := t.exec(ctx, updateReplaced, d.Kind, d.Name); err != nil {
		return durable.Document{}, err
	}
	d.Version, d.At = highest+1, fromMicros(now)
	_, err := t.exec(ctx, insertDocument, d.Kind, d.Name, d.Version, now, d.By, d.Data)
	return d, err
}

// Document implements durable.Store.
func (s *Store) Document(ctx context.Context, kind, name string, version int64) (d durable.Document, err error) {
	err = s.read(ctx, "reading a document", func() error {
		query, args := selectNewest, []any{kind, name}
		if version != 0 {
			query, args = selectVersion, append(args, version)
		}
		d, err = scanDocument(s.statements[query].QueryRowContext(ctx, args...).Scan)
		if errors.Is(err, sql.ErrNoRows) {
			return noDocument(kind, name)
		}
		return err
	})
	return ignoreNoRows(d, err)
}

// ListDocuments implements durable.Store.
func (s *Store) ListDocuments(ctx context.Context, kind, after string, limit int) (all []durable.Document, err error) {
	err = s.read(ctx, "listing documents", func() error {
		all = nil
		rows, err := s.statements[selectDocs].QueryContext(ctx, kind, after, max(limit, 0))
		return scanRows(rows, err, func(rows *sql.Rows) error {
			d, err := scanDocument(rows.Scan)
			all = append(all, d)
			return err
		})
	})
	return ignoreNoRows(all, err)
}

// DeleteDocument implements durable.Store.
func (s *Store) DeleteDocument(ctx context.Context, kind, name string) error {
	return s.write(ctx, "deleting a document", func(ctx context.Context, t tx) error {
		deleted, err := t.exec(ctx, updateReplaced, kind, name)
		if err == nil && deleted == 0 {
			err = noDocument(kind, name)
		}
		return err
	})
}

// scanDocument reads a row of documentColumns.
func scanDocument(scan func(...any) error) (d durable.Document, err error) {
	var at micros
	err = scan(&d.Kind, &d.Name, &d.Version, &at, &d.By, &d.Data)
	d.At = at.Time
	return d, err
}

func noDocument(kind, name string) error {
	return fmt.Errorf("document %q of kind %q: %w", name, kind, durable.ErrNotFound)
}
