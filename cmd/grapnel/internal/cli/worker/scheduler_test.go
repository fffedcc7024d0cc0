package worker

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable/sqlite"
)

func TestOpenScheduler(t *testing.T) {
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "runs.db"), sqlite.Options{})
	require.NoError(t, err)
	defer store.Close()
	env := map[string]string{}
	getenv := func(name string) string { return env[name] }

	s, closeIt, err := openScheduler(t.Context(), store, getenv)
	require.NoError(t, err)
	assert.Nil(t, s)
	require.NoError(t, closeIt())

	env["TEMPORAL_ADDRESS"] = "127.0.0.1:1"
	_, _, err = openScheduler(t.Context(), store, getenv)
	require.ErrorContains(t, err, "connecting to Temporal at 127.0.0.1:1")
	env["TEMPORAL_TLS"] = "perhaps"
	_, _, err = openScheduler(t.Context(), store, getenv)
	require.ErrorContains(t, err, "TEMPORAL_TLS")
}
