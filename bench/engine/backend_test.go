package engine_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/postgres"
	"github.com/grapnel-go/grapnel/durable/sqlite"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// backend is a kind of store.
type backend struct {
	key, name string // the key is for file formats
	open      func(t *testing.T) benchStore
}

// benchStore is an empty store, and bare SQL on the same database.
type benchStore struct {
	durable.Store

	bare bareSQL
}

// statement is a statement of SQL with parameters $1, $2 and so on. A statement with into returns one number.
type statement struct {
	query string
	args  []any
	into  *int64
}

// bareSQL is a connection to the database of a store that bypasses the store.
type bareSQL interface {
	// transact executes statements in one transaction.
	transact(ctx context.Context, all ...statement) error
	// columns returns the columns of a table, but for those that the database fills.
	columns(t *testing.T, table string) []string
	// at returns a time as the store writes it.
	at(now time.Time) any
	// size returns the bytes that the database takes.
	size(t *testing.T) int64
	// version names the database.
	version(t *testing.T) string
	// tidy does what the database does now and then by itself.
	tidy(t *testing.T)
	// words returns the words of this dialect that differ.
	words() dialect
}

// dialect is what the statements of a figure contain in place of {…}.
type dialect struct {
	series  string            // {series}: a table x with a column i from $1 to $2
	ago     string            // {ago}: i milliseconds after a time of long ago
	yes, no string            // {yes}, {no}
	life    map[string]string // the statements of a run's life, by name
}

var (
	sqliteFull      = backend{"sqlite-full", "SQLite, full sync", openSQLite(sqlite.SyncFull, "full", nil)}
	sqliteNormal    = backend{"sqlite-normal", "SQLite, normal sync", openSQLite(sqlite.SyncNormal, "normal", nil)}
	sqliteEncrypted = backend{
		"sqlite-encrypted", "SQLite, full sync, encrypted",
		openSQLite(sqlite.SyncFull, "full", &durable.Encryption{Key: bytes.Repeat([]byte{1}, 32)}),
	}
)

// openSQLite opens a file with the settings of the store for both of its sides.
func openSQLite(sync sqlite.Sync, pragma string, e *durable.Encryption) func(t *testing.T) benchStore {
	return func(t *testing.T) benchStore {
		t.Helper()
		path := filepath.Join(t.TempDir(), "runs.db")
		store, err := sqlite.Open(t.Context(), path, sqlite.Options{Sync: sync, Encryption: e})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		dsn := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: "_busy_timeout=10000&_foreign_keys=1&_dqs=0" +
			"&_pragma=secure_delete(1)&_pragma=journal_size_limit(67108864)&_txlock=immediate&_synchronous=" + pragma}
		db, err := sql.Open("sqlite", dsn.String())
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		db.SetMaxOpenConns(1)
		return benchStore{store, &bareSQLite{db, path, map[string]*sql.Stmt{}}}
	}
}

// bareSQLite is one connection to a SQLite file.
type bareSQLite struct {
	db         *sql.DB
	path       string
	statements map[string]*sql.Stmt
}

// transact executes statements that are prepared once.
func (b *bareSQLite) transact(ctx context.Context, all ...statement) error {
	ctx = context.WithoutCancel(ctx) // a context that may end costs a goroutine for each statement
	for _, s := range all {
		if b.statements[s.query] == nil {
			stmt, err := b.db.PrepareContext(ctx, b.translate(s.query)) //nolint:sqlclosecheck // closed with the database
			if err != nil {
				return fmt.Errorf("preparing %s: %w", s.query, err)
			}
			b.statements[s.query] = stmt
		}
	}
	t, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = t.Rollback() }()
	within := map[string]*sql.Stmt{}
	for _, s := range all {
		stmt := within[s.query]
		if stmt == nil {
			stmt = t.StmtContext(ctx, b.statements[s.query]) //nolint:sqlclosecheck // closed with the transaction
			within[s.query] = stmt
		}
		if s.into != nil {
			err = stmt.QueryRowContext(ctx, s.args...).Scan(s.into)
		} else {
			_, err = stmt.ExecContext(ctx, s.args...)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.query, err)
		}
	}
	return t.Commit()
}

var parameter = regexp.MustCompile(`\$(\d+)`)

func (*bareSQLite) translate(query string) string { return parameter.ReplaceAllString(query, "?$1") }

