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
		create(t, s, "held")
		createAs(t, s, durable.Run{ID: "ran out"}, "one", gone)
		release(t, s, create(t, s, "given up"))
		due(t, s, "ran out", "given up")
		claim(t, s, "ran out", "two", durable.TakeFree)
		due(t, s, "given up")
	},
	"parked ones wait": func(t *testing.T, s durable.Store) {
		later := question("c")
		later.Deadline = time.Now().Add(hour).Truncate(time.Microsecond)
		park(t, s, "person", question("c"))
		park(t, s, "later", later)
		park(t, s, "no question")
		l := createAs(t, s, durable.Run{ID: "ran out"}, "one", gone)
		write(t, s, l, parked(1, question("c")))
		child := question("c")
		child.Child = "person"
		park(t, s, "child", child)
		due(t, s, "no question")
	},
	"all questions are answered": func(t *testing.T, s durable.Store) {
		park(t, s, "r", question("c"), question("d"))
		require.NoError(t, s.Answer(t.Context(), "r", answer("c")))
		due(t, s)
		require.NoError(t, s.Answer(t.Context(), "r", answer("d")))
		due(t, s, "r")
	},
	"an answer ends the run": func(t *testing.T, s durable.Store) {
		park(t, s, "r", question("c"), question("d"))
		a := answer("d")
		a.Ends = true
		require.NoError(t, s.Answer(t.Context(), "r", a))
		due(t, s, "r")
	},
	"the time of one is over": func(t *testing.T, s durable.Store) {
		q, later := question("d"), question("c")
		q.Deadline = time.Now().Add(-time.Second).Truncate(time.Microsecond)
		later.Deadline = q.Deadline.Add(hour)
		park(t, s, "r", later, q)
		assert.True(t, q.Deadline.Equal(run(t, s, "r").Deadline), "the first deadline counts")
		due(t, s, "r")

		// Whoever takes the run up answers for the one who did not.
		require.NoError(t, s.Answer(t.Context(), "r", answer("d")))
		due(t, s)
		assert.True(t, later.Deadline.Equal(run(t, s, "r").Deadline), "then the next one")
		require.NoError(t, s.Answer(t.Context(), "r", answer("c")))
		assert.True(t, run(t, s, "r").Deadline.IsZero(), "then none")
	},
	"a child has ended": func(t *testing.T, s durable.Store) {
		l := create(t, s, "kid")
		q := question("d")
		q.Child = "kid"
		park(t, s, "r", question("c"), q)
		due(t, s)
		write(t, s, l, durable.Update{}, entry(1))
		due(t, s)
		write(t, s, l, ended())
		due(t, s, "r")
		require.NoError(t, s.Answer(t.Context(), "r", answer("d")))
		due(t, s)
	},
	"a child ended before its parent parked": func(t *testing.T, s durable.Store) {
		write(t, s, create(t, s, "kid"), ended())
		q := question("c")
		q.Child = "kid"
		park(t, s, "r", q)
		due(t, s, "r")
	},
	"one that is to be cancelled": func(t *testing.T, s durable.Store) {
		park(t, s, "parked", question("c"))
		create(t, s, "held")
		write(t, s, create(t, s, "over"), ended())
		for _, id := range []agent.RunID{"parked", "held", "over"} {
			require.NoError(t, s.Cancel(t.Context(), id, "enough"))
		}
		due(t, s, "parked")
	},
	"what somebody holds is nobody else's": func(t *testing.T, s durable.Store) {
		park(t, s, "r", question("c"))
		l := claim(t, s, "r", "two", durable.TakeFree)
		require.NoError(t, s.Answer(t.Context(), "r", answer("c")))
		require.NoError(t, s.Cancel(t.Context(), "r", "enough"))
		due(t, s)
		release(t, s, l)
		due(t, s, "r")
		l = claim(t, s, "r", "two", durable.TakeFree)
		due(t, s)
		_, err := s.Renew(t.Context(), l, gone)
		require.NoError(t, err)
		due(t, s, "r")
	},
	"what ended is never due": func(t *testing.T, s durable.Store) {
		q := question("c")
		q.Deadline = moment().AddDate(-1, 0, 0)
		park(t, s, "r", q)
		require.NoError(t, s.Cancel(t.Context(), "r", "enough"))
		require.NoError(t, s.Answer(t.Context(), "r", answer("c")))
		due(t, s, "r")
		write(t, s, claim(t, s, "r", "one", durable.TakeFree), ended())
		due(t, s)
	},
	"those that wait longest first, at most so many": func(t *testing.T, s durable.Store) {
		for _, n := range []int{4, 2, 5, 1, 3} {
			q := question("c")
			q.Deadline = moment().AddDate(-1, 0, n)
			park(t, s, agent.RunID(strconv.Itoa(n)), q)
		}
		for _, limit := range []int{1, 3, 5, 10} {
			runs, err := s.Due(t.Context(), limit)
			require.NoError(t, err)
			assert.Equal(t, []agent.RunID{"1", "2", "3", "4", "5"}[:min(limit, 5)], ids(runs))
		}
		runs, err := s.Due(t.Context(), 1)
		require.NoError(t, err)
		assert.Equal(t, []durable.Run{run(t, s, "1")}, runs)
	},
}

// due compares what is due, in any order.
func due(t *testing.T, s durable.Store, want ...agent.RunID) {
	t.Helper()
	runs, err := s.Due(t.Context(), 100)
	require.NoError(t, err)
	require.ElementsMatch(t, want, ids(runs), "due runs")
}
