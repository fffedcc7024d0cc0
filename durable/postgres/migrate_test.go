package postgres_test

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

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
		_, err := s.Create(t.Context(), durable.Run{ID: agent.RunID(os.Getenv(number))}, "one", time.Hour)
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
	assert.Equal(t, []string{"0", "1", "2"}, column(t, s, `SELECT version_id::text FROM migrations ORDER BY id`), "each step was taken once")
}

func TestMigrateBothWaysWithData(t *testing.T) {
	t.Parallel()
	at, o := parts.Postgres(t), postgres.Options{Schema: `it's "ours"`}
	version, err := postgres.Migrate(t.Context(), at, o)
	require.NoError(t, err)
	assert.Equal(t, int64(2), version)
	s := open(t, at, o)
	l := create(t, s, "parked")
	asked := durable.Question{Call: "c", Hash: "h", Tool: "bash", TokenHash: [32]byte{1}, Data: []byte("may I?")}
	require.NoError(t, s.Append(t.Context(), l, durable.Update{Status: agent.StatusParked, Steps: 3, Questions: []durable.Question{asked}}, entries(1, 3)...))
	require.NoError(t, s.Answer(t.Context(), "parked", durable.Answer{Call: "c", Hash: "h", Data: []byte("yes")}))
	require.NoError(t, s.Release(t.Context(), l))
	create(t, s, "held")
	before := everything(t, s)
	require.Len(t, before.due, 1)
	require.NoError(t, s.Close())

	version, err = postgres.Rollback(t.Context(), at, o)
	require.NoError(t, err)
	assert.Equal(t, int64(1), version)
	_, err = postgres.Rollback(t.Context(), at, o)
	require.ErrorContains(t, err, "first version")

	s = openClosed(t, at, o)
	assert.Equal(t, before, everything(t, s), "a step back and a step forward")
	_, err = s.Pool().Exec(t.Context(), `INSERT INTO migrations (version_id, is_applied) VALUES (99, true)`)
	require.NoError(t, err)
	_, err = postgres.Open(t.Context(), at, o)
	require.ErrorContains(t, err, "version 99 and this program supports versions up to 2")
	_, err = postgres.Rollback(t.Context(), at, o)
	require.ErrorContains(t, err, "downgrade with the program that created it")
}

// TestAStepBackUnderAProgram looks at a store whose schema changes below it: what it
// had prepared fits no longer, and that is not for its users to know.
func TestAStepBackUnderAProgram(t *testing.T) {
	at := parts.Postgres(t)
	s := openClosed(t, at, postgres.Options{})
	create(t, s, "r")
	list := func() []agent.RunID {
		runs, err := s.List(t.Context(), durable.Filter{Status: []agent.Status{agent.StatusRunning}})
		require.NoError(t, err)
		return ids(runs)
	}
	assert.Equal(t, []agent.RunID{"r"}, list())
	_, err := postgres.Rollback(t.Context(), at, postgres.Options{})
	require.NoError(t, err)
	assert.Equal(t, []agent.RunID{"r"}, list())
	_, err = s.Due(t.Context(), 1)
	require.ErrorContains(t, err, `look for due runs: ERROR: column r.due does not exist`)
	_, err = postgres.Migrate(t.Context(), at, postgres.Options{})
	require.NoError(t, err)
	_, err = s.Due(t.Context(), 1)
	require.NoError(t, err)
	assert.Equal(t, []agent.RunID{"r"}, list())
}

// TestARoleThatMayOnlyWriteRows opens a store that another role has made.
func TestARoleThatMayOnlyWriteRows(t *testing.T) {
	at := parts.Postgres(t)
	s := openClosed(t, at, postgres.Options{})
	role := "writer_" + strings.ToLower(schema())
	for _, statement := range []string{
		`CREATE ROLE %s LOGIN PASSWORD 'pa/ss@word'`, `GRANT USAGE ON SCHEMA grapnel TO %s`,
		`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA grapnel TO %s`,
	} {
		_, err := s.Pool().Exec(t.Context(), fmt.Sprintf(statement, role))
		require.NoError(t, err)
	}
	u, err := url.Parse(at)
	require.NoError(t, err)
	u.User = url.UserPassword(role, "pa/ss@word")
	limited := openClosed(t, u.String(), postgres.Options{})
	l := create(t, limited, "r")
	require.NoError(t, limited.Append(t.Context(), l, durable.Update{Status: agent.StatusDone}, entries(1, 2)...))
	require.NoError(t, limited.Delete(t.Context(), "r"))

	_, err = postgres.Open(t.Context(), u.String(), postgres.Options{Schema: "other"})
	require.ErrorContains(t, err, `migrate schema "other": make the schema: ERROR: permission denied`)
	assert.NotContains(t, err.Error(), "ss@word")
	assert.NotContains(t, err.Error(), "ss%40word")
	t.Cleanup(func() { // a role belongs to the server, not to the database
		_, _ = s.Pool().Exec(t.Context(), `DROP OWNED BY `+role)
	})
}

// whole is what a store says of everything in it.
type whole struct {
	all, due  []durable.Run
	journals  map[agent.RunID][]durable.Entry
	questions map[agent.RunID][]durable.Question
}

func everything(t *testing.T, s durable.Store) whole {
	t.Helper()
	w := whole{journals: map[agent.RunID][]durable.Entry{}, questions: map[agent.RunID][]durable.Question{}}
	var err error
	w.all, err = s.List(t.Context(), durable.Filter{})
	require.NoError(t, err)
	w.due, err = s.Due(t.Context(), 100)
	require.NoError(t, err)
	for _, r := range w.all {
		w.journals[r.ID], err = s.Entries(t.Context(), r.ID, 0)
		require.NoError(t, err)
		w.questions[r.ID], err = s.Questions(t.Context(), r.ID)
		require.NoError(t, err)
	}
	return w
}
