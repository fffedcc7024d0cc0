package durabletest

import (
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

var listing = map[string]part{
	"newest first": func(t *testing.T, s durable.Store) {
		want := []agent.RunID{}
		// Neither the names nor the later changes are in the order of creation.
		for _, id := range []agent.RunID{"m", "z", "a", "k", "b"} {
			createRun(t, s, id)
			want = append(want, id)
		}
		writeUpdate(t, s, claimRun(t, s, "m", "one", durable.TakeOver), durable.Update{}, newEntry(1))
		slices.Reverse(want)
		assert.Equal(t, want, list(t, s, durable.Filter{}))
	},
	"what is listed is what is known": func(t *testing.T, s durable.Store) {
		q := newQuestion("c")
		q.Deadline = testTime()
		writeUpdate(t, s, createRun(t, s, "r"), parkUpdate(2, q), newEntry(1))
		require.NoError(t, s.Cancel(t.Context(), "r", "enough"))
		got, err := s.List(t.Context(), durable.Filter{})
		require.NoError(t, err)
		assert.Equal(t, []durable.Run{getRun(t, s, "r")}, got)
	},
	"filters": func(t *testing.T, s durable.Store) {
		add := func(r durable.Run, u durable.Update) {
			writeUpdate(t, s, createAs(t, s, r, "one", hour), u)
		}
		add(durable.Run{ID: "1", Agent: "a", Session: "s"}, durable.Update{})
		add(durable.Run{ID: "2", Agent: "b", Session: "s", Parent: "1"}, parkUpdate(1, newQuestion("c")))
		add(durable.Run{ID: "3", Agent: "a", Session: "u", Parent: "1"}, endUpdate())
		add(durable.Run{ID: "4", Agent: "b", Session: "u", Parent: "2"}, durable.Update{Status: agent.StatusFailed})
		add(durable.Run{ID: "5"}, durable.Update{})
		for _, c := range []struct {
			filter durable.Filter
			want   []agent.RunID
		}{
			{durable.Filter{}, []agent.RunID{"5", "4", "3", "2", "1"}},
			{durable.Filter{Status: []agent.Status{agent.StatusRunning}}, []agent.RunID{"5", "1"}},
			{durable.Filter{Status: []agent.Status{agent.StatusParked, agent.StatusDone}}, []agent.RunID{"3", "2"}},
			{durable.Filter{Status: []agent.Status{agent.StatusCancelled}}, []agent.RunID{}},
			{durable.Filter{Agent: "a"}, []agent.RunID{"3", "1"}},
			{durable.Filter{Session: "u"}, []agent.RunID{"4", "3"}},
			{durable.Filter{Parent: "1"}, []agent.RunID{"3", "2"}},
			{durable.Filter{Parent: "1", Agent: "b"}, []agent.RunID{"2"}},
			{durable.Filter{Parent: "1", Agent: "b", Session: "u"}, []agent.RunID{}},
			{durable.Filter{Agent: "a", Status: []agent.Status{agent.StatusDone}, Session: "u", Parent: "1"}, []agent.RunID{"3"}},
			{durable.Filter{Before: "4"}, []agent.RunID{"3", "2", "1"}},
			{durable.Filter{Before: "4", Agent: "a"}, []agent.RunID{"3", "1"}},
			{durable.Filter{Before: "4", Limit: 2}, []agent.RunID{"3", "2"}},
			{durable.Filter{Before: "1"}, []agent.RunID{}},
			{durable.Filter{Limit: 1}, []agent.RunID{"5"}},
		} {
			assert.Equal(t, c.want, list(t, s, c.filter), "%+v", c.filter)
		}
	},
	"a page behind a run that is gone": func(t *testing.T, s durable.Store) {
		releaseRun(t, s, createRun(t, s, "r"))
		require.NoError(t, s.Delete(t.Context(), "r"))
		_, err := s.List(t.Context(), durable.Filter{Before: "r"})
		require.ErrorIs(t, err, durable.ErrNotFound)
	},
	"thousands of runs, page by page": func(t *testing.T, s durable.Store) {
		const n = 2000
		var group sync.WaitGroup
		for w := range 4 {
			group.Go(func() {
				for i := w; i < n; i += 4 {
					_, err := s.Create(t.Context(), durable.Run{ID: agent.RunID(strconv.Itoa(i)), Agent: strconv.Itoa(i % 2)}, "one", hour)
					assert.NoError(t, err)
				}
			})
		}
		group.Wait()
		assert.Len(t, list(t, s, durable.Filter{}), durable.DefaultLimit, "zero is the default limit")

		seen := map[agent.RunID]bool{}
		for f := (durable.Filter{Agent: "1", Limit: 300}); ; {
			page := list(t, s, f)
			if len(page) == 0 {
				break
			}
			for _, id := range page {
				require.False(t, seen[id], "run %q is on two pages", id)
				seen[id] = true
			}
			f.Before = page[len(page)-1]
			// A run that is added while a reader pages is listed before the pages read so far.
			createAs(t, s, durable.Run{ID: "new " + f.Before, Agent: "1"}, "one", hour)
		}
		assert.Len(t, seen, n/2)
		assert.Len(t, list(t, s, durable.Filter{Limit: 2 * n}), n+4)
	},
}

func list(t *testing.T, s durable.Store, f durable.Filter) []agent.RunID {
	t.Helper()
	runs, err := s.List(t.Context(), f)
	require.NoError(t, err, "list %+v", f)
	return runIDs(runs)
}
