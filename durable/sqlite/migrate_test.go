package sqlite_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/sqlite"
)

const countIndexes = "SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"

func TestMigrateBothWaysWithData(t *testing.T) {
	path := tempFile(t)
	s := open(t, path, sqlite.Options{})
	q := question("c")
	q.TokenHash = [32]byte{1}
	require.NoError(t, s.Append(t.Context(), park(t, s, "r", q), durable.Update{}, entry(1), entry(2)))
	require.NoError(t, s.Answer(t.Context(), "r", answer("c")))
	require.NoError(t, s.SetDenyTools(t.Context(), durable.Switch{On: true, Reason: "fire"}))
	find := func(s *sqlite.Store) []any {
		run, err := s.Run(t.Context(), "r")
		require.NoError(t, err)
		entries, err := s.Entries(t.Context(), "r", 0)
		require.NoError(t, err)
		found, err := s.QuestionByToken(t.Context(), q.TokenHash)
		require.NoError(t, err)
		sw, err := s.DenyTools(t.Context())
		require.NoError(t, err)
		runs, err := s.List(t.Context(), durable.Filter{Status: []agent.Status{agent.StatusParked}})
		require.NoError(t, err)
		return []any{run, entries, found, sw, runs}
	}
	before := find(s)
	require.NoError(t, s.Close())
	indexes := raw(t, path, countIndexes)

	version, err := sqlite.Rollback(t.Context(), path)
	require.NoError(t, err)
	assert.Equal(t, int64(1), version)
	assert.Equal(t, "0", raw(t, path, countIndexes))
	assert.Equal(t, "2", raw(t, path, "SELECT count(*) FROM entries"), "no data is lost")
	_, err = sqlite.Rollback(t.Context(), path)
	require.ErrorContains(t, err, "the schema has its first version: there is no earlier one")

	version, err = sqlite.Migrate(t.Context(), path)
	require.NoError(t, err)
	assert.Equal(t, int64(2), version)
	assert.Equal(t, indexes, raw(t, path, countIndexes))
	_, err = sqlite.Rollback(t.Context(), path)
	require.NoError(t, err)

	s = open(t, path, sqlite.Options{})
	assert.Equal(t, before, find(s), "open brings it up to date by itself")
	require.NoError(t, s.Close())
	assert.Equal(t, indexes, raw(t, path, countIndexes))
	assert.Equal(t, "ok", raw(t, path, "PRAGMA integrity_check"))
	assert.Empty(t, raw(t, path, "PRAGMA foreign_key_check"))
}
