package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
	"github.com/grapnel-go/grapnel/durable/sqlite"
)

func TestStore(t *testing.T) {
	durabletest.TestStore(t, func(t *testing.T) durable.Store {
		t.Helper()
		return open(t, tempFile(t), sqlite.Options{})
	})
}

func TestShared(t *testing.T) {
	durabletest.TestShared(t, func(t *testing.T) func(*testing.T) durable.Store {
		t.Helper()
		path := tempFile(t)
		return func(t *testing.T) durable.Store {
			t.Helper()
			return open(t, path, sqlite.Options{})
		}
	})
}

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
