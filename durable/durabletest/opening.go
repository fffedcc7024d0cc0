package durabletest

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// opening tests lists of open waits.
var opening = map[string]part{
	"none": func(t *testing.T, s durable.Store) {
		beginRun(t, s, "r")
		assert.Empty(t, listOpen(t, s, durable.WaitFilter{}))
	},
	"are whole": func(t *testing.T, s durable.Store) {
		w := newWatch("c", durable.WaitCommand, "host")
		w.Deadline, w.Child, w.TokenHash = later(), "child", [32]byte{3}
		suspendRun(t, s, "r", w)
		answerAll(t, s, "r", newPartial("c", "ann"))
		all := must(s.OpenWaits(t.Context(), durable.WaitFilter{}))(t)
		require.Len(t, all, 1)
		require.Len(t, all[0].Partial, 1)
		sameWait(t, readWaits(t, s, "r")[0], all[0])
	},
	"the oldest first": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "b", newWaitAt("2", 0), newWaitAt("1", 0), newWaitAt("0", 2))
		suspendRun(t, s, "a", newWaitAt("1", 1), newWaitAt("2", 0))
		unknown := newWait("c")
		unknown.Asked = time.Time{}
		suspendRun(t, s, "c", unknown)
		assert.Equal(t, []string{"c/c", "a/2", "b/1", "b/2", "a/1", "b/0"}, listOpen(t, s, durable.WaitFilter{}), "by time, run and ID")
		assert.True(t, must(s.OpenWaits(t.Context(), durable.WaitFilter{Limit: 1}))(t)[0].Asked.IsZero(), "an unknown time is the oldest")
	},
	"without a decision": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "r", newWait("c"), newWait("d"), newWait("e"))
		answerRun(t, s, "r", "d")
		answerAll(t, s, "r", newPartial("e", ""))
		assert.Equal(t, []string{"r/c", "r/e"}, listOpen(t, s, durable.WaitFilter{}))
	},
	"of runs that wait": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "waits", newWait("c"))
		suspendRun(t, s, "paused", newWait("c"))
		sendSignal(t, s, "paused", durable.SignalPause, "")
		writeUpdate(t, s, beginRun(t, s, "held"), waitUpdate(1, newWait("c")))
		suspendRun(t, s, "overdue", newWait("c"), newWaitBy("d", longAgo()))
		requireStatus(t, s, durable.StatusReady, "overdue")

		suspendRun(t, s, "goes on", newWait("c"))
		writeUpdate(t, s, acquireRun(t, s, "goes on", "one", durable.TakeFree), durable.Update{Status: durable.StatusRunning})
		ends := newAnswer("d")
		ends.Ends = true
		suspendRun(t, s, "to end", newWait("c"), newWait("d"))
		answerAll(t, s, "to end", ends)
		suspendRun(t, s, "to be cancelled", newWait("c"))
		sendSignal(t, s, "to be cancelled", durable.SignalCancel, "")
		l := askRun(t, s, "ended", newWait("c"))
		endRun(t, s, l)
		assert.Equal(t, []string{"held/c", "overdue/c", "overdue/d", "paused/c", "waits/c"}, listOpen(t, s, durable.WaitFilter{}))
	},
	"filters": func(t *testing.T, s durable.Store) {
		file, command := newWatch("f", durable.WaitFile, ""), newWatch("x", durable.WaitCommand, "h")
		suspendRun(t, s, "a", newWait("c"), file, newWaitBy("d", later()))
		suspendRun(t, s, "b", newWaitBy("c", longAgo()), command, newWaitTo("k", unknownRun))
		late := file
		late.Deadline = longAgo()
		suspendRun(t, s, "c", late)
		for _, c := range []struct {
			filter durable.WaitFilter
			want   []string
		}{
			{durable.WaitFilter{}, []string{"a/c", "a/d", "a/f", "b/c", "b/k", "b/x", "c/f"}},
			{durable.WaitFilter{Limit: 2}, []string{"a/c", "a/d"}},
			{durable.WaitFilter{Kinds: []durable.WaitKind{durable.WaitFile}}, []string{"a/f", "c/f"}},
			{durable.WaitFilter{Kinds: []durable.WaitKind{durable.WaitCommand, durable.WaitFile, durable.WaitCommand}}, []string{"a/f", "b/x", "c/f"}},
			{durable.WaitFilter{Kinds: []durable.WaitKind{durable.WaitFile, durable.WaitChild}, Limit: 2}, []string{"a/f", "b/k"}},
			{durable.WaitFilter{Kinds: []durable.WaitKind{durable.WaitInput}}, []string{}},
			{durable.WaitFilter{Run: "b"}, []string{"b/c", "b/k", "b/x"}},
			{durable.WaitFilter{Run: "b", Limit: 1}, []string{"b/c"}},
			{durable.WaitFilter{Run: "b", Kinds: []durable.WaitKind{durable.WaitChild}}, []string{"b/k"}},
			{durable.WaitFilter{Run: unknownRun}, []string{}},
			{durable.WaitFilter{Expired: true}, []string{"b/c", "c/f"}},
			{durable.WaitFilter{Expired: true, Run: "b"}, []string{"b/c"}},
			{durable.WaitFilter{Expired: true, Kinds: []durable.WaitKind{durable.WaitFile}}, []string{"c/f"}},
			{durable.WaitFilter{Expired: true, Run: "b", Kinds: []durable.WaitKind{durable.WaitFile}}, []string{}},
		} {
			assert.Equal(t, c.want, listOpen(t, s, c.filter), "%+v", c.filter)
		}
	},
	"page by page": func(t *testing.T, s durable.Store) {
		var want []string
		for i := range 6 {
			id := agent.RunID(fmt.Sprint("r", i))
			var waits []durable.Wait
			for j := range 5 {
				w := newWaitAt(strconv.Itoa(j), i/2) // runs and waits of one time are on both sides of the ends of pages
				if j%2 == 1 {
					w.Kind = durable.WaitInput
				}
				waits = append(waits, w)
				want = append(want, fmt.Sprintf("%s/%d", id, j))
			}
			suspendRun(t, s, id, waits...)
		}
		for name, f := range map[string]durable.WaitFilter{
			"all": {Limit: 4}, "by kind": {Limit: 4, Kinds: []durable.WaitKind{durable.WaitApproval, durable.WaitInput}},
		} {
			assert.Equal(t, want, allPages(t, s, f, func(durable.Wait) {}), name)
		}
		got := allPages(t, s, durable.WaitFilter{Run: "r3", Limit: 2}, func(durable.Wait) {})
		assert.Equal(t, want[15:20], got)
		got = allPages(t, s, durable.WaitFilter{Limit: 4}, func(last durable.Wait) {
			if last.ID == "3" {
				require.NoError(t, s.Delete(t.Context(), last.Run))
				want = lo.Without(want, string(last.Run)+"/4")
				return
			}
			answerRun(t, s, last.Run, last.ID)
		})
		assert.Equal(t, want, got, "the last wait of a page may vanish")
	},
	"a default limit": func(t *testing.T, s durable.Store) {
		var waits []durable.Wait
		for i := range durable.DefaultLimit + 1 {
			waits = append(waits, newWait(strconv.Itoa(i)))
		}
		suspendRun(t, s, "r", waits...)
		assert.Len(t, listOpen(t, s, durable.WaitFilter{}), durable.DefaultLimit)
		assert.Len(t, listOpen(t, s, durable.WaitFilter{Limit: 1000}), durable.DefaultLimit+1)
	},
}

