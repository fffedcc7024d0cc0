package durabletest

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// testDeadlines stores thousands of waits and opens the store again: every deadline is as it was, and exactly the runs expire that
// have a wait whose deadline has passed.
func testDeadlines(t *testing.T, open func(t *testing.T) durable.Store) {
	const runs, each, writers = 1000, 3, 16
	id := func(i int) agent.RunID { return agent.RunID("r" + strconv.Itoa(i)) }
	hasPassed := func(i int) bool { return i%3 == 0 }
	waits := func(i int) (all []durable.Wait) {
		for n := range each {
			w := newWait(strconv.Itoa(n))
			w.Deadline = later().Add(time.Duration(i*each+n) * time.Microsecond)
			if hasPassed(i) && n == i%each {
				w.Deadline = longAgo().Add(time.Duration(i) * time.Microsecond)
			}
			all = append(all, w)
		}
		return all
	}
	s := open(t)
	var group sync.WaitGroup
	for part := range writers {
		group.Go(func() {
			for i := part; i < runs; i += writers {
				// A lease that runs out: Release would make the runs ready whose deadline has passed.
				l, err := s.Begin(t.Context(), newJob(id(i)), "one", gone)
				if assert.NoError(t, err) {
					assert.NoError(t, s.Commit(t.Context(), l, durable.Commit{Update: waitUpdate(1, waits(i)...)}))
				}
			}
		})
	}
	group.Wait()
	require.NoError(t, s.Close())

	s = open(t)
	defer func() { assert.NoError(t, s.Close()) }()
	for done := false; !done; {
		r, err := s.Reconcile(t.Context())
		require.NoError(t, err)
		done = r.Done
	}
	for i := range runs {
		got := readWaits(t, s, id(i))
		for n, w := range waits(i) {
			require.True(t, w.Deadline.Equal(got[n].Deadline), "run %d, wait %d: %v, want %v", i, n, got[n].Deadline, w.Deadline)
		}
		status := durable.StatusWaiting
		if hasPassed(i) {
			status = durable.StatusReady
		}
		require.Equal(t, status, getRun(t, s, id(i)).Status, "run %d", i)
	}
}
