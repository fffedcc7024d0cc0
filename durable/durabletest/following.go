package durabletest

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// following tests what a commit adds besides entries: events and jobs.
var following = map[string]part{
	"events are numbered": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		other := beginRun(t, s, "other")
		var want []string
		for n := range 5 {
			var events []durable.Event
			for i := range n { // the first commit has none
				e := newEvent(fmt.Sprint(n, ".", i))
				e.Seq, e.Run = 77, "another" // the store sets both
				events, want = append(events, e), append(want, e.Name)
			}
			writeCommit(t, s, l, durable.Commit{Events: events})
			writeCommit(t, s, other, durable.Commit{Events: []durable.Event{newEvent(fmt.Sprint("other ", n))}})
			assert.Equal(t, int64(len(want)), getRun(t, s, "r").Events)
		}
		all := readEvents(t, s, "r", 0, 100)
		require.Len(t, all, len(want))
		for i, e := range all {
			assert.Equal(t, []any{agent.RunID("r"), int64(i + 1), want[i], "data of " + want[i]}, []any{e.Run, e.Seq, e.Name, string(e.Data)})
			assert.True(t, testTime().Equal(e.At), "at %v", e.At)
		}
		assert.Len(t, eventNames(t, s, "other"), 5)
	},
	"events after a number, at most limit": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		var events []durable.Event
		for i := range 50 {
			events = append(events, newEvent(strconv.Itoa(i+1)))
		}
		writeCommit(t, s, l, durable.Commit{Events: events})
		for _, c := range []struct {
			after       int64
			limit       int
			first, last int64
		}{{0, 10, 1, 10}, {10, 10, 11, 20}, {45, 10, 46, 50}, {0, 1000, 1, 50}, {49, 1, 50, 50}, {50, 10, 1, 0}, {1000, 10, 1, 0}} {
			got := readEvents(t, s, "r", c.after, c.limit)
			require.Len(t, got, int(c.last-c.first+1), "%+v", c)
			for i, e := range got {
				assert.Equal(t, []any{c.first + int64(i), strconv.FormatInt(c.first+int64(i), 10)}, []any{e.Seq, e.Name}, "%+v", c)
			}
		}
	},
	"events stay after the end": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		writeCommit(t, s, l, durable.Commit{Events: []durable.Event{newEvent("a")}})
		writeCommit(t, s, l, durable.Commit{Events: []durable.Event{newEvent("b")}, Update: endUpdate()})
		assert.Equal(t, []string{"a", "b"}, eventNames(t, s, "r"))
	},
	"events hold any data": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		large := durable.Event{Name: "large", At: testTime(), Data: []byte(strings.Repeat("\x00\xff", 1<<18))}
		writeCommit(t, s, l, durable.Commit{Events: []durable.Event{{At: testTime()}, large}})
		got := readEvents(t, s, "r", 0, 10)
		require.Len(t, got, 2)
		assert.Empty(t, got[0].Data)
		assert.Equal(t, sha256.Sum256(large.Data), sha256.Sum256(got[1].Data), "large data")
	},
	"jobs of a commit are submitted": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		child, pending := fullJob("child"), newJob("pending")
		child.Parent, child.Root, pending.NotBefore = "r", "r", later()
		writeCommit(t, s, l, durable.Commit{Jobs: []durable.Job{child, pending, {Name: "tester"}}})
		requireStatus(t, s, durable.StatusReady, "child")
		requireStatus(t, s, durable.StatusPending, "pending")
		r := getRun(t, s, "child")
		sameJob(t, child, r)
		assert.Equal(t, []any{"", int64(0), 0}, []any{r.Owner, r.Epoch, r.Attempts})
		assert.Equal(t, string(child.Input), readData(t, s.Input, "child"))
		assert.Equal(t, []agent.RunID{"child"}, listIDs(t, s, durable.Filter{Parent: "r"}))
		assert.Equal(t, []agent.RunID{"child"}, listIDs(t, s, durable.Filter{Label: durable.Label{Name: "team", Value: "red"}}))
		assert.Equal(t, []agent.RunID{"child"}, runIDs(claimRuns(t, s, 10, keyOf(child))))
		assert.Len(t, claimRuns(t, s, 10, testerKey()), 1, "a job without an ID gets one")
	},
	"jobs follow the end": func(t *testing.T, s durable.Store) {
		writeCommit(t, s, beginRun(t, s, "r"), durable.Commit{Update: endUpdate(), Jobs: []durable.Job{newJob("next")}})
		requireStatus(t, s, durable.StatusCompleted, "r")
		requireStatus(t, s, durable.StatusReady, "next")
	},
	"a parent may wait for a child of the same commit": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		writeCommit(t, s, l, durable.Commit{Jobs: []durable.Job{newJob("child")}, Update: waitUpdate(1, newWaitTo("c", "child"))})
		releaseRun(t, s, l)
		requireStatus(t, s, durable.StatusWaiting, "r")
		endRun(t, s, acquireRun(t, s, "child", "one", durable.TakeFree))
		requireStatus(t, s, durable.StatusReady, "r")
	},
	"all or nothing": func(t *testing.T, s durable.Store) {
		submitJobs(t, s, newJob("taken"))
		l := beginRun(t, s, "r")
		sendSignal(t, s, "r", durable.SignalContext, "text")
		for name, c := range map[string]durable.Commit{
			"a taken ID":       {Entries: newEntries(1, 2), Jobs: []durable.Job{newJob("new"), newJob("taken")}},
			"an ID twice":      {Entries: newEntries(1, 2), Jobs: []durable.Job{newJob("new"), newJob("new")}},
			"its own ID":       {Entries: newEntries(1, 2), Jobs: []durable.Job{newJob("new"), newJob("r")}},
			"a wrong number":   {Entries: newEntries(2, 3), Jobs: []durable.Job{newJob("new")}},
			"an invalid label": {Entries: newEntries(1, 2), Jobs: []durable.Job{newJob("new"), {Labels: map[string]string{"": ""}}}},
		} {
			c.Events, c.Update, c.HandledSignals = []durable.Event{newEvent("e")}, waitUpdate(9, newWait("c")), 1
			changesNothing(t, s, func() {
				err := s.Commit(t.Context(), l, c)
				require.Error(t, err, name)
				if strings.Contains(name, "ID") {
					require.ErrorIs(t, err, durable.ErrExists, name)
				}
			})
		}
	},
	"everything in one commit": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		sendSignal(t, s, "r", durable.SignalContext, "text")
		writeCommit(t, s, l, durable.Commit{
			Entries: newEntries(1, 3), Events: []durable.Event{newEvent("a"), newEvent("b")}, Update: waitUpdate(4, newWait("c")),
			Jobs: []durable.Job{newJob("child")}, HandledSignals: 1,
		})
		r := getRun(t, s, "r")
		assert.Equal(t, []any{durable.StatusWaiting, 4, int64(3), int64(2), "one"}, []any{r.Status, r.Steps, r.Entries, r.Events, r.Owner})
		assert.Len(t, readJournal(t, s, "r"), 3)
		assert.Equal(t, []string{"a", "b"}, eventNames(t, s, "r"))
		assert.Len(t, readWaits(t, s, "r"), 1)
		assert.Empty(t, readSignals(t, s, "one"))
		requireStatus(t, s, durable.StatusReady, "child")
	},
	"nothing in a commit": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		writeCommit(t, s, l, durable.Commit{})
		r := getRun(t, s, "r")
		assert.Equal(t, []any{durable.StatusRunning, int64(0), "one"}, []any{r.Status, r.Entries, r.Owner})
	},
}
