package upgrade_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
	"github.com/grapnel-go/grapnel/durable/postgres"
	"github.com/grapnel-go/grapnel/durable/sqlite"
	"github.com/grapnel-go/grapnel/internal/parts"
	"github.com/grapnel-go/grapnel/internal/upgrade"
)

// known returns a part of what a version knew of what it stored.
func known(t *testing.T, version, name string) any {
	t.Helper()
	var all map[string]any
	require.NoError(t, json.Unmarshal(upgrade.Read(t, version, "facts.json"), &all))
	require.Contains(t, all, name)
	if store, ok := all[name].(map[string]any); ok {
		return renamed(store)
	}
	return all[name]
}

// unpack writes the SQLite file of a version into a folder of the test.
func unpack(t *testing.T, version, name string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "runs.db")
	upgrade.Unpack(t, version, name, path)
	return path
}

func openFile(t *testing.T, path string) durable.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

func TestSQLite(t *testing.T) {
	upgrade.EachVersion(t, func(t *testing.T, version string) {
		t.Helper()
		checkStore(t, version, "sqlite", openFile(t, unpack(t, version, "sqlite")))
	})
}

func TestEncrypted(t *testing.T) {
	upgrade.EachVersion(t, func(t *testing.T, version string) {
		t.Helper()
		file := openFile(t, unpack(t, version, "encrypted"))
		_, err := durable.Load(t.Context(), file, runParked)
		require.Error(t, err, "the file shows nothing without the key")
		checkStore(t, version, "encrypted", encrypt(t, file))
	})
}

func TestPostgres(t *testing.T) {
	upgrade.EachVersion(t, func(t *testing.T, version string) {
		t.Helper()
		at := restore(t, version)
		s, err := postgres.Open(t.Context(), at, postgres.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, s.Close()) })
		checkStore(t, version, "postgres", s)
	})
}

// restore returns the URL of a database with the dump of a version.
func restore(t *testing.T, version string) (url string) {
	t.Helper()
	url = parts.Postgres(t)
	dump := upgrade.Read(t, version, "postgres.sql")
	db, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	_, err = db.PgConn().Exec(t.Context(), string(dump)).ReadAll()
	require.NoError(t, err)
	require.NoError(t, db.Close(t.Context()))
	return url
}

// checkStore checks that a store, which this version has opened and so upgraded, says what the version before knew, and
// takes its runs to their ends.
func checkStore(t *testing.T, version, name string, s durable.Store) {
	t.Helper()
	upgrade.AssertFacts(t, known(t, version, name), plain(t, storeFacts(t, s)), name)
	require.NoError(t, s.SetDenyTools(t.Context(), durable.Switch{}))

	w := newWorld()
	keeper := durable.Keep(s, durable.Options{Owner: "later"})
	agents := w.agents(t, keeper)
	resume := func(id agent.RunID) agent.State {
		t.Helper()
		about, err := s.Run(t.Context(), id)
		require.NoError(t, err)
		final, err := keeper.Resume(t.Context(), agents[about.Name], id, durable.TakeFree).Get()
		require.NoError(t, err, "%s", id)
		return final
	}

	assert.True(t, resume(runParked).Waiting(), "without an answer it waits on")
	token := known(t, version, name+" tokens").(map[string]any)[string(runParked)].(string)
	question, err := s.WaitByToken(t.Context(), durable.TokenHash(token))
	require.NoError(t, err, "a link that was sent before the upgrade")
	require.Equal(t, runParked, question.Run)
	for id, call := range map[agent.RunID]string{runParked: "ask", runBoss: "t/ask"} {
		require.NoError(t, durabletest.Approve(t.Context(), s, id, call, agent.Approval{Verdict: agent.Approve, By: "ann"}))
	}
	for id, answer := range map[agent.RunID]string{
		runParked: "Paid.", runAnswered: "Paid.", runBoss: "Delegated.", runCut: "Added.", runJob: "Read.", runChild: "Read.", runDone: "Read.",
	} {
		final := resume(id)
		assert.Equal(t, agent.StatusDone, final.Status(), "%s", id)
		assert.Equal(t, answer, final.Answer(), "%s", id)
	}
	_, err = keeper.Resume(t.Context(), agents["clerk"], runCancelled, durable.TakeFree).Get()
	require.ErrorContains(t, err, "not needed")
	cancelled, err := s.Run(t.Context(), runCancelled)
	require.NoError(t, err)
	assert.Equal(t, durable.StatusCancelled, cancelled.Status)
	answered, err := durable.Load(t.Context(), s, runAnswered)
	require.NoError(t, err)
	assert.Contains(t, fmt.Sprint(plain(t, stateFacts(answered))), `{"amount":3}`, "the arguments that were approved")

	// What was done before the upgrade is not done again. The call that was cut off is, with the key it had.
	done := w.done()
	for _, what := range []string{"run_cut a", "run_cut receipt of a", "run_done rewrite", "run_done receipt of see"} {
		assert.Zero(t, done[what], what)
	}
	for _, what := range []string{"run_cut b", "run_parked ask", "run_answered ask", "run_job rewrite", "run_child rewrite"} {
		assert.Equal(t, 1, done[what], what)
	}
	assert.Equal(t, "run_cut/0/b", w.keys["run_cut b"])
	_, err = s.Reconcile(t.Context())
	require.NoError(t, err)
	ready, err := s.List(t.Context(), durable.Filter{Status: []durable.Status{durable.StatusReady, durable.StatusRunning}})
	require.NoError(t, err)
	assert.Empty(t, ready)
}

