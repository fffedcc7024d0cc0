package sqlite_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/sqlite"
)

// clock is one that tests set.
type clock struct{ now atomic.Pointer[time.Time] }

func (c *clock) set(now time.Time) { c.now.Store(&now) }
func (c *clock) Now() time.Time    { return *c.now.Load() }

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func atNoon(t *testing.T) (*sqlite.Store, *clock) {
	t.Helper()
	c := &clock{}
	c.set(noon)
	s := open(t, tempFile(t), sqlite.Options{Now: c.Now, Sync: sqlite.SyncNormal})
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s, c
}

func TestLeaseRunsOut(t *testing.T) {
	s, c := atNoon(t)
	l, err := s.Create(t.Context(), durable.Run{ID: "r"}, "one", time.Minute)
	require.NoError(t, err)
	assert.Equal(t, noon.Add(time.Minute), l.Expires)
	claims := func() error {
		_, err := s.Claim(t.Context(), "r", "two", time.Minute, durable.TakeFree)
		return err
	}

	c.set(noon.Add(time.Minute - time.Microsecond))
	require.ErrorAs(t, claims(), new(*durable.HeldError))
	l, err = s.Renew(t.Context(), l, time.Minute)
	require.NoError(t, err)
	c.set(l.Expires.Add(-time.Microsecond))
	require.ErrorAs(t, claims(), new(*durable.HeldError))
	assert.Empty(t, dueIDs(t, s))
	c.set(l.Expires)
	assert.Equal(t, []agent.RunID{"r"}, dueIDs(t, s))
	require.NoError(t, claims())
}

func TestClockSetBack(t *testing.T) {
	s, c := atNoon(t)
	l, err := s.Create(t.Context(), durable.Run{ID: "old"}, "one", time.Minute)
	require.NoError(t, err)

	c.set(noon.Add(-time.Second))
	_, err = s.Claim(t.Context(), "old", "two", time.Minute, durable.TakeFree)
	require.ErrorAs(t, err, new(*durable.HeldError), "a clock that was set right by a second takes no lease away")
	assert.Empty(t, dueIDs(t, s))

	c.set(noon.AddDate(-1, 0, 0))
	assert.Equal(t, []agent.RunID{"old"}, dueIDs(t, s), "a lease that was given next year has run out")
	require.NoError(t, s.Append(t.Context(), l, durable.Update{}, entry(1)), "though no process took it yet")
	_, err = s.Create(t.Context(), durable.Run{ID: "new"}, "one", time.Minute)
	require.NoError(t, err)
	taken, err := s.Claim(t.Context(), "old", "two", time.Minute, durable.TakeFree)
	require.NoError(t, err)
	assert.Equal(t, c.Now().Add(time.Minute), taken.Expires)
	require.ErrorIs(t, s.Append(t.Context(), l, durable.Update{}, entry(2)), durable.ErrStale)
	assert.Empty(t, dueIDs(t, s))

	runs, err := s.List(t.Context(), durable.Filter{})
	require.NoError(t, err)
	assert.Equal(t, []agent.RunID{"new", "old"}, []agent.RunID{runs[0].ID, runs[1].ID}, "the newest is the last that was made")

	c.set(noon)
	require.NoError(t, s.Release(t.Context(), taken))
	c.set(noon.AddDate(-1, 0, 0))
	assert.Contains(t, dueIDs(t, s), agent.RunID("old"), "what was given up next year is due")
}

func TestDueInOrder(t *testing.T) {
	s, c := atNoon(t)
	minute := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }
	create := func(id agent.RunID, ttl time.Duration) durable.Lease {
		l, err := s.Create(t.Context(), durable.Run{ID: id}, "one", ttl)
		require.NoError(t, err)
		return l
	}
	parked := func(id agent.RunID, q durable.Question) {
		l := park(t, s, id, q)
		require.NoError(t, s.Release(t.Context(), l))
	}
	late, kid := question("c"), question("c")
	late.Deadline, kid.Child = minute(4), "kid"

	create("ran out at 5", 5*time.Minute)
	givenUp := create("given up at 3", time.Hour)
	child := create("kid", time.Hour)
	parked("late at 4", late)
	parked("child ended at 1", kid)
	parked("answered at 2", question("c"))
	parked("cancelled at 6", question("c"))
	assert.Empty(t, dueIDs(t, s))

	c.set(minute(1))
	require.NoError(t, s.Append(t.Context(), child, durable.Update{Status: agent.StatusDone}))
	c.set(minute(2))
	require.NoError(t, s.Answer(t.Context(), "answered at 2", answer("c")))
	c.set(minute(3))
	require.NoError(t, s.Release(t.Context(), givenUp))
	c.set(minute(6))
	require.NoError(t, s.Cancel(t.Context(), "cancelled at 6", "enough"))
	assert.Equal(t, []agent.RunID{
		"child ended at 1", "answered at 2", "given up at 3", "late at 4", "ran out at 5", "cancelled at 6",
	}, dueIDs(t, s))
}

func TestPruneByTime(t *testing.T) {
	s, c := atNoon(t)
	for i, id := range []agent.RunID{"a", "b"} {
		c.set(noon.Add(time.Duration(i) * time.Hour))
		l, err := s.Create(t.Context(), durable.Run{ID: id}, "one", time.Minute)
		require.NoError(t, err)
		require.NoError(t, s.Append(t.Context(), l, durable.Update{Status: agent.StatusDone}))
	}
	n, err := s.Prune(t.Context(), noon)
	require.NoError(t, err)
	assert.Zero(t, n, "what ended at that moment did not end before it")
	n, err = s.Prune(t.Context(), noon.Add(time.Hour))
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	_, err = s.Run(t.Context(), "b")
	require.NoError(t, err)
}

func TestPruneMany(t *testing.T) {
	path := tempFile(t)
	s := open(t, path, sqlite.Options{Sync: sqlite.SyncNormal})
	fill(t, path, 1001)
	raw(t, path, "UPDATE runs SET status = 'done' WHERE id <> 'run500' RETURNING ''")
	n, err := s.Prune(t.Context(), time.Now())
	require.NoError(t, err)
	assert.Equal(t, 1000, n)
	runs, err := s.List(t.Context(), durable.Filter{Limit: 2000})
	require.NoError(t, err)
	assert.Len(t, runs, 1)
	require.NoError(t, s.Close())
	assert.Equal(t, "3", raw(t, path, "SELECT count(*) FROM entries"))
}

func dueIDs(t *testing.T, s *sqlite.Store) (ids []agent.RunID) {
	t.Helper()
	runs, err := s.Due(t.Context(), 100)
	require.NoError(t, err)
	for _, r := range runs {
		ids = append(ids, r.ID)
	}
	return ids
}
