package postgres_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
	"github.com/grapnel-go/grapnel/durable/postgres"
	"github.com/grapnel-go/grapnel/internal/parts"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(parts.Tests{M: m}) }

func TestStore(t *testing.T) {
	t.Parallel()
	durabletest.TestStore(t, openEmpty(t, postgres.Options{}))
}

func TestEncryptedIsAStore(t *testing.T) {
	t.Parallel()
	durabletest.TestStore(t, openEmpty(t, postgres.Options{Encryption: &durable.Encryption{Key: bytes.Repeat([]byte{1}, 32)}}))
}

func TestRandom(t *testing.T) {
	t.Parallel()
	durabletest.TestRandom(t, openEmpty(t, postgres.Options{}))
}

// openEmpty returns a func that empties a schema and returns a store on it. New schemas and connections take a tenth of a second.
func openEmpty(t *testing.T, o postgres.Options) func(t *testing.T) durable.Store {
	t.Helper()
	opened := openClosed(t, parts.Postgres(t), o)
	return func(t *testing.T) durable.Store {
		t.Helper()
		empty(t, opened)
		s, err := opened.Reuse(o.Encryption)
		require.NoError(t, err)
		return s
	}
}

func empty(t *testing.T, s *postgres.Store) {
	t.Helper()
	_, err := s.Pool().Exec(t.Context(), `DELETE FROM runs; DELETE FROM settings; DELETE FROM queues; DELETE FROM audit;
		DELETE FROM waivers; DELETE FROM documents; DELETE FROM rule_counts`)
	require.NoError(t, err)
}

func TestSharedStore(t *testing.T) {
	t.Parallel()
	url := parts.Postgres(t)
	first := openClosed(t, url, postgres.Options{})
	durabletest.TestShared(t, func(t *testing.T) func(t *testing.T) durable.Store {
		t.Helper()
		empty(t, first)
		return func(t *testing.T) durable.Store {
			t.Helper()
			return open(t, url, postgres.Options{})
		}
	})
}

// schema returns the name of a schema that is not there.
func schema() string { return rand.Text() }

func open(t testing.TB, url string, o postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), url, o)
	require.NoError(t, err)
	return s
}

// openClosed opens a store that is closed when the test ends.
func openClosed(t testing.TB, url string, o postgres.Options) *postgres.Store {
	t.Helper()
	s := open(t, url, o)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

func create(t testing.TB, s durable.Store, id agent.RunID) durable.Lease {
	t.Helper()
	l, err := s.Begin(t.Context(), durable.Job{ID: id, Session: "s", Name: "a"}, "one", time.Hour)
	require.NoError(t, err)
	return l
}

func commit(u durable.Update, entries ...durable.Entry) durable.Commit {
	return durable.Commit{Update: u, Entries: entries}
}

func entry(seq int64) durable.Entry {
	return durable.Entry{
		Seq: seq, Kind: "reply", Key: fmt.Sprint("call ", seq),
		At: time.Date(2026, 11, 21, 12, 0, int(seq%60), 0, time.UTC), Data: fmt.Append(nil, "data ", seq),
	}
}

func entries(from, to int64) []durable.Entry {
	return lo.Map(lo.RangeFrom(from, int(to-from+1)), func(seq int64, _ int) durable.Entry { return entry(seq) })
}

func journal(t testing.TB, s durable.Store, id agent.RunID) []durable.Entry {
	t.Helper()
	all, err := s.Entries(t.Context(), id, 0)
	require.NoError(t, err)
	return all
}

// key is the key of the queue of the runs that create creates.
func key() durable.Key { return durable.Needs{Kind: durable.KindAgent, Name: "a"}.Key() }

// claim claims ready runs of that queue.
func claim(t testing.TB, s durable.Store, limit int) []durable.Run {
	t.Helper()
	runs, err := s.Claim(t.Context(), "two", time.Hour, limit, key())
	require.NoError(t, err)
	return runs
}

// ready returns the ready runs, newest first.
func ready(t testing.TB, s durable.Store) []agent.RunID {
	t.Helper()
	runs, err := s.List(t.Context(), durable.Filter{Status: []durable.Status{durable.StatusReady}})
	require.NoError(t, err)
	return ids(runs)
}

func run(t testing.TB, s durable.Store, id agent.RunID) durable.Run {
	t.Helper()
	r, err := s.Run(t.Context(), id)
	require.NoError(t, err)
	return r
}

func ids(runs []durable.Run) []agent.RunID {
	return lo.Map(runs, func(r durable.Run, _ int) agent.RunID { return r.ID })
}

// column returns what a query of one column of text says.
func column(t testing.TB, s *postgres.Store, query string, args ...any) []string {
	t.Helper()
	rows, err := s.Pool().Query(t.Context(), query, args...)
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return all
}
