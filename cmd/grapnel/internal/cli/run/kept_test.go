package run

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable/sqlite"
)

// A word after a bare --durable that names a store is a mistake; other words are the prompt.
func TestIsStoreName(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	store, err := sqlite.Open(t.Context(), filepath.Join(dir, "runs"), sqlite.Options{})
	require.NoError(t, err)
	require.NoError(t, store.Close())
	require.NoError(t, os.WriteFile("notes.txt", []byte("SQLite"), 0o600))
	for word, want := range map[string]bool{
		"runs.db": true, "work/x.sqlite": true, "sqlite:runs": true, "postgres://db/runs": true, "runs": true,
		"pay": false, "notes.txt": false, ".": false, "fix runs.db": false, "": false, "postgres": false,
	} {
		assert.Equal(t, want, isStoreName(word), word)
	}
}
