package postgres_test

import (
	"crypto/rand"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
	"github.com/grapnel-go/grapnel/durable/postgres"
	"github.com/grapnel-go/grapnel/internal/parts"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(parts.Tests{M: m}) }

func TestStore(t *testing.T) {
	url := parts.Postgres(t)
	durabletest.TestStore(t, func(t *testing.T) durable.Store {
		return open(t, url, postgres.Options{Schema: rand.Text()})
	})
}

func TestSharedStore(t *testing.T) {
	url := parts.Postgres(t)
	durabletest.TestShared(t, func(t *testing.T) func(t *testing.T) durable.Store {
		o := postgres.Options{Schema: rand.Text()}
		return func(t *testing.T) durable.Store { return open(t, url, o) }
	})
}

func open(t testing.TB, url string, o postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), url, o)
	require.NoError(t, err)
	return s
}
