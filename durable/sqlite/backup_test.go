package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/sqlite"
)

func TestBackup(t *testing.T) {
	s := open(t, tempFile(t), sqlite.Options{})
	l := park(t, s, "r", wait("c"))
	require.NoError(t, commit(t.Context(), s, l, durable.Update{}, entry(1)))
	path := filepath.Join(t.TempDir(), "it's a copy?.db")
	require.NoError(t, s.Backup(t.Context(), path))
	require.NoError(t, commit(t.Context(), s, l, durable.Update{}, entry(2)))
	err := s.Backup(t.Context(), path)
	require.ErrorIs(t, err, os.ErrExist, "a backup replaces no file")
	require.NoError(t, s.Close())

	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	b := open(t, path, sqlite.Options{})
	entries, err := b.Entries(t.Context(), "r", 0)
	require.NoError(t, err)
	assert.Len(t, entries, 1)
	require.NoError(t, commit(t.Context(), b, l, durable.Update{}, entry(2)))
	require.NoError(t, b.Close())
}

// A backup takes the place of a store that no process has open; the old store is kept. What is no backup changes nothing.
func TestRestore(t *testing.T) {
	path := tempFile(t)
	s := open(t, path, sqlite.Options{})
	l := park(t, s, "r", wait("c"))
	require.NoError(t, commit(t.Context(), s, l, durable.Update{}, entry(1)))
	backup := filepath.Join(t.TempDir(), "backup.db")
	require.NoError(t, s.Backup(t.Context(), backup))
	require.NoError(t, commit(t.Context(), s, l, durable.Update{}, entry(2)))
	_, err := sqlite.Restore(t.Context(), backup, path)
	require.ErrorContains(t, err, "a process has the store open")
	require.NoError(t, commit(t.Context(), s, l, durable.Update{}, entry(3)))
	require.NoError(t, s.Close())

	for name, text := range map[string]string{"nothing": "", "other": "no database, but a text of some length that is not empty"} {
		other := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(other, []byte(text), 0o600))
		_, err := sqlite.Restore(t.Context(), other, path)
		require.Error(t, err, name)
	}
	_, err = sqlite.Restore(t.Context(), filepath.Join(t.TempDir(), "missing"), path)
	require.ErrorIs(t, err, os.ErrNotExist)
	count := func(path string) int {
		s := open(t, path, sqlite.Options{})
		entries, err := s.Entries(t.Context(), "r", 0)
		require.NoError(t, err)
		require.NoError(t, s.Close())
		return len(entries)
	}
	assert.Equal(t, 3, count(path))
	kept, err := sqlite.Restore(t.Context(), backup, path)
	require.NoError(t, err)
	assert.Equal(t, 1, count(path))
	assert.Equal(t, 3, count(kept))
	assert.Equal(t, 1, count(backup), "the backup stays as it is")
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	fresh := filepath.Join(t.TempDir(), "new.db")
	kept, err = sqlite.Restore(t.Context(), backup, fresh)
	require.NoError(t, err)
	assert.Empty(t, kept)
	assert.Equal(t, 1, count(fresh))
	left, err := filepath.Glob(path + ".restored-*")
	require.NoError(t, err)
	assert.Empty(t, left)
}
