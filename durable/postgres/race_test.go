package postgres_test

import (
	"context"
	"fmt"
	"net/url"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/postgres"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// TestAChildThatEndsWhileItsParentParks has neither of them see the other's writing
// before it ends: the process that comes second must wake the parent all the same.
func TestAChildThatEndsWhileItsParentParks(t *testing.T) {
	at := parts.Postgres(t)
	here, there := openClosed(t, at, postgres.Options{}), openClosed(t, at, postgres.Options{})
	for i := range 40 {
		parent, child := agent.RunID(fmt.Sprint("parent ", i)), agent.RunID(fmt.Sprint("child ", i))
		p, c := create(t, here, parent), create(t, there, child)
		waits := durable.Update{Status: durable.StatusWaiting, Waits: []durable.Wait{{ID: "c", Subject: "h", Child: child}, {ID: "d"}}}
		var group sync.WaitGroup
		group.Go(func() { assert.NoError(t, here.Commit(t.Context(), p, commit(waits, entry(1)))) })
		group.Go(func() {
			assert.NoError(t, there.Commit(t.Context(), c, commit(durable.Update{Status: durable.StatusCompleted}, entry(1))))
		})
		group.Wait()
		require.NoError(t, here.Release(t.Context(), p, 0))
		require.Equal(t, []agent.RunID{parent}, ready(t, there), "round %d", i)
		require.NoError(t, there.Delete(t.Context(), parent))
	}
}

// TestADeadlock has the database end one of two that wait for each other: the store
// makes its call again and its caller does not notice.
func TestADeadlock(t *testing.T) {
	s := openClosed(t, parts.Postgres(t), postgres.Options{})
	p, c := create(t, s, "parent"), create(t, s, "child")
	waits := durable.Update{Status: durable.StatusWaiting, Waits: []durable.Wait{{ID: "c", Child: "child"}}}
	require.NoError(t, s.Commit(t.Context(), p, commit(waits)))
	require.NoError(t, s.Release(t.Context(), p, 0))

	other, err := s.Pool().Begin(t.Context())
	require.NoError(t, err)
	for _, statement := range []string{
		`SET LOCAL deadlock_timeout = '1min'`, // the store's call is the one to be ended
		`SELECT FROM runs WHERE id = 'parent' FOR UPDATE`,
	} {
		_, err = other.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	done := make(chan error)
	go func() {
		done <- s.Commit(t.Context(), c, commit(durable.Update{Status: durable.StatusCompleted}, entry(1)))
	}()
	waiting(t, s) // the call has the child and waits for the parent
	_, err = other.Exec(t.Context(), `SELECT FROM runs WHERE id = 'child' FOR UPDATE`)
	require.NoError(t, err)
	require.NoError(t, other.Commit(t.Context()))
	require.NoError(t, <-done)
	// Twice, when the call is back at the child before the other transaction is awake.
	assert.NotEqual(t, []string{"0"}, column(t, s, `SELECT deadlocks::text FROM pg_stat_database WHERE datname = current_database()`))
	assert.Equal(t, []agent.RunID{"parent"}, ready(t, s))
	assert.Equal(t, []durable.Entry{entry(1)}, journal(t, s, "child"))
}

// Reconcile does not wait for a run that another transaction changes.
func TestReconcileSkipsLockedRuns(t *testing.T) {
	s := openClosed(t, parts.Postgres(t), postgres.Options{})
	later := time.Now().Add(time.Hour)
	_, err := s.Submit(t.Context(), durable.Job{ID: "locked", NotBefore: later}, durable.Job{ID: "free", NotBefore: later})
	require.NoError(t, err)
	_, err = s.Pool().Exec(t.Context(), `UPDATE runs SET not_before = now() - interval '1 s'`)
	require.NoError(t, err)
	unlock := lock(t, s, "locked")
	done, err := s.Reconcile(t.Context())
	require.NoError(t, err)
	assert.Equal(t, durable.Reconciled{Due: 1, Done: true}, done)
	assert.Equal(t, []agent.RunID{"free"}, ready(t, s))
	unlock()
	done, err = s.Reconcile(t.Context())
	require.NoError(t, err)
	assert.Equal(t, durable.Reconciled{Due: 1, Done: true}, done)
}

// Prune does not wait for a run that another transaction changes.
func TestPruneSkipsLockedRuns(t *testing.T) {
	s := openClosed(t, parts.Postgres(t), postgres.Options{})
	for _, id := range []agent.RunID{"locked", "free"} {
		require.NoError(t, s.Commit(t.Context(), create(t, s, id), commit(durable.Update{Status: durable.StatusCompleted}, entry(1))))
	}
	unlock := lock(t, s, "locked")
	for range 2 {
		n, err := s.Prune(t.Context(), time.Now().Add(time.Hour))
		require.NoError(t, err)
		assert.Equal(t, 1, n)
		unlock()
	}
	require.ErrorIs(t, second(s.Run(t.Context(), "locked")), durable.ErrNotFound)
}

// lock locks a run in a transaction of its own until the returned function is called.
func lock(t *testing.T, s *postgres.Store, id agent.RunID) (unlock func()) {
	t.Helper()
	other, err := s.Pool().Begin(t.Context())
	require.NoError(t, err)
	_, err = other.Exec(t.Context(), `SELECT FROM runs WHERE id = $1 FOR UPDATE`, id)
	require.NoError(t, err)
	unlock = sync.OnceFunc(func() { _ = other.Rollback(context.WithoutCancel(t.Context())) })
	t.Cleanup(unlock)
	return unlock
}

// whileBlocked begins a transaction that executes a statement, calls f, and commits the transaction when f waits for it.
func whileBlocked(t *testing.T, s *postgres.Store, statement string, f func() error, then ...string) error {
	t.Helper()
	other, err := s.Pool().Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = other.Rollback(t.Context()) }()
	_, err = other.Exec(t.Context(), statement)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- f() }()
	waiting(t, s)
	for _, statement := range then {
		_, err = other.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	require.NoError(t, other.Commit(t.Context()))
	return <-done
}

// Another process stores an idempotency key after a call has found that no run has it.
func TestAKeyThatAnotherProcessStores(t *testing.T) {
	s := openClosed(t, parts.Postgres(t), postgres.Options{})
	_, err := s.Submit(t.Context(), durable.Job{ID: "known", IdempotencyKey: "known"}, durable.Job{ID: "theirs", IdempotencyKey: "other"})
	require.NoError(t, err)
	var runs []durable.Run
	err = whileBlocked(t, s, `UPDATE runs SET idempotency_key = 'new' WHERE id = 'theirs'`, func() (err error) {
		runs, err = s.Submit(t.Context(), durable.Job{IdempotencyKey: "known"}, durable.Job{IdempotencyKey: "new"})
		return err
	})
	require.NoError(t, err)
	assert.Equal(t, []agent.RunID{"known", "theirs"}, ids(runs))
}

// A run that waits for something else when its child ends goes on waiting.
func TestAChildThatEndsWhileItsParentAsksAgain(t *testing.T) {
	s := openClosed(t, parts.Postgres(t), postgres.Options{})
	p, c := create(t, s, "parent"), create(t, s, "child")
	require.NoError(t, s.Commit(t.Context(), p, commit(durable.Update{Status: durable.StatusWaiting, Waits: []durable.Wait{{ID: "c", Child: "child"}}})))
	require.NoError(t, s.Release(t.Context(), p, 0))
	err := whileBlocked(t, s, `SELECT FROM runs WHERE id = 'parent' FOR UPDATE`, func() error {
		return s.Commit(t.Context(), c, commit(durable.Update{Status: durable.StatusCompleted}))
	}, `UPDATE waits SET child = '' WHERE run_id = 'parent'`)
	require.NoError(t, err)
	assert.Equal(t, durable.StatusWaiting, run(t, s, "parent").Status)
}

// A queue that was undone with its run must be stored with the next one.
func TestARefusedRunsQueue(t *testing.T) {
	s := openClosed(t, parts.Postgres(t), postgres.Options{})
	create(t, s, "r")
	job := durable.Job{ID: "r", Name: "new"}
	needs := durable.Needs{Kind: durable.KindAgent, Name: "new"}
	_, err := s.Submit(t.Context(), job)
	require.ErrorIs(t, err, durable.ErrExists)
	assert.False(t, s.Remembers(needs.Key()))
	job.ID = "s"
	_, err = s.Submit(t.Context(), job)
	require.NoError(t, err)
	assert.True(t, s.Remembers(needs.Key()))
}

func TestHowManyConnections(t *testing.T) {
	at := parts.Postgres(t)
	assert.Equal(t, int32(3), openClosed(t, at, postgres.Options{Conns: 3}).Pool().Config().MaxConns)
	assert.Equal(t, int32(max(16, runtime.NumCPU())), openClosed(t, at, postgres.Options{}).Pool().Config().MaxConns)
	u, err := url.Parse(at)
	require.NoError(t, err)
	q := u.Query()
	q.Set("pool_max_conns", "7")
	u.RawQuery = q.Encode()
	assert.Equal(t, int32(7), openClosed(t, u.String(), postgres.Options{}).Pool().Config().MaxConns)

	// Who finds no connection free waits for one, as long as a call may take.
	s := openClosed(t, at, postgres.Options{Conns: 1, Timeout: 1500 * time.Millisecond})
	conn, err := s.Pool().Acquire(t.Context())
	require.NoError(t, err)
	_, err = s.Run(t.Context(), "r")
	conn.Release() // or the store would not close
	require.ErrorContains(t, err, "reading a run: the database did not answer within 1.5s")
	_, err = s.Run(t.Context(), "r")
	require.ErrorIs(t, err, durable.ErrNotFound)
}

// TestAnAnswerThatComesWithItsWait and does not say when it was given.
func TestAnAnswerThatComesWithItsWait(t *testing.T) {
	s := openClosed(t, parts.Postgres(t), postgres.Options{})
	l := create(t, s, "r")
	asked := []durable.Wait{{ID: "c", Answer: &durable.Answer{Ends: true, Data: []byte("no")}}, {ID: "d"}}
	require.NoError(t, s.Commit(t.Context(), l, commit(durable.Update{Status: durable.StatusWaiting, Waits: asked})))
	require.NoError(t, s.Release(t.Context(), l, 0))
	got, err := s.Waits(t.Context(), "r")
	require.NoError(t, err)
	require.NotNil(t, got[0].Answer)
	assert.WithinDuration(t, run(t, s, "r").Created, got[0].Answer.At, time.Minute)
	assert.Equal(t, []any{"c", true, "no"}, []any{got[0].Answer.Wait, got[0].Answer.Ends, string(got[0].Answer.Data)})
	assert.Nil(t, got[1].Answer)
	assert.Equal(t, []agent.RunID{"r"}, ready(t, s), "an answer that ends the run")
}