// allPages reads a list page by page, and calls between with the last wait of each page.
func allPages(t *testing.T, s durable.Store, f durable.WaitFilter, between func(last durable.Wait)) (names []string) {
	t.Helper()
	for {
		page := must(s.OpenWaits(t.Context(), f))(t)
		require.LessOrEqual(t, len(page), f.Limit)
		if len(page) == 0 {
			return names
		}
		names = append(names, waitNames(page)...)
		require.Less(t, len(names), 1000, "the pages end")
		f.After = &page[len(page)-1]
		between(*f.After)
	}
}

// waitNames returns the runs and IDs of waits.
func waitNames(waits []durable.Wait) []string {
	return lo.Map(waits, func(w durable.Wait, _ int) string { return fmt.Sprintf("%s/%s", w.Run, w.ID) })
}

func listOpen(t *testing.T, s durable.Store, f durable.WaitFilter) []string {
	return waitNames(must(s.OpenWaits(t.Context(), f))(t))
}

// newWaitAt returns a wait that began so many hours after that of newWait.
func newWaitAt(id string, hours int) durable.Wait {
	w := newWait(id)
	w.Asked = w.Asked.Add(time.Duration(hours) * time.Hour)
	return w
}

// newWatch returns a wait that a worker watches for.
func newWatch(id string, kind durable.WaitKind, host string) durable.Wait {
	w := newWait(id)
	w.Kind, w.Host = kind, host
	return w
}

