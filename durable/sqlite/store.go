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
	"github.com/grapnel-go/grapnel/internal/coalesce"
)

// Store is a durable.Store in a SQLite file. Open returns one. It is safe for concurrent use.
type Store struct {
	path string
	file fs.FileInfo // identifies the opened file
	wait time.Duration
	now  func() time.Time

	// Writes go through one connection, so that they wait in the queue and not in SQLite.
	writer, readers *sql.DB
	queue           writeQueue
	// statements are the prepared statements of writer and readers, by text.
	statements map[string]*sql.Stmt

	listeners listeners
	idle      *coalesce.Group[struct{}]        // of calls that idle workers make, and that found nothing to do
	queues    *coalesce.Group[[]durable.Needs] // of calls of Queues

	// open is read-locked while a call runs.
	open   sync.RWMutex
	closed bool
}

var _ durable.Store = (*Store)(nil)

// maxReaders is the maximum number of concurrent reads; further reads wait.
const maxReaders = 4

// Open opens the store in a file. It creates the file if it does not exist, and the schema in an empty file.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	s := &Store{
		path: path, wait: o.Wait, now: o.Now, statements: map[string]*sql.Stmt{},
		idle: coalesce.NewGroup[struct{}](idleAtOnce), queues: coalesce.NewGroup[[]durable.Needs](1),
	}
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
	err = s.retry(ctx, func() error {
		if err := createSchema(ctx, s.writer); err != nil {
			return err
		}
		return useLog(ctx, s.writer)
	})
	if err != nil {
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

// Close waits for running calls and closes the store. Later calls fail.
func (s *Store) Close() error {
	s.open.Lock()
	defer s.open.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.listeners.closeAll()
	return s.disconnect()
}

// disconnect closes the writer last, because SQLite cleans up when the last connection closes.
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

// whileOpen calls do while it keeps the store from being closed, and explains errors.
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

// read calls do, and repeats it while another process locks the file.
func (s *Store) read(ctx context.Context, doing string, do func() error) error {
	return s.whileOpen(ctx, doing, func() error { return s.retry(ctx, do) })
}

// retry repeats do while another process blocks it. SQLite can wait by itself, but ignores ctx meanwhile, so each attempt
// waits only briefly.
func (s *Store) retry(ctx context.Context, do func() error) error {
	for start := time.Now(); ; {
		err := do()
		if !isBusy(err) || ctx.Err() != nil || time.Since(start) > s.wait {
			return err
		}
	}
}

// sameFile reports whether the path still names the opened file. Otherwise SQLite would keep writing to a deleted file,
// and all those writes would be lost.
func (s *Store) sameFile() error {
	now, err := os.Stat(s.path)
	if err == nil && !os.SameFile(s.file, now) {
		return errors.New("the file was replaced while it was open: open the store again")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("the file was removed while it was open: restore it, with its -wal and -shm files")
	}
	return err
}

// tx is a transaction of the writer.
type tx struct {
	*sql.Tx

	store      *Store
	statements map[string]*sql.Stmt // those used so far
	notifies   *bool                // the commit is a change for Changes
}

// notify tells the receivers of Changes about the transaction when it is committed.
func (t tx) notify() { *t.notifies = true }

// prepare returns one of the write statements for the transaction, which closes it at the end.
func (t tx) prepare(ctx context.Context, query string) *sql.Stmt {
	stmt := t.statements[query]
	if stmt == nil {
		stmt = t.StmtContext(ctx, t.store.statements[query])
		t.statements[query] = stmt
	}
	return stmt
}

// exec executes a write statement and returns the number of changed rows.
func (t tx) exec(ctx context.Context, query string, args ...any) (int64, error) {
	result, err := t.prepare(ctx, query).ExecContext(ctx, args...) //nolint:sqlclosecheck // closed with the transaction
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// rows executes a write statement that returns rows.
func (t tx) rows(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return t.prepare(ctx, query).QueryContext(ctx, args...) //nolint:sqlclosecheck // closed with the transaction
}

// one executes a write statement that returns a single row.
func (t tx) one(ctx context.Context, query string, args ...any) *sql.Row {
	return t.prepare(ctx, query).QueryRowContext(ctx, args...) //nolint:sqlclosecheck // closed with the transaction
}

// scanRows reads all rows of a query.
func scanRows(rows *sql.Rows, err error, read func(rows *sql.Rows) error) error {
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // Err returns the error
	for rows.Next() {
		if err := read(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// clock returns the current time in its stored form.
func (s *Store) clock() int64 { return s.now().UnixMicro() }
