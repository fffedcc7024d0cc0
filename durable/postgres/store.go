package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// Options configure a store. The zero value is the default.
type Options struct {
	// Schema is the schema of the tables; Open creates it if it does not exist. A database may hold several stores in
	// different schemas. Empty means "grapnel".
	Schema string
	// Conns is the maximum number of connections. Zero means pool_max_conns of the URL, or else the number of processors
	// and at least 16: appends of concurrent runs wait for the disk together when each has a connection. Connections open
	// as needed.
	Conns int
	// Timeout is the time limit of one call, including the wait for a connection. Zero means 30 seconds. An earlier
	// deadline of the context takes precedence.
	Timeout time.Duration
	// Encryption, unless nil, has the keys with which the store encrypts data.
	Encryption *durable.Encryption
}

func (o Options) schema() string { return lo.CoalesceOrEmpty(o.Schema, "grapnel") }

func (o Options) timeout() time.Duration { return lo.CoalesceOrEmpty(o.Timeout, 30*time.Second) }

// Store keeps runs in a PostgreSQL database. It is safe for concurrent use, by any
// number of processes.
type Store struct {
	*machine

	db *db
}

// machine has the rules.
type machine = store.Store

// db keeps the rows.
type db struct {
	pool    *pgxpool.Pool
	schema  string
	timeout time.Duration
	queues  queues
	clock   clock
	steps   *store.Queue[*queuedStep]
	changes *changes
}

// Open opens the store in a database after creating its schema if it does not exist; processes that do so at the same time
// wait for each other. The URL is a postgres URL such as postgres://user@host:5432/database, or a list such as host=...
// user=.... Omitted parts come from the standard variables (PGHOST, PGUSER, PGPASSWORD, PGSSLMODE ...) and the password
// file; the URL may be empty. No error contains the password. Close closes the connections.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	config, err := o.parse(url)
	if err != nil {
		return nil, err
	}
	d := &db{
		schema: o.schema(), timeout: o.timeout(), changes: newChanges(config.ConnConfig, o.schema()),
		steps: store.NewQueue[*queuedStep](groupsAtOnce),
	}
	s, err := store.New(d, o.Encryption)
	if err != nil {
		return nil, err
	}
	if err := o.createSchema(ctx, config.ConnConfig); err != nil {
		return nil, fmt.Errorf("open the postgres store: %w", err)
	}
	if d.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, fmt.Errorf("open the postgres store: %w", err)
	}
	return &Store{s, d}, nil
}

// parse parses a URL. It hides the parser's error, because that quotes the URL, and a parser cannot know which part of an
// invalid URL is the password: a "/" in the password turns it into a port or the name of a database.
func (o Options) parse(at string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(at)
	stray := strayAt.MatchString(at)
	if file, ok := errors.AsType[*fs.PathError](err); ok && !stray {
		return nil, fmt.Errorf("open the postgres store: %w", file)
	}
	if err != nil || stray {
		return nil, errors.New("open the postgres store: the url or a PG variable is invalid: use " +
			"postgres://user@host:5432/database or host=... user=... dbname=..., with the password in PGPASSWORD or " +
			"percent-encoded (%2F for /, %40 for @) (details are omitted because they may show the password)")
	}
	if params := config.ConnConfig.RuntimeParams; params["application_name"] == "" {
		params["application_name"] = "grapnel"
	}
	switch {
	case o.Conns > 0:
		config.MaxConns = int32(min(o.Conns, 1<<16))
	case !limitsConns(at):
		config.MaxConns = max(config.MaxConns, 16)
	}
	config.PingTimeout = lo.CoalesceOrEmpty(config.PingTimeout, 5*time.Second) // replaces a broken connection
	config.ConnConfig.AfterConnect = o.session(o.timeout())
	return config, nil
}

// limitsConns reports whether a URL that can be read, or what it refers to, sets pool_max_conns.
func limitsConns(at string) bool {
	config, err := pgx.ParseConfig(at)
	return err == nil && config.RuntimeParams["pool_max_conns"] != ""
}

// session returns the settings of every session. They are set by a statement because poolers reject parameters of the
// connection.
func (o Options) session(timeout time.Duration) pgconn.AfterConnectFunc {
	ms := strconv.FormatInt(max(1, timeout.Milliseconds()), 10)
	if timeout == 0 {
		ms = "0"
	}
	settings := strings.Join([]string{
		// A client that hangs or disappears must not keep the locks of its rows. This setting comes first because the
		// configured value of the database applies until then.
		"SET statement_timeout = " + ms,
		"SET search_path = " + pgx.Identifier{o.schema()}.Sanitize(),
		"SET default_transaction_isolation = 'read committed'", // a statement after a lock must see the changes that the lock waited for
		"SET plan_cache_mode = force_generic_plan",             // planning a statement that touches a few rows takes longer than executing it
		// Plans are made once, perhaps for an empty table, and used after it has grown: they must not read a table from end to end.
		"SET enable_seqscan = off", "SET enable_bitmapscan = off", "SET enable_hashjoin = off", "SET enable_mergejoin = off",
		"SET jit = off", // compiling takes longer than any of the statements
		"SET idle_in_transaction_session_timeout = " + ms,
		"SET tcp_keepalives_idle = 10", "SET tcp_keepalives_interval = 5", "SET tcp_keepalives_count = 3",
	}, "; ")
	return func(ctx context.Context, conn *pgconn.PgConn) error {
		return conn.Exec(ctx, settings).Close()
	}
}

// strayAt finds an "@" after the part of a URL where it separates the password: the author meant the text before it as a
// password, but the parser reads it as a path.
var strayAt = regexp.MustCompile(`^[a-z]+://[^/?#]*[/?#].*@`)

// Close implements store.DB. It waits for running calls.
func (d *db) Close() error {
	d.changes.Close()
	d.pool.Close()
	return nil
}

// String names the store. It does not show the password.
func (s *Store) String() string {
	c := s.db.pool.Config().ConnConfig
	return fmt.Sprintf("postgres store %s on %s:%d/%s", s.db.schema, c.Host, c.Port, c.Database)
}

// GoString returns what String returns, so that %#v does not show the password either.
func (s *Store) GoString() string { return s.String() }

// LogValue returns what String returns, for a log.
func (s *Store) LogValue() slog.Value { return slog.StringValue(s.String()) }

// call runs one call and retries it where that is safe: when nothing was sent, and when the database rolled the call back
// in favour of another.
func (d *db) call(ctx context.Context, what string, f func(ctx context.Context) error) error {
	within, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	err := f(within)
	for again := 0; again < 3 && err != nil && within.Err() == nil && hadNoEffect(err); again++ {
		err = f(within)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() == nil && (within.Err() != nil || exceededTime(err)):
		if !errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
		}
		return fmt.Errorf("%s: the database did not answer within %s: %w", what, d.timeout, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// exceededTime reports whether the database cancelled a statement, which has as much time there as here.
func exceededTime(err error) bool {
	said, ok := errors.AsType[*pgconn.PgError](err)
	return ok && said.Code == "57014"
}

// hadNoEffect reports whether a failed call had no effect and is likely to succeed when repeated.
func hadNoEffect(err error) bool {
	if said, ok := errors.AsType[*pgconn.PgError](err); ok {
		return slices.Contains([]string{
			"40001", "40P01", // another session goes first: serialization failure, deadlock
			missingValue, missingRow,
		}, said.Code)
	}
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	return pgconn.SafeToRetry(err) && !connecting
}

// The codes of errors that say that a queue was deleted since it was read, or that a new run uses a queue: see queues.
const (
	missingValue = "23502"
	missingRow   = "23503"
)
