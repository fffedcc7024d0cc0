package durabletest

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

var dueing = map[string]part{
	"running ones that no process runs": func(t *testing.T, s durable.Store) {
		createRun(t, s, "held")
		createAs(t, s, durable.Run{ID: "ran out"}, "one", gone)
		releaseRun(t, s, createRun(t, s, "given up"))
		due(t, s, "ran out", "given up")
		claimRun(t, s, "ran out", "two", durable.TakeFree)
		due(t, s, "given up")
	},
	"parked ones wait": func(t *testing.T, s durable.Store) {
		later := newQuestion("c")
		later.Deadline = time.Now().Add(hour).Truncate(time.Microsecond)
		parkRun(t, s, "person", newQuestion("c"))
		parkRun(t, s, "later", later)
		parkRun(t, s, "no question")
		l := createAs(t, s, durable.Run{ID: "ran out"}, "one", gone)
		writeUpdate(t, s, l, parkUpdate(1, newQuestion("c")))
		child := newQuestion("c")
		child.Child = "person"
		parkRun(t, s, "child", child)
		due(t, s, "no question")
	},
	"all questions are answered": func(t *testing.T, s durable.Store) {
		parkRun(t, s, "r", newQuestion("c"), newQuestion("d"))
		require.NoError(t, s.Answer(t.Context(), "r", newAnswer("c")))
		due(t, s)
		require.NoError(t, s.Answer(t.Context(), "r", newAnswer("d")))
		due(t, s, "r")
	},
	"an answer ends the run": func(t *testing.T, s durable.Store) {
		parkRun(t, s, "r", newQuestion("c"), newQuestion("d"))
		a := newAnswer("d")
		a.Ends = true
		require.NoError(t, s.Answer(t.Context(), "r", a))
		due(t, s, "r")
	},
	"the time of one is over": func(t *testing.T, s durable.Store) {
		q, later := newQuestion("d"), newQuestion("c")
		q.Deadline = time.Now().Add(-time.Second).Truncate(time.Microsecond)
		later.Deadline = q.Deadline.Add(hour)
		parkRun(t, s, "r", later, q)
		assert.True(t, q.Deadline.Equal(getRun(t, s, "r").Deadline), "the first deadline counts")
		due(t, s, "r")

		// The process that takes the run up answers for the person who did not.
		require.NoError(t, s.Answer(t.Context(), "r", newAnswer("d")))
		due(t, s)
		assert.True(t, later.Deadline.Equal(getRun(t, s, "r").Deadline), "then the next one")
		require.NoError(t, s.Answer(t.Context(), "r", newAnswer("c")))
		assert.True(t, getRun(t, s, "r").Deadline.IsZero(), "then none")
	},
	"a child has ended": func(t *testing.T, s durable.Store) {
		l := createRun(t, s, "kid")
		q := newQuestion("d")
		q.Child = "kid"
		parkRun(t, s, "r", newQuestion("c"), q)
		due(t, s)
		writeUpdate(t, s, l, durable.Update{}, newEntry(1))
		due(t, s)
		writeUpdate(t, s, l, endUpdate())
		due(t, s, "r")
		require.NoError(t, s.Answer(t.Context(), "r", newAnswer("d")))
		due(t, s)
	},
	"a child ended before its parent parked": func(t *testing.T, s durable.Store) {
		writeUpdate(t, s, createRun(t, s, "kid"), endUpdate())
		q := newQuestion("c")
		q.Child = "kid"
		parkRun(t, s, "r", q)
		due(t, s, "r")
	},
	"one that is to be cancelled": func(t *testing.T, s durable.Store) {
		parkRun(t, s, "parked", newQuestion("c"))
		createRun(t, s, "held")
		writeUpdate(t, s, createRun(t, s, "over"), endUpdate())
		for _, id := range []agent.RunID{"parked", "held", "over"} {
			require.NoError(t, s.Cancel(t.Context(), id, "enough"))
		}
		due(t, s, "parked")
	},
	"a claimed run is not due for others": func(t *testing.T, s durable.Store) {
		parkRun(t, s, "r", newQuestion("c"))
		l := claimRun(t, s, "r", "two", durable.TakeFree)
		require.NoError(t, s.Answer(t.Context(), "r", newAnswer("c")))
		require.NoError(t, s.Cancel(t.Context(), "r", "enough"))
		due(t, s)
		releaseRun(t, s, l)
		due(t, s, "r")
		l = claimRun(t, s, "r", "two", durable.TakeFree)
		due(t, s)
		_, err := s.Renew(t.Context(), l, gone)
		require.NoError(t, err)
		due(t, s, "r")
	},
	"what ended is never due": func(t *testing.T, s durable.Store) {
		q := newQuestion("c")
		q.Deadline = testTime().AddDate(-1, 0, 0)
		parkRun(t, s, "r", q)
		require.NoError(t, s.Cancel(t.Context(), "r", "enough"))
		require.NoError(t, s.Answer(t.Context(), "r", newAnswer("c")))
		due(t, s, "r")
		writeUpdate(t, s, claimRun(t, s, "r", "one", durable.TakeFree), endUpdate())
		due(t, s)
	},
	"those that wait longest first, at most so many": func(t *testing.T, s durable.Store) {
		for _, n := range []int{4, 2, 5, 1, 3} {
			q := newQuestion("c")
			q.Deadline = testTime().AddDate(-1, 0, n)
			parkRun(t, s, agent.RunID(strconv.Itoa(n)), q)
		}
		for _, limit := range []int{1, 3, 5, 10} {
			runs, err := s.Due(t.Context(), limit)
			require.NoError(t, err)
			assert.Equal(t, []agent.RunID{"1", "2", "3", "4", "5"}[:min(limit, 5)], runIDs(runs))
		}
		runs, err := s.Due(t.Context(), 1)
		require.NoError(t, err)
		assert.Equal(t, []durable.Run{getRun(t, s, "1")}, runs)
	},
}

// due compares what is due, in any order.
func due(t *testing.T, s durable.Store, want ...agent.RunID) {
	t.Helper()
	runs, err := s.Due(t.Context(), 100)
	require.NoError(t, err)
	require.ElementsMatch(t, want, runIDs(runs), "due runs")
}
