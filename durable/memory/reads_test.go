package memory

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// countedDB counts what transactions ask for beside the waits of locked runs, which come with the lock.
type countedDB struct {
	*db

	asked int
}

func (d *countedDB) Write(ctx context.Context, doing string, f func(store.Tx) error) error {
	return d.db.Write(ctx, doing, func(t store.Tx) error { return f(countedTx{t, d}) })
}

type countedTx struct {
	store.Tx

	db *countedDB
}

func (t countedTx) Runs(ids ...agent.RunID) (map[agent.RunID]store.Run, error) {
	t.db.asked++
	return t.Tx.Runs(ids...)
}

func (t countedTx) Lock(ids ...agent.RunID) (map[agent.RunID]store.Run, error) {
	t.db.asked++
	return t.Tx.Lock(ids...)
}

func (t countedTx) LockWaiters(child agent.RunID) ([]store.Run, error) {
	t.db.asked++
	return t.Tx.LockWaiters(child)
}

// An end asks the database no more often when more runs wait for it.
func TestAnEndThatManyRunsWaitFor(t *testing.T) {
	ask := func(waiters int) int {
		d := &countedDB{db: newDB()}
		s, err := store.New(d, nil)
		require.NoError(t, err)
		l, err := s.Begin(t.Context(), durable.Job{ID: "child", Name: "a"}, "one", time.Hour)
		require.NoError(t, err)
		for i := range waiters {
			_, err := s.Submit(t.Context(), durable.Job{ID: agent.RunID(fmt.Sprint(i)), Name: "a", After: "child"})
			require.NoError(t, err)
		}
		d.asked = 0
		require.NoError(t, s.Commit(t.Context(), l, durable.Commit{Update: durable.Update{Status: durable.StatusCompleted}}))
		ready, err := s.List(t.Context(), durable.Filter{Status: []durable.Status{durable.StatusReady}})
		require.NoError(t, err)
		require.Len(t, ready, waiters)
		return d.asked
	}
	assert.Equal(t, ask(2), ask(20))
}
