package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/postgres"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// hinder makes further plain commits wait in the queue, until the returned func is called.
func hinder(t *testing.T, s *postgres.Store) (goOn func()) {
	t.Helper()
	var group sync.WaitGroup
	var unlocks []func()
	for i := range postgres.GroupsAtOnce {
		id := agent.RunID(fmt.Sprint("blocked ", i))
		l := create(t, s, id)
		unlocks = append(unlocks, lockRun(t, s, id))
		group.Go(func() { assert.NoError(t, s.Commit(t.Context(), l, commit(durable.Update{}, entry(1)))) })
	}
	require.Eventually(t, func() bool {
		return len(column(t, s, waitingQuery)) == postgres.GroupsAtOnce
	}, time.Minute, time.Millisecond)
	return func() {
		for _, unlock := range unlocks {
			unlock()
		}
		group.Wait()
	}
}

// commitQueued makes a Commit in a goroutine, and waits until it is in the queue.
func commitQueued(ctx context.Context, t *testing.T, s *postgres.Store, l durable.Lease, c durable.Commit) (outcome chan error) {
	t.Helper()
	before, outcome := s.Queued(), make(chan error, 1)
	go func() { outcome <- s.Commit(ctx, l, c) }()
	require.Eventually(t, func() bool { return s.Queued() > before }, time.Minute, time.Millisecond)
	return outcome
}

// Commits that wait at the same time are one transaction. One that is refused changes nothing and does not hinder the others.
func TestCommitsShareATransaction(t *testing.T) {
	s := openClosed(t, parts.Postgres(t), postgres.Options{})
	leases := map[agent.RunID]durable.Lease{}
	for _, id := range []agent.RunID{"c", "a", "b", "stale", "late"} {
		leases[id] = create(t, s, id)
	}
	stale := leases["stale"]
	stale.Epoch++
	goOn := hinder(t, s)
	var good []chan error
	for _, id := range []agent.RunID{"c", "a", "b"} {
		good = append(good, commitQueued(t.Context(), t, s, leases[id], commit(durable.Update{}, entry(1))))
	}
	refused := commitQueued(t.Context(), t, s, stale, commit(durable.Update{}, entry(1)))
	outOfOrder := commitQueued(t.Context(), t, s, leases["late"], commit(durable.Update{}, entry(2)))
	goOn()
	for _, outcome := range good {
		require.NoError(t, <-outcome)
	}
	require.ErrorIs(t, <-refused, durable.ErrStale)
	seq, ok := errors.AsType[*durable.SeqError](<-outOfOrder)
	require.True(t, ok)
	assert.Equal(t, &durable.SeqError{Run: "late", Got: 2, Want: 1}, seq)
	for _, id := range []agent.RunID{"c", "a", "b"} {
		assert.Equal(t, []durable.Entry{entry(1)}, journal(t, s, id))
	}
	assert.Empty(t, journal(t, s, "stale"))
	assert.Len(t, column(t, s, `SELECT DISTINCT xmin::text FROM runs WHERE id IN ('a', 'b', 'c')`), 1)
}

// A Commit that the database rejects makes the transaction fail. The others of its group are sent again.
func TestACommitThatFailsInAGroup(t *testing.T) {
	s := openClosed(t, parts.Postgres(t), postgres.Options{})
	good, bad := create(t, s, "good"), create(t, s, "bad")
	_, err := s.Pool().Exec(t.Context(), `INSERT INTO entries (run, seq, kind, key, at) SELECT num, 1, '', '', now() FROM runs WHERE id = 'bad'`)
	require.NoError(t, err)
	goOn := hinder(t, s)
	first := commitQueued(t.Context(), t, s, bad, commit(durable.Update{}, entry(1)))
	second := commitQueued(t.Context(), t, s, good, commit(durable.Update{}, entry(1)))
	goOn()
	said, ok := errors.AsType[*pgconn.PgError](<-first)
	require.True(t, ok)
	assert.Equal(t, "23505", said.Code, "the entry exists")
	require.NoError(t, <-second)
	assert.Equal(t, []durable.Entry{entry(1)}, journal(t, s, "good"))
}

// A Commit whose context ends in the queue is not sent.
func TestACommitThatLeavesTheQueue(t *testing.T) {
	s := openClosed(t, parts.Postgres(t), postgres.Options{})
	l := create(t, s, "a")
	goOn := hinder(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	outcome := commitQueued(ctx, t, s, l, commit(durable.Update{}, entry(1)))
	cancel()
	require.ErrorIs(t, <-outcome, context.Canceled)
	goOn()
	assert.Empty(t, journal(t, s, "a"))
	require.NoError(t, s.Commit(t.Context(), l, commit(durable.Update{}, entry(1))))
}
