package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/postgres"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// receive waits for a value of Changes.
func receive(t *testing.T, changed <-chan struct{}, what string) {
	t.Helper()
	select {
	case _, open := <-changed:
		require.True(t, open, what)
	case <-time.After(time.Minute):
		require.Fail(t, "no change", what)
	}
}

const listenersQuery = `SELECT pid::text FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'`

// TestChangesOfAnotherHandle listens on one handle and writes on another.
func TestChangesOfAnotherHandle(t *testing.T) {
	t.Parallel()
	at, o := parts.Postgres(t), postgres.Options{Schema: `it's "ours"`}
	here, there := openClosed(t, at, o), openClosed(t, at, o)
	foreign := openClosed(t, at, postgres.Options{})
	changed := here.Changes(t.Context())
	second := here.Changes(t.Context())
	require.NoError(t, foreign.Release(t.Context(), create(t, foreign, "foreign"), 0))

	l := create(t, there, "r")
	require.NoError(t, there.Commit(t.Context(), l, commit(durable.Update{Status: durable.StatusRunning}, entry(1))))
	require.NoError(t, there.Commit(t.Context(), l, commit(durable.Update{
		Status: durable.StatusWaiting, Waits: []durable.Wait{{ID: "c", Subject: "h"}},
	})))
	select {
	case <-changed:
		require.Fail(t, "no run became ready")
	case <-time.After(300 * time.Millisecond):
	}
	require.NoError(t, there.Signal(t.Context(), "r", durable.Signal{Kind: durable.SignalContext, Text: "hint"}))
	receive(t, changed, "a signal")
	require.NoError(t, there.Answer(t.Context(), "r", durable.Answers(durable.Answer{Wait: "c"})))
	require.NoError(t, there.Release(t.Context(), l, 0))
	receive(t, changed, "a released run")
	receive(t, second, "the other channel holds a value")
	assert.Len(t, column(t, here, listenersQuery), 1, "one connection for all channels")
}

// TestChangesAfterALostConnection terminates the connection that listens.
func TestChangesAfterALostConnection(t *testing.T) {
	t.Parallel()
	s := openClosed(t, parts.Postgres(t), postgres.Options{})
	changed := s.Changes(t.Context())
	for range 3 {
		require.Equal(t, []string{"true"}, column(t, s, `SELECT pg_terminate_backend(pid::int)::text FROM (`+listenersQuery+`) x`))
		receive(t, changed, "changes may have been missed")
		require.NoError(t, second(s.Submit(t.Context(), durable.Job{})))
		receive(t, changed, "a new run")
	}
}

// TestChangesWithoutADatabase listens before the server is up.
func TestChangesWithoutADatabase(t *testing.T) {
	t.Parallel()
	server := parts.NewPostgres(t, "fsync=off")
	s := openClosed(t, server.Database(t), postgres.Options{})
	server.Stop(t)
	ctx, cancel := context.WithCancel(t.Context())
	changed := s.Changes(ctx)
	server.Start(t)
	receive(t, changed, "changes may have been missed")
	require.NoError(t, second(s.Submit(t.Context(), durable.Job{})))
	receive(t, changed, "a new run")
	cancel()
	for range changed {
		continue // until it is closed
	}
	_, open := <-s.Changes(ctx)
	assert.False(t, open, "a context that is done")
}
