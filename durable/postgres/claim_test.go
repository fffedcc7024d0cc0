package postgres_test

import (
	"fmt"
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

// TestManyClaimOfManyHandles has many workers of several handles claim from three queues: each run is claimed once, and none is
// left when they find nothing.
func TestManyClaimOfManyHandles(t *testing.T) {
	t.Parallel()
	at := parts.Postgres(t)
	const handles, workers, runs = 3, 8, 300
	var stores []*postgres.Store
	for range handles {
		stores = append(stores, openClosed(t, at, postgres.Options{Conns: 6}))
	}
	var keys []durable.Key
	var jobs []durable.Job
	for i := range runs {
		j := durable.Job{ID: agent.RunID(fmt.Sprint("run ", i)), Name: fmt.Sprint("name ", i%3), Priority: int8(i % 2)}
		jobs, keys = append(jobs, j), append(keys, durable.Job{Kind: durable.KindAgent, Name: j.Name}.Needs().Key())
	}
	require.NoError(t, second(stores[0].Submit(t.Context(), jobs...)))
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		seen  = map[agent.RunID]int{}
	)
	for h, s := range stores {
		for w := range workers {
			group.Go(func() {
				last := int8(1)
				for {
					claimed, err := s.Claim(t.Context(), fmt.Sprint(h, w), time.Hour, 1+w%3, keys[:3]...)
					if !assert.NoError(t, err) || len(claimed) == 0 {
						return
					}
					mu.Lock()
					for _, r := range claimed {
						seen[r.ID]++
						assert.Equal(t, []any{durable.StatusRunning, int64(1), 1, fmt.Sprint(h, w)}, []any{r.Status, r.Epoch, r.Attempts, r.Owner})
						assert.LessOrEqual(t, r.Priority, last, "a higher priority comes first")
						last = r.Priority
					}
					mu.Unlock()
				}
			})
		}
	}
	group.Wait()
	assert.Len(t, seen, runs)
	for id, n := range seen {
		assert.Equal(t, 1, n, id)
	}
	assert.Empty(t, ready(t, stores[0]))
}

// TestClaimsInOrder claims from two queues: by priority, then by the time since when a run is ready.
func TestClaimsInOrder(t *testing.T) {
	t.Parallel()
	s := openClosed(t, parts.Postgres(t), postgres.Options{})
	a, b := durable.Job{Name: "a"}, durable.Job{Name: "b", Demands: map[string]string{"gpu": `"a100" \x`}}
	for i, priority := range []int8{0, 5, -3, 5, 0, 127, -128, 0} {
		j := a
		if i%2 == 1 {
			j = b
		}
		j.ID, j.Priority = agent.RunID(fmt.Sprint(i)), priority
		require.NoError(t, second(s.Submit(t.Context(), j)))
	}
	needs, err := s.Queues(t.Context())
	require.NoError(t, err)
	require.Len(t, needs, 2)
	keys := []durable.Key{needs[0].Key(), needs[1].Key()}
	var got []agent.RunID
	for _, limit := range []int{1, 3, 10, 10} {
		runs, err := s.Claim(t.Context(), "one", time.Hour, limit, keys...)
		require.NoError(t, err)
		got = append(got, ids(runs)...)
		for _, r := range runs {
			assert.Contains(t, needs, r.Needs())
		}
	}
	assert.Equal(t, []agent.RunID{"5", "1", "3", "0", "4", "7", "2", "6"}, got)
}

// TestARunThatIsLocked is skipped, and the runs behind it are claimed.
func TestARunThatIsLocked(t *testing.T) {
	t.Parallel()
	s := openClosed(t, parts.Postgres(t), postgres.Options{})
	for i := range 20 {
		require.NoError(t, second(s.Submit(t.Context(), durable.Job{ID: agent.RunID(fmt.Sprint(i)), Name: "a"})))
	}
	tx, err := s.Pool().Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT FROM runs WHERE id::int < 10 FOR UPDATE`)
	require.NoError(t, err)
	assert.Equal(t, []agent.RunID{"10"}, ids(claim(t, s, 1)), "ten heads are locked")
	assert.Len(t, claim(t, s, 20), 9)
	assert.Empty(t, claim(t, s, 20))
	require.NoError(t, tx.Rollback(t.Context()))
	assert.Len(t, claim(t, s, 20), 10)
}

// TestAQueueThatIsPruned submits to a queue that another handle has removed.
func TestAQueueThatIsPruned(t *testing.T) {
	t.Parallel()
	at := parts.Postgres(t)
	s, other := openClosed(t, at, postgres.Options{}), openClosed(t, at, postgres.Options{})
	for range 3 {
		l := create(t, s, "r")
		require.NoError(t, s.Commit(t.Context(), l, commit(durable.Update{Status: durable.StatusCompleted})))
		n, err := other.Prune(t.Context(), time.Now().Add(time.Minute))
		require.NoError(t, err)
		assert.Equal(t, 1, n)
		needs, err := other.Queues(t.Context())
		require.NoError(t, err)
		assert.Empty(t, needs)
	}
	l := create(t, s, "parent")
	require.NoError(t, s.Commit(t.Context(), l, durable.Commit{Jobs: []durable.Job{{ID: "first", Name: "b"}}}))
	require.NoError(t, other.Delete(t.Context(), "first"))
	require.NoError(t, second(other.Prune(t.Context(), time.Now())))
	require.NoError(t, s.Commit(t.Context(), l, durable.Commit{Jobs: []durable.Job{{ID: "second", Name: "b"}}}))
	assert.Equal(t, []agent.RunID{"second"}, ready(t, s))
}

// TestReconcileInBatches has more runs than one call changes, and several handles at once.
func TestReconcileInBatches(t *testing.T) {
	t.Parallel()
	at := parts.Postgres(t)
	s, other := openClosed(t, at, postgres.Options{}), openClosed(t, at, postgres.Options{})
	_, err := s.Submit(t.Context(), durable.Job{Name: "a", NotBefore: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	_, err = s.Pool().Exec(t.Context(), `INSERT INTO runs (id, session, kind, name, parent, root, status, reason, steps, owner, epoch, queue,
			not_before, created, updated)
		SELECT 'run ' || i, '', 'agent', 'a', '', '', 'pending', '', 0, '', 0, (SELECT id FROM queues), now(), now(), now() FROM generate_series(1, 2500) i`)
	require.NoError(t, err)
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		due   int
	)
	for _, s := range []*postgres.Store{s, other, s} {
		group.Go(func() {
			for {
				done, err := s.Reconcile(t.Context())
				if !assert.NoError(t, err) {
					return
				}
				mu.Lock()
				due += done.Due
				mu.Unlock()
				if done.Done {
					return
				}
			}
		})
	}
	group.Wait()
	done, err := s.Reconcile(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 2500, due+done.Due)
	readOnly := openClosed(t, at+"&default_transaction_read_only=on", postgres.Options{})
	done, err = readOnly.Reconcile(t.Context())
	require.NoError(t, err, "nothing is written")
	assert.Equal(t, durable.Reconciled{Done: true}, done)
	require.Error(t, second(readOnly.Submit(t.Context(), durable.Job{})))
}