func (b *bareSQLite) columns(t *testing.T, table string) (names []string) {
	t.Helper()
	rows, err := b.db.QueryContext(t.Context(), `SELECT name FROM pragma_table_info(?) WHERE NOT (name = 'num' AND pk = 1)`, table)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var name string
		require.NoError(t, rows.Scan(&name))
		names = append(names, name)
	}
	require.NoError(t, rows.Err())
	return names
}

func (*bareSQLite) at(now time.Time) any { return now.UnixMicro() }

func (b *bareSQLite) size(t *testing.T) int64 {
	t.Helper()
	b.tidy(t)
	info, err := os.Stat(b.path)
	require.NoError(t, err)
	return info.Size()
}

func (b *bareSQLite) version(t *testing.T) (version string) {
	t.Helper()
	require.NoError(t, b.db.QueryRowContext(t.Context(), `SELECT 'SQLite ' || sqlite_version()`).Scan(&version))
	return version
}

func (b *bareSQLite) tidy(t *testing.T) {
	t.Helper()
	_, err := b.db.ExecContext(t.Context(), `PRAGMA wal_checkpoint(TRUNCATE)`)
	require.NoError(t, err)
}

func (*bareSQLite) words() dialect {
	return dialect{
		yes: "1", no: "0", ago: "1700000000000000 + i * 1000",
		series: "(WITH RECURSIVE x (i) AS (SELECT $1 UNION ALL SELECT i + 1 FROM x WHERE i < $2) SELECT i FROM x) x",
		life:   lifeSQLite,
	}
}

// postgresOn returns the backend whose databases are on a server.
func postgresOn(server *parts.PostgresServer) backend {
	return backend{"postgres", "PostgreSQL", func(t *testing.T) benchStore {
		t.Helper()
		at := server.Database(t)
		store, err := postgres.Open(t.Context(), at, postgres.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		config, err := pgxpool.ParseConfig(at)
		require.NoError(t, err)
		config.MaxConns = 1
		config.ConnConfig.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
			return conn.Exec(ctx, `SET search_path = grapnel; SET plan_cache_mode = force_generic_plan`).Close()
		}
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		require.NoError(t, err)
		t.Cleanup(pool.Close)
		return benchStore{store, barePostgres{pool}}
	}}
}

// barePostgres is one connection to a database of PostgreSQL.
type barePostgres struct{ pool *pgxpool.Pool }

// transact sends the statements in one message.
func (b barePostgres) transact(ctx context.Context, all ...statement) error {
	var batch pgx.Batch
	for _, s := range all {
		queued := batch.Queue(s.query, s.args...)
		if s.into != nil {
			queued.QueryRow(func(row pgx.Row) error { return row.Scan(s.into) })
		}
	}
	return b.pool.SendBatch(ctx, &batch).Close()
}

func (b barePostgres) columns(t *testing.T, table string) []string {
	t.Helper()
	rows, err := b.pool.Query(t.Context(), `SELECT column_name::text FROM information_schema.columns
		WHERE table_schema = 'grapnel' AND table_name = $1 AND is_identity = 'NO' AND is_generated = 'NEVER'
			AND coalesce(column_default, '') NOT LIKE 'nextval%'`, table)
	require.NoError(t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return names
}

func (barePostgres) at(now time.Time) any { return now }

func (b barePostgres) size(t *testing.T) (size int64) {
	t.Helper()
	require.NoError(t, b.pool.QueryRow(t.Context(), `SELECT pg_database_size(current_database())`).Scan(&size))
	return size
}

func (b barePostgres) version(t *testing.T) (version string) {
	t.Helper()
	require.NoError(t, b.pool.QueryRow(t.Context(), `SELECT 'PostgreSQL ' || split_part(current_setting('server_version'), ' ', 1)`).Scan(&version))
	return version
}

func (b barePostgres) tidy(t *testing.T) {
	t.Helper()
	for _, query := range []string{`VACUUM ANALYZE`, `CHECKPOINT`} {
		_, err := b.pool.Exec(t.Context(), query)
		require.NoError(t, err)
	}
}

func (barePostgres) words() dialect {
	return dialect{
		yes: "true", no: "false", ago: "'2024-01-01'::timestamptz + i * interval '1 millisecond'",
		series: "generate_series($1::bigint, $2::bigint) x (i)",
		life:   lifePostgres,
	}
}
