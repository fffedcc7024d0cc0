package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/durable"
)

// Store is a durable.Store in a SQLite file. Make one with Open. It is safe for
// concurrent use.
type Store struct {
	path string
	file fs.FileInfo // which file that was when it was opened
	wait time.Duration
	now  func() time.Time

	// Writes go through one connection, so that they wait in the queue and not in SQLite.
	writer, readers *sql.DB
	queue           writeQueue
	// statements are prepared on the writer or on the readers, by their text.
	statements map[string]*sql.Stmt

	// open is read-locked while a call runs.
	open   sync.RWMutex
	closed bool
}

var _ durable.Store = (*Store)(nil)

// maxReaders is how many reads run at once; more wait.
const maxReaders = 4

// Open opens the store in a file, and makes the file when it is not there. Its
// schema is brought up to date.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	s := &Store{path: path, wait: o.Wait, now: o.Now, statements: map[string]*sql.Stmt{}}
	if s.wait == 0 {
		s.wait = 10 * time.Second
	}
	if s.now == nil {
		s.now = time.Now
	}
	if err := s.connect(ctx, o.Sync); err != nil {
		return nil, errors.Join(s.explain(ctx, "opening it", err), s.disconnect())
	}
	return s, nil
}

func (s *Store) connect(ctx context.Context, sync Sync) (err error) {
	if s.file, err = prepareFile(s.path); err != nil {
		return err
	}
	if s.writer, err = connect(s.path, "_txlock=immediate&_synchronous="+sync.pragma()); err != nil {
		return err
	}
	s.writer.SetMaxOpenConns(1)
	if err := s.retry(ctx, func() error { return migrateSchema(ctx, s.writer) }); err != nil {
		return err
	}
	if s.readers, err = connect(s.path, "_query_only=1"); err != nil {
		return err
	}
	s.readers.SetMaxOpenConns(maxReaders)
	s.readers.SetMaxIdleConns(maxReaders)
	if err := s.prepare(ctx, s.readers, reads); err != nil {
		return err
	}
	return s.prepare(ctx, s.writer, slices.Concat(writes, grouping))
}

func (s *Store) prepare(ctx context.Context, db *sql.DB, queries []string) error {
	for _, query := range queries {
		stmt, err := db.PrepareContext(ctx, query) //nolint:sqlclosecheck // disconnect closes it
		if err != nil {
			return fmt.Errorf("preparing %q: %w", query, err)
		}
		s.statements[query] = stmt
	}
	return nil
}

// Close waits until running calls are done and closes the store. Calls after it are
// refused.
func (s *Store) Close() error {
	s.open.Lock()
	defer s.open.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return s.disconnect()
}

// disconnect closes the writer last: the last connection of all tidies up.
func (s *Store) disconnect() error {
	var errs []error
	for _, stmt := range s.statements {
		errs = append(errs, stmt.Close())
	}
	for _, db := range []*sql.DB{s.readers, s.writer} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

// whileOpen calls do while the store cannot be closed, and explains what went wrong.
func (s *Store) whileOpen(ctx context.Context, doing string, do func() error) error {
	s.open.RLock()
	defer s.open.RUnlock()
	err := errors.New("the store is closed")
	if !s.closed {
		err = s.sameFile()
	}
	if err == nil {
		err = do()
	}
	return s.explain(ctx, doing, err)
}

// read calls do, again while another process is in its way.
func (s *Store) read(ctx context.Context, doing string, do func() error) error {
	return s.whileOpen(ctx, doing, func() error { return s.retry(ctx, do) })
}

// retry calls do again while another process is in its way. SQLite waits by
// itself, but would not look at ctx meanwhile: so it waits a little each time.
func (s *Store) retry(ctx context.Context, do func() error) error {
	for start := time.Now(); ; {
		err := do()
		if !isBusy(err) || ctx.Err() != nil || time.Since(start) > s.wait {
			return err
		}
	}
}

// sameFile tells whether the file is still the one that was opened. SQLite would go
// on writing to a file that has no name any more, and all of it would be lost.
func (s *Store) sameFile() error {
	now, err := os.Stat(s.path)
	if err == nil && !os.SameFile(s.file, now) {
		return errors.New("the file was replaced while it was open: open the store again")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("the file is gone while it is open: put it back, with those that end in -wal and -shm")
	}
	return err
}

// tx is a transaction of the writer.
type tx struct {
	*sql.Tx

	store      *Store
	statements map[string]*sql.Stmt // those used so far
}

// prepare returns one of the writes, inside the transaction, whose end closes it.
func (t tx) prepare(ctx context.Context, query string) *sql.Stmt {
	stmt := t.statements[query]
	if stmt == nil {
		stmt = t.StmtContext(ctx, t.store.statements[query]) //nolint:sqlclosecheck // closed with the transaction
		t.statements[query] = stmt
	}
	return stmt
}

// exec runs one of the writes and counts the rows that it changed.
func (t tx) exec(ctx context.Context, query string, args ...any) (int64, error) {
	result, err := t.prepare(ctx, query).ExecContext(ctx, args...) //nolint:sqlclosecheck // closed with the transaction
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// one runs one of the writes that gives a single row.
func (t tx) one(ctx context.Context, query string, args ...any) *sql.Row {
	return t.prepare(ctx, query).QueryRowContext(ctx, args...) //nolint:sqlclosecheck // closed with the transaction
}

// scanRows reads all rows of a query.
func scanRows(rows *sql.Rows, err error, read func(rows *sql.Rows) error) error {
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // Err says what went wrong
	for rows.Next() {
		if err := read(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// clock returns the time now, as it is kept.
func (s *Store) clock() int64 { return s.now().UnixMicro() }
