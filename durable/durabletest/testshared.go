package durabletest

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// TestShared tests a store against the rules for restarts and for several processes. Place creates an empty storage
// location and returns a func that opens another handle on it at each call. Handles must share nothing except that
// location, as in different processes. TestShared closes the handles.
func TestShared(t *testing.T, place func(t *testing.T) (open func(t *testing.T) durable.Store)) {
	t.Run("everything survives a restart", func(t *testing.T) { testSurvival(t, place(t)) })
	t.Run("thousands of deadlines survive a restart", func(t *testing.T) { testDeadlines(t, place(t)) })
	both := map[string]func(t *testing.T, handles ...durable.Store){"each sees what the other did": checkShared, "a change wakes a claimer": testWakes}
	maps.Copy(both, races)
	for name, test := range both {
		t.Run(name, func(t *testing.T) {
			open := place(t)
			a, b := open(t), open(t)
			t.Cleanup(func() {
				assert.NoError(t, a.Close(), "close one handle")
				assert.NoError(t, b.Close(), "close the other")
			})
			test(t, a, b)
		})
	}
}

// testWakes claims a run in one handle that another handle submits.
func testWakes(t *testing.T, handles ...durable.Store) {
	t.Helper()
	a, b := handles[0], handles[1]
	changes := b.Changes(t.Context())
	for round := range 5 {
		id := agent.RunID(fmt.Sprint("r", round))
		var group sync.WaitGroup
		group.Go(func() { assert.NoError(t, second(a.Submit(t.Context(), newJob(id)))) })
		for runs := []durable.Run(nil); len(runs) == 0; {
			awaitChange(t, changes, "submit")
			runs = claimRuns(t, b, 1, testerKey())
		}
		group.Wait()
		requireStatus(t, a, durable.StatusRunning, id)
	}
}

func testSurvival(t *testing.T, open func(t *testing.T) durable.Store) {
	s := open(t)
	q := newWait("c")
	q.TokenHash, q.Deadline, q.Child = [32]byte{1, 2, 3}, testTime(), "child"
	writeUpdate(t, s, beginRun(t, s, "waiting"), waitUpdate(2, q, newWait("d")), newEntries(1, 5)...)
	answerRun(t, s, "waiting", "d")
	sendSignal(t, s, "waiting", durable.SignalCancel, "enough")
	ended := endUpdate()
	ended.Result = []byte("the result")
	writeUpdate(t, s, beginRun(t, s, "ended"), ended, newEntry(1))
	running := beginAs(t, s, fullJob("running"), "one", hour)
	writeCommit(t, s, running, durable.Commit{Events: []durable.Event{newEvent("a"), newEvent("b")}})
	sendSignal(t, s, "running", durable.SignalContext, "text")
	sendSignal(t, s, "running", durable.SignalPause, "")
	submitJobs(t, s, newLaterJob("pending"), newJob("ready"))
	require.NoError(t, s.SetDenyTools(t.Context(), durable.Switch{On: true, Reason: "fire", By: "ops", Since: testTime()}))
	suspendRun(t, s, "watched", newWatch("c", durable.WaitFile, "h"))
	answerAll(t, s, "watched", newPartial("c", "ann"))
	assert.Equal(t, []string{"watched/c"}, claimWatches(t, s, "one", hour, 1, watched, "h"))
	require.NoError(t, s.AddWaiver(t.Context(), newWaiver("w")))
	require.NoError(t, s.RevokeWaiver(t.Context(), "w", "bob"))
	putDocuments(t, s, "d")
	submitJobs(t, s, newPhaseJob("phase"), newJobAfter("after", "watched"))
	passed := beginRun(t, s, "passed")
	writeCommit(t, s, passed, passTo(phaseKind, []byte("second input")))
	before := look(t, s)
	require.NoError(t, s.Close())

	s = open(t)
	defer func() { assert.NoError(t, s.Close()) }()
	assert.Equal(t, before, look(t, s))
	assert.Equal(t, agent.RunID("running"), submitJobs(t, s, keyedJob("other", "key of running"))[0].ID)
	assert.Empty(t, claimWatches(t, s, "two", hour, 1, watched, "h"))
	writeCommit(t, s, passed, passTo(phaseKind, []byte("second input"))) // again
	assert.Equal(t, "c", findByToken(t, s, q.TokenHash).ID)
	require.ErrorAs(t, second(s.Acquire(t.Context(), "running", "two", hour, durable.TakeFree)), new(*durable.HeldError), "a lease outlives a restart")
	writeUpdate(t, s, running, durable.Update{}, newEntry(1))
	beginRun(t, s, "new")
	assert.Equal(t, []agent.RunID{"new", "passed", "after", "phase", "watched", "ready", "pending", "running", "ended", "waiting"},
		listIDs(t, s, durable.Filter{}))
}