// refusesRollback reports whether a store cannot be converted back because it holds runs that have not started, which the
// first schemas cannot store. Any other error fails the test.
func refusesRollback(t *testing.T, err error) bool {
	t.Helper()
	if err == nil {
		return false
	}
	require.ErrorContains(t, err, "runs that have not started")
	return true
}

// TestMigrationsBothWays takes the stores of each version through every step of the schema, back and forth.
func TestMigrationsBothWays(t *testing.T) {
	upgrade.EachVersion(t, func(t *testing.T, version string) {
		t.Helper()
		t.Run("sqlite", func(t *testing.T) {
			path := unpack(t, version, "sqlite")
			newest, err := sqlite.Migrate(t.Context(), path)
			require.NoError(t, err)
			for at := newest; at > 1; {
				if at, err = sqlite.Rollback(t.Context(), path); refusesRollback(t, err) {
					break
				}
			}
			upgrade.AssertFacts(t, known(t, version, "sqlite"), plain(t, storeFacts(t, openFile(t, path))), "sqlite")
		})
		t.Run("postgres", func(t *testing.T) {
			at := restore(t, version)
			newest, err := postgres.Migrate(t.Context(), at, postgres.Options{})
			require.NoError(t, err)
			for v := newest; v > 1; {
				if v, err = postgres.Rollback(t.Context(), at, postgres.Options{}); refusesRollback(t, err) {
					break
				}
			}
			s, err := postgres.Open(t.Context(), at, postgres.Options{})
			require.NoError(t, err)
			defer s.Close()
			upgrade.AssertFacts(t, known(t, version, "postgres"), plain(t, storeFacts(t, s)), "postgres")
		})
	})
}

// TestNewerStores: a store whose schema a later version has changed is refused, and left as it is.
func TestNewerStores(t *testing.T) {
	upgrade.EachVersion(t, func(t *testing.T, version string) {
		t.Helper()
		t.Run("sqlite", func(t *testing.T) {
			path := unpack(t, version, "sqlite")
			db, err := sql.Open("sqlite", path)
			require.NoError(t, err)
			_, err = db.ExecContext(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)`)
			require.NoError(t, err)
			require.NoError(t, db.Close())
			_, err = sqlite.Open(t.Context(), path, sqlite.Options{})
			require.ErrorContains(t, err, "the file has schema version 99 and this program supports ")
			require.ErrorContains(t, err, ": use the newer program")
		})
		t.Run("postgres", func(t *testing.T) {
			at := restore(t, version)
			db, err := pgx.Connect(t.Context(), at)
			require.NoError(t, err)
			_, err = db.Exec(t.Context(), `INSERT INTO grapnel.migrations (version_id, is_applied) VALUES (99, true)`)
			require.NoError(t, err)
			require.NoError(t, db.Close(t.Context()))
			_, err = postgres.Open(t.Context(), at, postgres.Options{})
			require.ErrorContains(t, err, "the schema has version 99 and this program supports versions up to ")
			require.ErrorContains(t, err, ": use a newer program")
		})
	})
}

// TestNewerEntries: a run whose journal a later version has continued is refused, and the others are not.
func TestNewerEntries(t *testing.T) {
	upgrade.EachVersion(t, func(t *testing.T, version string) {
		t.Helper()
		path := unpack(t, version, "sqlite")
		db, err := sql.Open("sqlite", path)
		require.NoError(t, err)
		_, err = db.ExecContext(t.Context(), `UPDATE entries SET data = CAST('{"version":99,"novelty":true}' AS BLOB)
			WHERE kind = 'park' AND run = (SELECT n FROM runs WHERE id = 'run_parked')`)
		require.NoError(t, err)
		require.NoError(t, db.Close())
		s := openFile(t, path)
		_, err = durable.Load(t.Context(), s, runParked)
		require.ErrorContains(t, err, "loading run run_parked: ")
		require.ErrorContains(t, err, "version 99 is newer than this program reads (")
		_, err = durable.Load(t.Context(), s, runBoss)
		require.NoError(t, err)
	})
}
