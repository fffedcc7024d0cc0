package sqlite_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/samber/lo"
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
	l, err := s.Begin(t.Context(), durable.Job{ID: "r"}, "one", time.Minute)
	require.NoError(t, err)
	assert.Equal(t, noon.Add(time.Minute), l.Expires)
	claims := func() error {
		_, err := s.Acquire(t.Context(), "r", "two", time.Minute, durable.TakeFree)
		return err
	}

	c.set(noon.Add(time.Minute - time.Microsecond))
	require.ErrorAs(t, claims(), new(*durable.HeldError))
	l, err = s.Renew(t.Context(), l, time.Minute)
	require.NoError(t, err)
	c.set(l.Expires.Add(-time.Microsecond))
	require.ErrorAs(t, claims(), new(*durable.HeldError))
	assert.Empty(t, freed(t, s))
	c.set(l.Expires)
	assert.Equal(t, []agent.RunID{"r"}, freed(t, s))
	require.NoError(t, claims())
}

func TestClockSetBack(t *testing.T) {
	s, c := atNoon(t)
	l, err := s.Begin(t.Context(), durable.Job{ID: "old"}, "one", time.Minute)
	require.NoError(t, err)

	c.set(noon.Add(-time.Second))
	_, err = s.Acquire(t.Context(), "old", "two", time.Minute, durable.TakeFree)
	require.ErrorAs(t, err, new(*durable.HeldError), "a clock that was set right by a second takes no lease away")
	assert.Empty(t, freed(t, s))

	c.set(noon.AddDate(-1, 0, 0))
	require.NoError(t, commit(t.Context(), s, l, durable.Update{}, entry(1)), "no process took it yet")
	assert.Equal(t, []agent.RunID{"old"}, freed(t, s), "a lease that was given next year has run out")
	_, err = s.Begin(t.Context(), durable.Job{ID: "new"}, "one", time.Minute)
	require.NoError(t, err)
	taken, err := s.Acquire(t.Context(), "old", "two", time.Minute, durable.TakeFree)
	require.NoError(t, err)
	assert.Equal(t, c.Now().Add(time.Minute), taken.Expires)
	require.ErrorIs(t, commit(t.Context(), s, l, durable.Update{}, entry(2)), durable.ErrStale)
	done, err := s.Reconcile(t.Context())
	require.NoError(t, err)
	assert.False(t, done.Changed())

	runs, err := s.List(t.Context(), durable.Filter{})
	require.NoError(t, err)
	assert.Equal(t, []agent.RunID{"new", "old"}, []agent.RunID{runs[0].ID, runs[1].ID}, "the newest is the last that was made")

	c.set(noon)
	require.NoError(t, s.Release(t.Context(), taken, 0))
	c.set(noon.AddDate(-1, 0, 0))
	runs, err = s.Claim(t.Context(), "three", time.Minute, 1, durable.Needs{Kind: durable.KindAgent}.Key())
	require.NoError(t, err)
	assert.Len(t, runs, 1, "a run that became ready next year is ready now")
}

// Each cause for which Reconcile changes runs, at the microsecond at which it applies.
func TestReconcileCauses(t *testing.T) {
	s, c := atNoon(t)
	minute := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }
	waiting := func(id agent.RunID, q durable.Wait) durable.Lease {
		l := park(t, s, id, q)
		require.NoError(t, s.Release(t.Context(), l, 0))
		return l
	}
	late := wait("c")
	late.Deadline = minute(2)
	_, err := s.Begin(t.Context(), durable.Job{ID: "expires at 1"}, "one", time.Minute)
	require.NoError(t, err)
	waiting("unanswered at 2", late)
	waiting("paused and unanswered at 2", late)
	require.NoError(t, s.Signal(t.Context(), "paused and unanswered at 2", durable.Signal{Kind: durable.SignalPause}))
	_, err = s.Submit(t.Context(),
		durable.Job{ID: "due at 3", NotBefore: minute(3)},
		durable.Job{ID: "late at 4", NotBefore: minute(60), Deadline: minute(4)},
		durable.Job{ID: "not started at 5", NotBefore: minute(5), StartBy: minute(5)},
	)
	require.NoError(t, err)
	parent := wait("d")
	parent.Child = "not started at 5"
	waiting("parent", parent)

	for i, want := range []struct {
		durable.Reconciled
		id     agent.RunID
		status durable.Status
		reason string
	}{
		1: {durable.Reconciled{Expired: 1}, "expires at 1", durable.StatusReady, ""},
		2: {durable.Reconciled{Overdue: 1}, "unanswered at 2", durable.StatusReady, ""},
		3: {durable.Reconciled{Due: 1}, "due at 3", durable.StatusReady, ""},
		4: {durable.Reconciled{Late: 1}, "late at 4", durable.StatusCancelled, "the deadline has passed"},
		5: {durable.Reconciled{Due: 1, Late: 1}, "not started at 5", durable.StatusCancelled, "it did not start in time"},
	} {
		if i == 0 {
			continue
		}
		want.Done = true
		c.set(minute(i).Add(-time.Microsecond))
		done, err := s.Reconcile(t.Context())
		require.NoError(t, err)
		assert.Equal(t, durable.Reconciled{Done: true}, done, "a microsecond before minute %d", i)
		c.set(minute(i))
		done, err = s.Reconcile(t.Context())
		require.NoError(t, err)
		assert.Equal(t, want.Reconciled, done, "minute %d", i)
		r, err := s.Run(t.Context(), want.id)
		require.NoError(t, err)
		assert.Equal(t, want.status, r.Status, want.id)
		assert.Equal(t, want.reason, r.CancelReason, want.id)
		assert.Equal(t, lo.Ternary(r.Status.Ended(), time.Time{}, minute(i)), r.Ready, want.id)
	}
	r, err := s.Run(t.Context(), "parent")
	require.NoError(t, err)
	assert.Equal(t, durable.StatusReady, r.Status, "the end of a run that did not start wakes its parent")
	r, err = s.Run(t.Context(), "paused and unanswered at 2")
	require.NoError(t, err)
	assert.Equal(t, durable.StatusWaiting, r.Status)
}

