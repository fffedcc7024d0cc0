package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable/sqlite"
)

func tempFile(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "runs.db")
}

func open(t testing.TB, path string, o sqlite.Options) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, o)
	require.NoError(t, err)
	return s
}
