package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/grapnel-go/grapnel/durable"
)

// documentColumns are the columns that scanDocument reads.
const documentColumns = `kind, name, version, at, who, data`

// lockDocument makes calls that change a document wait for each other. The statements that follow see what it waited for.
const lockDocument = `SELECT pg_advisory_xact_lock(hashtextextended('grapnel/' || current_schema() || '/document/' || $1 || '/' || encode($2, 'hex'), 0))`

// PutDocument stores the next version of a document: see durable.Store. If the reply of the database was lost, a repeated call
// returns ErrConflict once the version is stored.
func (s *Store) PutDocument(ctx context.Context, d durable.Document) (durable.Document, error) {
	if err := d.Check(); err != nil {
		return durable.Document{}, err
	}
	var stored durable.Document
	err := s.call(ctx, fmt.Sprintf("store document %q of kind %q", d.Name, d.Kind), func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) (err error) {
			stored, err = addVersion(ctx, tx, d)
			return err
		})
	})
	if err != nil {
		return durable.Document{}, err
	}
	return stored, nil
}

// addVersion stores the next version of a document.
func addVersion(ctx context.Context, tx pgx.Tx, d durable.Document) (durable.Document, error) {
	kind, name := text(d.Kind), []byte(d.Name)
	var (
		b               pgx.Batch
		highest, newest int64
	)
	b.Queue(lockDocument, kind, name)
	b.Queue(`SELECT coalesce(max(version), 0), coalesce(max(version) FILTER (WHERE newest), 0) FROM documents WHERE kind = $1 AND name = $2`,
		kind, name).QueryRow(func(row pgx.Row) error { return row.Scan(&highest, &newest) })
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return durable.Document{}, err
	}
	if d.Version != newest {
		return durable.Document{}, fmt.Errorf("document %q of kind %q, version %d: %w", d.Name, d.Kind, d.Version, durable.ErrConflict)
	}
	b = pgx.Batch{}
	b.Queue(`UPDATE documents SET newest = false WHERE kind = $1 AND name = $2 AND newest`, kind, name)
	b.Queue(`INSERT INTO documents (kind, name, version, newest, at, who, data) VALUES ($1, $2, $3, true, clock_timestamp(), $4, $5)
		RETURNING version, at`, kind, name, highest+1, text(d.By), d.Data).
		QueryRow(func(row pgx.Row) error { return row.Scan(&d.Version, when{&d.At}) })
	err := tx.SendBatch(ctx, &b).Close()
	return d, err
}

// Document returns a version of a document: see durable.Store.
func (s *Store) Document(ctx context.Context, kind, name string, version int64) (d durable.Document, err error) {
	err = s.call(ctx, fmt.Sprintf("read document %q of kind %q", name, kind), func(ctx context.Context) error {
		which, args := `newest`, []any{text(kind), []byte(name)}
		if version != 0 {
			which, args = `version = $3`, append(args, version)
		}
		d, err = scanDocument(s.pool.QueryRow(ctx, `SELECT `+documentColumns+` FROM documents WHERE kind = $1 AND name = $2 AND `+which, args...))
		return notFound(err)
	})
	if err != nil {
		return durable.Document{}, err
	}
	return d, nil
}

// ListDocuments returns the newest versions of documents: see durable.Store.
func (s *Store) ListDocuments(ctx context.Context, kind, after string, limit int) (all []durable.Document, err error) {
	err = s.call(ctx, fmt.Sprintf("list the documents of kind %q", kind), func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, `SELECT `+documentColumns+` FROM documents WHERE kind = $1 AND name > $2 AND newest ORDER BY name LIMIT $3`,
			text(kind), []byte(after), max(0, limit))
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (durable.Document, error) { return scanDocument(row) })
		return err
	})
	return all, err
}

// DeleteDocument deletes a document: see durable.Store. If the reply of the database was lost, a repeated call returns
// ErrNotFound once the document is deleted.
func (s *Store) DeleteDocument(ctx context.Context, kind, name string) error {
	return s.call(ctx, fmt.Sprintf("delete document %q of kind %q", name, kind), func(ctx context.Context) error {
		var (
			b    pgx.Batch
			done bool
		)
		b.Queue(lockDocument, text(kind), []byte(name))
		b.Queue(`UPDATE documents SET newest = false WHERE kind = $1 AND name = $2 AND newest RETURNING true`, text(kind), []byte(name)).
			QueryRow(scanOptional(&done))
		if err := s.batch(ctx, &b); err != nil || done {
			return err
		}
		return durable.ErrNotFound
	})
}

func scanDocument(row pgx.Row) (d durable.Document, err error) {
	var name []byte
	err = row.Scan((*text)(&d.Kind), &name, &d.Version, when{&d.At}, (*text)(&d.By), &d.Data)
	d.Name = string(name)
	return d, err
}
