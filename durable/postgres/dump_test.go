package postgres_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/postgres"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// The commands in docs/durability.md back up a store and restore it: what happened since is gone, and the store works on.
func TestDumpAndRestore(t *testing.T) {
	t.Parallel()
	url := parts.Postgres(t)
	for _, program := range []string{"pg_dump", "pg_restore"} {
		if _, err := exec.LookPath(program); err != nil {
			parts.Missing(t, program+" is not installed: run apt-get install postgresql-client")
		}
	}
	run := func(program string, args ...string) {
		out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
		require.NoError(t, err, "%s: %s", program, out)
	}
	s, err := postgres.Open(t.Context(), url, postgres.Options{})
	require.NoError(t, err)
	job, err := durable.AgentJob("clerk", agent.NewState(), agent.UserText("hello"))
	require.NoError(t, err)
	job.ID = "run_before"
	_, err = s.Submit(t.Context(), job)
	require.NoError(t, err)
	dump := filepath.Join(t.TempDir(), "friday.dump")
	run("pg_dump", "--format=custom", "--schema=grapnel", "--file="+dump, url)
	require.NoError(t, s.Delete(t.Context(), "run_before"))
	job.ID = "run_after"
	_, err = s.Submit(t.Context(), job)
	require.NoError(t, err)
	require.NoError(t, s.Close())

	run("pg_restore", "--clean", "--if-exists", "--single-transaction", "--dbname="+url, dump)
	s, err = postgres.Open(t.Context(), url, postgres.Options{})
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Close()) }()
	r, err := s.Run(t.Context(), "run_before")
	require.NoError(t, err)
	assert.Equal(t, durable.StatusReady, r.Status)
	_, err = s.Run(t.Context(), "run_after")
	require.ErrorIs(t, err, durable.ErrNotFound)
	job.ID = "run_later"
	_, err = s.Submit(t.Context(), job)
	require.NoError(t, err, "the numbers of runs go on")
}
