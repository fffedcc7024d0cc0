//go:build !unix

package parts

import "testing"

// PostgresServer is a PostgreSQL server for tests.
type PostgresServer struct{}

// Postgres skips the test: servers are started on Unix only.
func Postgres(t testing.TB) string {
	t.Helper()
	return NewPostgres(t).Database(t)
}

// Tests runs a binary's tests.
type Tests struct{ M *testing.M }

// Run runs the tests.
func (t Tests) Run() int { return t.M.Run() }

// NewPostgres skips the test: servers are started on Unix only.
func NewPostgres(t testing.TB, _ ...string) *PostgresServer {
	t.Helper()
	Missing(t, "tests start a PostgreSQL server on Unix only")
	return nil
}

// Stop stops the server as a crash would.
func (*PostgresServer) Stop(testing.TB) {}

// Start starts the server that was stopped.
func (*PostgresServer) Start(testing.TB) {}

// Database returns the URL of a new, empty database.
func (*PostgresServer) Database(testing.TB) string { return "" }
