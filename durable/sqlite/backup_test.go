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