var watched = []durable.WaitKind{durable.WaitFile, durable.WaitCommand, durable.WaitCallback}

// watching tests who watches for what runs wait for.
var watching = map[string]part{
	"waits of the kinds and hosts": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "r", newWatch("1", durable.WaitFile, ""), newWatch("2", durable.WaitFile, "h"), newWatch("3", durable.WaitCommand, "i"),
			newWatch("4", durable.WaitCallback, ""), newWait("5"))
		assert.Empty(t, claimWatches(t, s, "one", gone, 10, nil))
		assert.Empty(t, claimWatches(t, s, "one", gone, 0, watched))
		for _, c := range []struct {
			kinds []durable.WaitKind
			hosts []string
			want  []string
		}{
			{watched, nil, []string{"r/1", "r/4"}},
			{watched, []string{"i", "h"}, []string{"r/1", "r/2", "r/3", "r/4"}},
			{[]durable.WaitKind{durable.WaitFile}, []string{"h", "i", "h"}, []string{"r/1", "r/2"}},
			{[]durable.WaitKind{durable.WaitCommand}, nil, []string{}},
			{[]durable.WaitKind{durable.WaitInput}, []string{"h"}, []string{}},
		} {
			assert.Equal(t, c.want, claimWatches(t, s, "one", gone, 10, c.kinds, c.hosts...), "%v %v", c.kinds, c.hosts)
		}
		all := must(s.ClaimChecks(t.Context(), "one", hour, 10, watched, "i"))(t)
		sameWait(t, readWaits(t, s, "r")[2], all[1])
	},
	"one owner at a time": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "r", newWatch("c", durable.WaitFile, ""))
		for range 2 {
			assert.Equal(t, []string{"r/c"}, claimWatches(t, s, "one", hour, 10, watched))
			assert.Empty(t, claimWatches(t, s, "two", hour, 10, watched))
		}
	},
	"a claim expires": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "r", newWatch("c", durable.WaitFile, "h"))
		assert.Equal(t, []string{"r/c"}, claimWatches(t, s, "one", gone, 10, watched, "h"))
		assert.Empty(t, claimWatches(t, s, "two", hour, 10, watched), "it is on another host")
		assert.Equal(t, []string{"r/c"}, claimWatches(t, s, "two", hour, 10, watched, "h"))
		assert.Empty(t, claimWatches(t, s, "one", hour, 10, watched, "h"))
	},
	"a claim is renewed": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "r", newWatch("c", durable.WaitFile, ""))
		for _, ttl := range []time.Duration{gone, hour} {
			assert.Equal(t, []string{"r/c"}, claimWatches(t, s, "one", ttl, 10, watched))
		}
		assert.Empty(t, claimWatches(t, s, "two", hour, 10, watched))
	},
	"at most limit, the oldest first": func(t *testing.T, s durable.Store) {
		watch := func(id string, hours int) durable.Wait {
			w := newWaitAt(id, hours)
			w.Kind = durable.WaitCallback
			return w
		}
		suspendRun(t, s, "r", watch("4", 4), watch("3", 3), watch("5", 5))
		assert.Equal(t, []string{"r/3", "r/4"}, claimWatches(t, s, "one", hour, 2, watched))
		suspendRun(t, s, "older", watch("1", 1), watch("2", 2))
		assert.Equal(t, []string{"r/3", "r/4"}, claimWatches(t, s, "one", hour, 2, watched), "an owner keeps what it has")
		assert.Equal(t, []string{"older/1", "r/3", "r/4"}, claimWatches(t, s, "one", hour, 3, watched))
		assert.Equal(t, []string{"older/2"}, claimWatches(t, s, "two", hour, 1, watched))
		assert.Equal(t, []string{"older/2", "r/5"}, claimWatches(t, s, "two", hour, 10, watched))
	},
	"only of runs that wait": func(t *testing.T, s durable.Store) {
		w := newWatch("c", durable.WaitFile, "")
		suspendRun(t, s, "paused", w)
		sendSignal(t, s, "paused", durable.SignalPause, "")
		suspendRun(t, s, "decided", w, newWait("d"))
		answerRun(t, s, "decided", "c")
		suspendRun(t, s, "ready", w)
		sendSignal(t, s, "ready", durable.SignalCancel, "")
		suspendRun(t, s, "goes on", w)
		writeUpdate(t, s, acquireRun(t, s, "goes on", "one", durable.TakeFree), durable.Update{Status: durable.StatusRunning})
		assert.Empty(t, claimWatches(t, s, "one", hour, 10, watched))
		writeUpdate(t, s, beginRun(t, s, "held"), waitUpdate(1, w))
		assert.Equal(t, []string{"held/c"}, claimWatches(t, s, "one", hour, 10, watched), "it waits while its process releases it")

		sendSignal(t, s, "paused", durable.SignalResume, "")
		assert.Equal(t, []string{"held/c", "paused/c"}, claimWatches(t, s, "one", hour, 10, watched))
		answerRun(t, s, "paused", "c")
		assert.Equal(t, []string{"held/c"}, claimWatches(t, s, "one", hour, 10, watched), "what has happened is not watched any more")
	},
	"a claim stays with the same wait": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		w := newWatch("c", durable.WaitFile, "")
		writeUpdate(t, s, l, waitUpdate(1, w))
		assert.Equal(t, []string{"r/c"}, claimWatches(t, s, "one", hour, 10, watched))
		writeUpdate(t, s, l, waitUpdate(1, newWait("b"), w))
		assert.Empty(t, claimWatches(t, s, "two", hour, 10, watched))
		w.ID = "c2"
		writeUpdate(t, s, l, waitUpdate(1, w))
		assert.Equal(t, []string{"r/c2"}, claimWatches(t, s, "two", hour, 10, watched))
	},
}

