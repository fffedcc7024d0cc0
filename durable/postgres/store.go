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
)

// Options says how a store uses its database. The zero value is the default.
type Options struct {
	// Schema is the schema that holds the tables; it is made when it is not there. A
	// database may hold several stores. Empty means "grapnel".
	Schema string
	// Conns is how many connections there are at most. Zero means what the URL says in
	// pool_max_conns, or else the number of processors and at least 16: appends of concurrent
	// runs wait for the disk together when each has a connection. Connections open as needed.
	Conns int
	// Timeout is how long one call takes at most, waiting for a connection included.
	// Zero means 30 seconds. A context that ends earlier ends it earlier.
	Timeout time.Duration
}

func (o Options) schema() string { return lo.CoalesceOrEmpty(o.Schema, "grapnel") }

func (o Options) timeout() time.Duration { return lo.CoalesceOrEmpty(o.Timeout, 30*time.Second) }

// Store keeps runs in a PostgreSQL database. It is safe for concurrent use, by any
// number of processes.
type Store struct {
	pool    *pgxpool.Pool
	schema  string
	timeout time.Duration
}

var _ durable.Store = (*Store)(nil)

// Open opens the store in a database, and makes it or brings it up to date first:
// processes that do so at once wait for one another. The URL is one such as
// postgres://user@host:5432/database, or words such as host=... user=...; what it
// leaves out, or all when it is empty, comes from the standard variables (PGHOST,
// PGUSER, PGPASSWORD, PGSSLMODE ...) and the password file. No error has the password
// in it. Close gives the connections up.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	config, err := o.parse(url)
	if err != nil {
		return nil, err
	}
	if _, err := o.withProvider(ctx, config.ConnConfig, migrateUp); err != nil {
		return nil, fmt.Errorf("open the postgres store: %w", err)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open the postgres store: %w", err)
	}
	return &Store{pool: pool, schema: o.schema(), timeout: o.timeout()}, nil
}

// parse reads a URL. What the reader says of a URL that it cannot read quotes from it,
// and no parser knows which part of such a URL is the password: a "/" in it is enough to
// make it a port, or the name of a database.
func (o Options) parse(at string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(at)
	stray := strayAt.MatchString(at)
	if file, ok := errors.AsType[*fs.PathError](err); ok && !stray {
		return nil, fmt.Errorf("open the postgres store: %w", file)
	}
	if err != nil || stray {
		return nil, errors.New("open the postgres store: the url, or one of the PG variables, cannot be read: give " +
			"postgres://user@host:5432/database or host=... user=... dbname=..., with the password in PGPASSWORD or " +
			"percent-encoded (%2F for /, %40 for @); no more is said of it here, since that may show the password")
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
	config.PingTimeout = lo.CoalesceOrEmpty(config.PingTimeout, 5*time.Second) // one that broke unseen makes way for another
	config.ConnConfig.AfterConnect = o.session(o.timeout())
	return config, nil
}

// limitsConns reports whether a URL that can be read, or what it refers to, sets pool_max_conns.
func limitsConns(at string) bool {
	config, err := pgx.ParseConfig(at)
	return err == nil && config.RuntimeParams["pool_max_conns"] != ""
}

// session returns what every session begins with. It is asked for in a statement, since
// poolers do not let parameters of the connection through.
func (o Options) session(timeout time.Duration) pgconn.AfterConnectFunc {
	ms := strconv.FormatInt(max(1, timeout.Milliseconds()), 10)
	if timeout == 0 {
		ms = "0"
	}
	settings := strings.Join([]string{
		// A client that hangs or is gone must not keep others from its rows. This one is
		// first: what the database has for it counts until then.
		"SET statement_timeout = " + ms,
		"SET search_path = " + pgx.Identifier{o.schema()}.Sanitize(),
		"SET default_transaction_isolation = 'read committed'", // what follows a lock must see what the lock has waited for
		"SET idle_in_transaction_session_timeout = " + ms,
		"SET tcp_keepalives_idle = 10", "SET tcp_keepalives_interval = 5", "SET tcp_keepalives_count = 3",
	}, "; ")
	return func(ctx context.Context, conn *pgconn.PgConn) error {
		return conn.Exec(ctx, settings).Close()
	}
}

// strayAt finds an "@" behind the part of a URL where it has a meaning: before it stands
// what is a password to its author and a path to the parser.
var strayAt = regexp.MustCompile(`^[a-z]+://[^/?#]*[/?#].*@`)

// Close gives the connections up, when the calls that use them have ended.
func (s *Store) Close() error {
	s.pool.Close()
	return nil
}

// String names the store. It does not show the password.
func (s *Store) String() string {
	c := s.pool.Config().ConnConfig
	return fmt.Sprintf("postgres store %s on %s:%d/%s", s.schema, c.Host, c.Port, c.Database)
}

// GoString returns what String returns, so that %#v does not show the password either.
func (s *Store) GoString() string { return s.String() }

// LogValue returns what String returns, for a log.
func (s *Store) LogValue() slog.Value { return slog.StringValue(s.String()) }

// call makes one call, again where that is sure to do no harm: when nothing was sent,
// and when the database undid it all to let another go first.
func (s *Store) call(ctx context.Context, what string, f func(ctx context.Context) error) error {
	within, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	err := f(within)
	for again := 0; again < 3 && err != nil && within.Err() == nil && hadNoEffect(err); again++ {
		err = f(within)
	}
	switch {
	case err == nil:
		return nil
	case within.Err() != nil && ctx.Err() == nil:
		return fmt.Errorf("%s: the database did not answer within %s: %w", what, s.timeout, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// hadNoEffect reports whether a call that failed with an error has had no effect and is
// likely to go well the next time.
func hadNoEffect(err error) bool {
	if said, ok := errors.AsType[*pgconn.PgError](err); ok {
		return slices.Contains([]string{
			"40001", "40P01", // another session goes first: serialization failure, deadlock
			"0A000", // a statement was prepared before the schema changed
		}, said.Code)
	}
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	return pgconn.SafeToRetry(err) && !connecting
}

// batch sends statements at once. They are one transaction.
func (s *Store) batch(ctx context.Context, b *pgx.Batch) error {
	return s.pool.SendBatch(ctx, b).Close()
}
