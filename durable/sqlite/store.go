package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// Options configure a store. The zero Options are the defaults.
type Options struct {
	// Sync selects the durability of writes.
	Sync Sync
	// Wait is the maximum time that a call waits for other writing processes. Zero means ten seconds.
	Wait time.Duration
	// Encryption, unless nil, has the keys with which the store encrypts data.
	Encryption *durable.Encryption
	// Now is the clock, for tests. Nil means time.Now.
	Now func() time.Time
}

// Sync is the durability of a write.
type Sync uint8

// The levels of durability.
const (
	// SyncFull waits until each write is on the disk: it survives a loss of power.
	SyncFull Sync = iota
	// SyncNormal lets the operating system decide when to write to the disk. A write survives the end of the process and
	// is much faster, but a loss of power may undo the latest writes. A run then continues from an earlier point of its
	// journal and repeats its work from there.
	SyncNormal
)

func (s Sync) pragma() string {
	if s == SyncNormal {
		return "NORMAL"
	}
	return "FULL"
}

// Store is a durable.Store in a SQLite file. Open returns one. It is safe for concurrent use.
type Store struct {
	*machine

	db *db
}

// machine has the rules.
type machine = store.Store

var _ durable.Store = (*Store)(nil)

// db keeps the rows of a store in a file.
type db struct {
	path string
	file fs.FileInfo // identifies the opened file
	wait time.Duration
	now  func() time.Time

	// Writes go through one connection, so that they wait in the queue and not in SQLite.
	writer, readers *sql.DB
	reads           *statements                     // of the readers
	queue           *store.Queue[func(t *tx) error] // only a caller whose turn it is uses the fields below
	manyWriters     bool                            // the last transaction held several writes
	conn            *sql.Conn                       // of the writer
	writes          *statements

	listeners store.Listeners

	// open is read-locked while a call runs.
	open   sync.RWMutex
	closed bool
}

// maxReaders is the maximum number of concurrent reads; further reads wait.
const maxReaders = 4

// Open opens the store in a file. It creates the file if it does not exist, and the schema in an empty file.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	d := &db{path: path, wait: o.Wait, now: o.Now, queue: store.NewQueue[func(t *tx) error](1)}
	d.listeners.Watch = d.watch
	if d.wait == 0 {
		d.wait = 10 * time.Second
	}
	if d.now == nil {
		d.now = time.Now
	}
	s, err := store.New(d, o.Encryption)
	if err != nil {
		return nil, err
	}
	if err := d.connect(ctx, o.Sync); err != nil {
		return nil, errors.Join(d.explain(ctx, "opening it", err), d.disconnect())
	}
	return &Store{s, d}, nil
}

func (d *db) connect(ctx context.Context, sync Sync) (err error) {
	if d.file, err = prepareFile(d.path); err != nil {
		return err
	}
	if d.writer, err = connect(d.path, "_txlock=immediate&_synchronous="+sync.pragma()); err != nil {
		return err
	}
	err = d.retry(ctx, func() error {
		if err := createSchema(ctx, d.writer); err != nil {
			return err
		}
		return useLog(ctx, d.writer)
	})
	if err != nil {
		return err
	}
	if d.conn, err = d.writer.Conn(ctx); err != nil {
		return err
	}
	d.writes = &statements{conn: d.conn, all: map[string]*sql.Stmt{}}
	if d.readers, err = connect(d.path, "_query_only=1"); err != nil {
		return err
	}
	d.readers.SetMaxOpenConns(maxReaders)
	d.readers.SetMaxIdleConns(maxReaders)
	d.reads = &statements{conn: d.readers, all: map[string]*sql.Stmt{}}
	return nil
}

// statements are prepared statements, by text.
type statements struct {
	conn interface {
		PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
	}
	mu  sync.Mutex
	all map[string]*sql.Stmt
}

// maxStatements is how many statements are kept: preparing one takes longer than reading a short list. There may be more, because lists
// are composed for a filter.
const maxStatements = 300