func checkShared(t *testing.T, handles ...durable.Store) {
	t.Helper()
	a, b := handles[0], handles[1]
	l := beginRun(t, a, "r")
	require.ErrorAs(t, second(b.Acquire(t.Context(), "r", "two", hour, durable.TakeFree)), new(*durable.HeldError))
	writeUpdate(t, a, l, waitUpdate(1, newWait("c")), newEntry(1))
	assert.Equal(t, look(t, a), look(t, b))
	answerRun(t, b, "r", "c")
	refusesAnswers(t, a, durable.ErrAnswered, newAnswer("c"))
	sendSignal(t, b, "r", durable.SignalCancel, "enough")
	sendSignal(t, b, "r", durable.SignalContext, "text")
	assert.Equal(t, []string{"context text", "cancel request enough"}, readSignals(t, a, "one")["r"])
	writeCommit(t, a, l, durable.Commit{Events: []durable.Event{newEvent("e")}, HandledSignals: 1})
	submitJobs(t, a, keyedJob("keyed", "k"))
	assert.Equal(t, agent.RunID("keyed"), submitJobs(t, b, keyedJob("other", "k"))[0].ID)
	taken := acquireRun(t, b, "r", "two", durable.TakeOver)
	stale(t, a, l)
	writeUpdate(t, a, taken, durable.Update{}, newEntry(2)) // a lease is good in any process
	require.NoError(t, b.SetDenyTools(t.Context(), durable.Switch{On: true}))
	releaseRun(t, a, taken)
	assert.Equal(t, look(t, a), look(t, b))
	assert.Equal(t, []durable.OfferID{{Run: "keyed", Seq: 1}, {Run: "r", Seq: 1}}, readOwed(t, b, hour, 10))
	record(t, b, durable.OfferID{Run: "r", Seq: 1}, durable.OfferID{Run: "keyed", Seq: 1})
	assert.Empty(t, readOwed(t, a, hour, 10))
	require.NoError(t, b.Delete(t.Context(), "r"))
	require.ErrorIs(t, second(a.Run(t.Context(), "r")), durable.ErrNotFound)
}

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
	stored := atOnce(writers, func(part int) (err error) {
		for i := part; i < runs && err == nil; i += writers {
			// A lease that runs out: Release would make the runs ready whose deadline has passed.
			l, begun := s.Begin(t.Context(), newJob(id(i)), "one", gone)
			err = errors.Join(begun, add(t.Context(), s, l, waitUpdate(1, waits(i)...)))
		}
		return err
	})
	require.NoError(t, errors.Join(append(stored, s.Close())...))

	s = open(t)
	defer func() { assert.NoError(t, s.Close()) }()
	for !reconcileAll(t, s).Done {
		continue
	}
	all := must(s.List(t.Context(), durable.Filter{Limit: 2 * runs}))(t)
	asked := must(s.OpenWaits(t.Context(), durable.WaitFilter{Limit: 2 * runs * each}))(t)
	byRun := lo.GroupBy(asked, func(w durable.Wait) agent.RunID { return w.Run })
	statuses := lo.SliceToMap(all, func(r durable.Run) (agent.RunID, durable.Status) { return r.ID, r.Status })
	for i := range runs {
		got := byRun[id(i)]
		require.Len(t, got, each)
		for n, w := range waits(i) {
			require.True(t, w.Deadline.Equal(got[n].Deadline), "run %d, wait %d: %v, want %v", i, n, got[n].Deadline, w.Deadline)
		}
		require.Equal(t, lo.Ternary(hasPassed(i), durable.StatusReady, durable.StatusWaiting), statuses[id(i)], "run %d", i)
	}
}