// oneWatches lets several owners claim at once: none gets what another has.
func oneWatches(t *testing.T, handles ...durable.Store) {
	t.Helper()
	const runs = 10
	for i := range runs {
		suspendRun(t, handles[0], agent.RunID(fmt.Sprint("r", i)), newWatch("c", durable.WaitFile, ""), newWatch("d", durable.WaitCommand, ""))
	}
	var all []string
	for _, names := range atOnce(8, func(i int) (names []string) {
		for range 2 {
			some, err := handles[i%len(handles)].ClaimChecks(t.Context(), fmt.Sprint("owner ", i), hour, 3, watched)
			assert.NoError(t, err)
			assert.LessOrEqual(t, len(some), 3)
			names = append(names, waitNames(some)...)
		}
		return names
	}) {
		all = append(all, lo.Uniq(names)...)
	}
	assert.Len(t, lo.Uniq(all), len(all), "no wait is watched by two owners")
	assert.Len(t, all, 2*runs, "every wait is watched")
}

func claimWatches(
	t *testing.T, s durable.Store, owner string, ttl time.Duration, limit int, kinds []durable.WaitKind, hosts ...string,
) []string {
	return waitNames(must(s.ClaimChecks(t.Context(), owner, ttl, limit, kinds, hosts...))(t))
}