// A wait expires by the clock of the moment at which Reconcile looks: a jump that is taken back before changes nothing, and after
// a jump back the wait expires at its deadline, not never.
func TestAClockThatJumps(t *testing.T) {
	s, c := atNoon(t)
	w := wait("c")
	w.Deadline = noon.Add(time.Hour)
	require.NoError(t, s.Release(t.Context(), park(t, s, "r", w), 0))
	overdue := func() int {
		done, err := s.Reconcile(t.Context())
		require.NoError(t, err)
		waits, err := s.Waits(t.Context(), "r")
		require.NoError(t, err)
		assert.Equal(t, w.Deadline, waits[0].Deadline)
		return done.Overdue
	}
	c.set(noon.AddDate(1, 0, 0)) // and back, before a pass
	c.set(noon.Add(time.Minute))
	assert.Zero(t, overdue())
	c.set(noon.AddDate(-1, 0, 0))
	assert.Zero(t, overdue())
	c.set(w.Deadline.Add(-time.Microsecond))
	assert.Zero(t, overdue())
	c.set(w.Deadline)
	assert.Equal(t, 1, overdue())
	r, err := s.Run(t.Context(), "r")
	require.NoError(t, err)
	assert.Equal(t, durable.StatusReady, r.Status)
}

// More runs than one call handles.
func TestReconcileInBatches(t *testing.T) {
	s, c := atNoon(t)
	jobs := make([]durable.Job, 1500)
	for i := range jobs {
		jobs[i].NotBefore = noon.Add(time.Minute)
	}
	_, err := s.Submit(t.Context(), jobs...)
	require.NoError(t, err)
	c.set(noon.Add(time.Hour))
	for _, want := range []durable.Reconciled{{Due: 1000}, {Due: 500, Done: true}, {Done: true}} {
		done, err := s.Reconcile(t.Context())
		require.NoError(t, err)
		assert.Equal(t, want, done)
	}
}

func TestPruneByTime(t *testing.T) {
	s, c := atNoon(t)
	for i, id := range []agent.RunID{"a", "b"} {
		c.set(noon.Add(time.Duration(i) * time.Hour))
		l, err := s.Begin(t.Context(), durable.Job{ID: id}, "one", time.Minute)
		require.NoError(t, err)
		require.NoError(t, commit(t.Context(), s, l, durable.Update{Status: durable.StatusCompleted}))
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
	raw(t, path, "UPDATE runs SET status = 'completed', ended = updated WHERE id <> 'run500' RETURNING ''")
	n, err := s.Prune(t.Context(), time.Now())
	require.NoError(t, err)
	assert.Equal(t, 1000, n)
	runs, err := s.List(t.Context(), durable.Filter{Limit: 2000})
	require.NoError(t, err)
	assert.Len(t, runs, 1)
	require.NoError(t, s.Close())
	assert.Equal(t, "3", raw(t, path, "SELECT count(*) FROM entries"))
}

// freed returns the runs whose leases Reconcile ends.
func freed(t *testing.T, s *sqlite.Store) (ids []agent.RunID) {
	t.Helper()
	done, err := s.Reconcile(t.Context())
	require.NoError(t, err)
	runs, err := s.List(t.Context(), durable.Filter{Status: []durable.Status{durable.StatusReady}})
	require.NoError(t, err)
	assert.Len(t, runs, done.Expired)
	for _, r := range runs {
		ids = append(ids, r.ID)
	}
	return ids
}
