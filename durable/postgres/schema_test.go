package postgres_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/postgres"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// TestProcessesThatStartAtOnce has each of them make the schema, and a run.
func TestProcessesThatStartAtOnce(t *testing.T) {
	t.Parallel()
	const address, number = "GRAPNEL_TEST_POSTGRES_URL", "GRAPNEL_TEST_POSTGRES_NUMBER"
	if at := os.Getenv(address); at != "" {
		s := open(t, at, postgres.Options{})
		_, err := s.Begin(t.Context(), durable.Job{ID: agent.RunID(os.Getenv(number))}, "one", time.Hour)
		require.NoError(t, err)
		require.NoError(t, s.Close())
		return
	}
	at := parts.Postgres(t)
	const n = 4
	var all []*exec.Cmd
	for i := range n {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), address+"="+at, fmt.Sprintf("%s=run %d", number, i))
		cmd.Stderr = os.Stderr
		require.NoError(t, cmd.Start())
		all = append(all, cmd)
	}
	for _, cmd := range all {
		assert.NoError(t, cmd.Wait())
	}
	s := openClosed(t, at, postgres.Options{})
	runs, err := s.List(t.Context(), durable.Filter{})
	require.NoError(t, err)
	assert.Len(t, runs, n)
	assert.Len(t, column(t, s, `SELECT digest FROM schema_digest`), 1)
}

// TestARoleThatMayOnlyWriteRows opens a store whose tables another role created.
func TestARoleThatMayOnlyWriteRows(t *testing.T) {
	t.Parallel()
	at := parts.Postgres(t)
	owner := connect(t, at)
	role := "writer_" + strings.ToLower(schema())
	for _, statement := range []string{
		postgres.SchemaSQL(postgres.Options{}), `CREATE ROLE ` + role + ` LOGIN PASSWORD 'pa/ss@word'`, `GRANT USAGE ON SCHEMA grapnel TO ` + role,
		`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA grapnel TO ` + role,
	} {
		_, err := owner.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	t.Cleanup(func() { // a role belongs to the server, not to the database
		_, _ = connect(t, at).Exec(context.WithoutCancel(t.Context()), `DROP OWNED BY `+role)
	})
	u, err := url.Parse(at)
	require.NoError(t, err)
	u.User = url.UserPassword(role, "pa/ss@word")
	limited := openClosed(t, u.String(), postgres.Options{})
	l := create(t, limited, "r")
	require.NoError(t, limited.Commit(t.Context(), l, commit(durable.Update{Status: durable.StatusCompleted}, entries(1, 2)...)))
	require.NoError(t, limited.Delete(t.Context(), "r"))

	_, err = postgres.Open(t.Context(), u.String(), postgres.Options{Schema: "other"})
	require.ErrorContains(t, err, `open the postgres store: schema "other": create it: ERROR: permission denied`)
	assert.NotContains(t, err.Error(), "ss@word")
	assert.NotContains(t, err.Error(), "ss%40word")
}

// TestOtherTables are refused and left as they are.
func TestOtherTables(t *testing.T) {
	t.Parallel()
	at := parts.Postgres(t)
	db := connect(t, at)
	for name, statement := range map[string]string{
		"another version": `UPDATE schema_digest SET digest = 'another'`,
		"no digest":       `DELETE FROM schema_digest`,
		"an old version":  `DROP TABLE schema_digest; CREATE TABLE migrations (version_id bigint)`,
	} {
		t.Run(name, func(t *testing.T) {
			o := postgres.Options{Schema: `it's "ours": ` + name}
			_, err := db.Exec(t.Context(), postgres.SchemaSQL(o))
			require.NoError(t, err)
			s := openClosed(t, at, o)
			create(t, s, "r")
			_, err = s.Pool().Exec(t.Context(), statement)
			require.NoError(t, err)
			_, err = postgres.Open(t.Context(), at, o)
			require.EqualError(t, err, fmt.Sprintf("open the postgres store: schema %q: ", o.Schema)+"it has the tables of another version of grapnel, "+
				`and is left as it is: export its runs with the grapnel that wrote it ("grapnel runs export ID"), and use another schema or database`)
			assert.Equal(t, "r", string(run(t, s, "r").ID))
		})
	}
}

// connect opens a connection that is closed when the test ends.
func connect(t *testing.T, at string) *pgx.Conn {
	t.Helper()
	db, err := pgx.Connect(context.WithoutCancel(t.Context()), at)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, db.Close(context.WithoutCancel(t.Context()))) })
	return db
}

// whole is what a store says of everything in it.
type whole struct {
	all      []durable.Run
	journals map[agent.RunID][]durable.Entry
	waits    map[agent.RunID][]durable.Wait
	events   map[agent.RunID][]durable.Event
}

func everything(t *testing.T, s durable.Store) whole {
	t.Helper()
	w := whole{journals: map[agent.RunID][]durable.Entry{}, waits: map[agent.RunID][]durable.Wait{}, events: map[agent.RunID][]durable.Event{}}
	var err error
	w.all, err = s.List(t.Context(), durable.Filter{})
	require.NoError(t, err)
	for _, r := range w.all {
		w.journals[r.ID], err = s.Entries(t.Context(), r.ID, 0)
		require.NoError(t, err)
		w.events[r.ID], err = s.Events(t.Context(), r.ID, 0, 100)
		require.NoError(t, err)
		w.waits[r.ID], err = s.Waits(t.Context(), r.ID)
		require.NoError(t, err)
	}
	return w
}