// planOnce hides the values of limits from SQLite, which would otherwise plan a prepared query again for each value.
var planOnce = strings.NewReplacer("LIMIT ?", "LIMIT +?", "LIMIT $", "LIMIT +$")

// with calls f with a prepared statement.
func (s *statements) with(ctx context.Context, query string, f func(*sql.Stmt) error) (err error) {
	stmt, kept, err := s.prepare(ctx, query)
	if err != nil {
		return fmt.Errorf("preparing %q: %w", query, err)
	}
	if !kept {
		defer func() { err = errors.Join(err, stmt.Close()) }()
	}
	return f(stmt)
}

func (s *statements) prepare(ctx context.Context, query string) (stmt *sql.Stmt, kept bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stmt = s.all[query]; stmt != nil {
		return stmt, true, nil
	}
	stmt, err = s.conn.PrepareContext(context.WithoutCancel(ctx), planOnce.Replace(query)) //nolint:sqlclosecheck // with or release closes it
	if err != nil {
		return nil, false, err
	}
	if kept = len(s.all) < maxStatements; kept {
		s.all[query] = stmt
	}
	return stmt, kept, nil
}

func (s *statements) release() error {
	if s == nil {
		return nil
	}
	var errs []error
	for _, stmt := range s.all {
		errs = append(errs, stmt.Close())
	}
	return errors.Join(errs...)
}

// Close waits for running calls and closes the store. Later calls fail.
func (d *db) Close() error {
	d.open.Lock()
	defer d.open.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	d.listeners.Close()
	return d.disconnect()
}

// disconnect closes the writer last, because SQLite cleans up when the last connection closes.
func (d *db) disconnect() error {
	errs := []error{d.reads.release(), d.writes.release()}
	if d.readers != nil {
		errs = append(errs, d.readers.Close())
	}
	if d.conn != nil {
		errs = append(errs, d.conn.Close())
	}
	if d.writer != nil {
		errs = append(errs, d.writer.Close())
	}
	return errors.Join(errs...)
}

// whileOpen calls do while it keeps the store from being closed, and explains errors.
func (d *db) whileOpen(ctx context.Context, doing string, do func() error) error {
	d.open.RLock()
	defer d.open.RUnlock()
	err := errors.New("the store is closed")
	if !d.closed {
		err = d.sameFile()
	}
	if err == nil {
		err = do()
	}
	return d.explain(ctx, doing, err)
}

// view returns a view of the rows now.
func (d *db) view(ctx context.Context, s *statements) *view {
	v := &view{statements: s, ctx: ctx, now: d.now().UTC().Truncate(time.Microsecond)}
	v.Tables = store.Tables{SQL: v, Table: runs, Queries: queries}
	return v
}

// Read implements store.DB.
func (d *db) Read(ctx context.Context, doing string, f func(store.Rows) error) error {
	return d.look(ctx, doing, func(v *view) error { return f(v) })
}

// look calls f, and repeats it while another process locks the file.
func (d *db) look(ctx context.Context, doing string, f func(*view) error) error {
	return d.whileOpen(ctx, doing, func() error {
		return d.retry(ctx, func() error {
			v := d.view(ctx, d.reads)
			return v.outcome(f(v))
		})
	})
}

// retry repeats do while another process blocks it. SQLite can wait by itself, but ignores ctx meanwhile, so each attempt
// waits only briefly.
func (d *db) retry(ctx context.Context, do func() error) error {
	for start := time.Now(); ; {
		err := do()
		if !isBusy(err) || ctx.Err() != nil || time.Since(start) > d.wait {
			return err
		}
	}
}

// sameFile reports whether the path still names the opened file. Otherwise SQLite would keep writing to a deleted file,
// and all those writes would be lost.
func (d *db) sameFile() error {
	now, err := os.Stat(d.path)
	if err == nil && !os.SameFile(d.file, now) {
		return errors.New("the file was replaced while it was open: open the store again")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("the file was removed while it was open: restore it, with its -wal and -shm files")
	}
	return err
}
