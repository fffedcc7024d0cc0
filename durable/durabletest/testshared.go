package durabletest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// TestShared tests a store against the rules for restarts and for several processes. Place creates an empty storage
// location and returns a func that opens another handle on it at each call. Handles must share nothing except that
// location, as in different processes. TestShared closes the handles.
func TestShared(t *testing.T, place func(t *testing.T) (open func(t *testing.T) durable.Store)) {
	// handles opens two handles on one location and closes them when the test ends.
	handles := func(t *testing.T) (durable.Store, durable.Store) {
		open := place(t)
		a, b := open(t), open(t)
		t.Cleanup(func() {
			assert.NoError(t, a.Close(), "close one handle")
			assert.NoError(t, b.Close(), "close the other")
		})
		return a, b
	}
	shared := func(test func(t *testing.T, a, b durable.Store)) func(t *testing.T) {
		return func(t *testing.T) {
			a, b := handles(t)
			test(t, a, b)
		}
	}

	t.Run("everything survives a restart", func(t *testing.T) { testSurvival(t, place(t)) })
	t.Run("thousands of deadlines survive a restart", func(t *testing.T) { testDeadlines(t, place(t)) })
	for name, test := range map[string]func(t *testing.T, a, b durable.Store){
		"each sees what the other did":                 checkShared,
		"one of many begins":                           func(t *testing.T, a, b durable.Store) { oneBegins(t, a, b) },
		"one of many acquires":                         func(t *testing.T, a, b durable.Store) { oneAcquires(t, a, b) },
		"one job of a key":                             func(t *testing.T, a, b durable.Store) { oneKey(t, a, b) },
		"one run and many claimers":                    func(t *testing.T, a, b durable.Store) { oneClaims(t, a, b) },
		"many runs and many claimers":                  func(t *testing.T, a, b durable.Store) { allClaimed(t, a, b) },
		"one of many writes an entry":                  func(t *testing.T, a, b durable.Store) { oneCommits(t, a, b) },
		"one of many answers":                          func(t *testing.T, a, b durable.Store) { oneAnswers(t, a, b) },
		"one of many changes a document":               func(t *testing.T, a, b durable.Store) { oneChanges(t, a, b) },
		"a run starts after one that ends":             func(t *testing.T, a, b durable.Store) { startsWhileEnding(t, a, b) },
		"one of many answers comes next":               func(t *testing.T, a, b durable.Store) { oneCounts(t, a, b) },
		"many owners watch at once":                    func(t *testing.T, a, b durable.Store) { oneWatches(t, a, b) },
		"many reconcile at once":                       func(t *testing.T, a, b durable.Store) { onceReconciled(t, a, b) },
		"readers see whole writes":                     wholeWrites,
		"a process that was taken over writes no more": testFencing,
		"changes of the other":                         testChanges,
		"a change wakes a claimer":                     testWakes,
	} {
		t.Run(name, shared(test))
	}
}

// testWakes claims a run in one handle that another handle submits.
func testWakes(t *testing.T, a, b durable.Store) {
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
	l := beginRun(t, s, "waiting")
	writeUpdate(t, s, l, waitUpdate(2, q, newWait("d")), newEntries(1, 5)...)
	require.NoError(t, s.Answer(t.Context(), "waiting", durable.Answers(newAnswer("d"))))
	require.NoError(t, s.Signal(t.Context(), "waiting", cancelSignal("enough")))
	ended := endUpdate()
	ended.Result = []byte("the result")
	writeUpdate(t, s, beginRun(t, s, "ended"), ended, newEntry(1))
	running := beginAs(t, s, fullJob("running"), "one", hour)
	writeCommit(t, s, running, durable.Commit{Events: []durable.Event{newEvent("a"), newEvent("b")}})
	sendSignal(t, s, "running", durable.SignalContext, "text")
	sendSignal(t, s, "running", durable.SignalPause, "")
	pending := newJob("pending")
	pending.NotBefore = later()
	submitJobs(t, s, pending, newJob("ready"))
	on := durable.Switch{On: true, Reason: "fire", By: "ops", Since: testTime()}
	require.NoError(t, s.SetDenyTools(t.Context(), on))
	partial := newAnswer("c")
	partial.More, partial.By = true, "ann"
	suspendRun(t, s, "watched", newWatch("c", durable.WaitFile, "h"))
	require.NoError(t, s.Answer(t.Context(), "watched", durable.Answers(partial)))
	assert.Equal(t, []string{"watched/c"}, claimWatches(t, s, "one", hour, 1, watched, "h"))
	require.NoError(t, s.AddWaiver(t.Context(), newWaiver("w")))
	require.NoError(t, s.RevokeWaiver(t.Context(), "w", "bob"))
	putDocuments(t, s, "d")
	document := readDocument(t, s, "d", 0)
	submitJobs(t, s, newPhaseJob("phase"), newJobAfter("after", "watched"))
	passed := beginRun(t, s, "passed")
	writeCommit(t, s, passed, passTo(phaseKind, []byte("second input")))
	offers := readOwed(t, s, hour, 10)
	all, err := s.List(t.Context(), durable.Filter{})
	require.NoError(t, err)
	asked, watch, records, waivers := readWaits(t, s, "waiting"), readWaits(t, s, "watched"), readRecords(t, s, durable.AuditFilter{}), readWaivers(t, s, true)
	require.NoError(t, s.Close())

	s = open(t)
	defer func() { assert.NoError(t, s.Close()) }()
	again, err := s.List(t.Context(), durable.Filter{})
	require.NoError(t, err)
	assert.Equal(t, all, again)
	sameJob(t, fullJob("running"), getRun(t, s, "running"))
	assert.Equal(t, string(fullJob("running").Input), readInput(t, s, "running"))
	assert.Equal(t, "the result", readResult(t, s, "ended"))
	assert.Equal(t, []string{"a", "b"}, eventNames(t, s, "running"))
	assert.Equal(t, []string{"context text", "pause "}, readSignals(t, s, "one")["running"])
	assert.Equal(t, offers, readOwed(t, s, hour, 10))
	assert.Equal(t, agent.RunID("running"), submitJobs(t, s, keyedJob("other", "key of running"))[0].ID)
	sameEntries(t, newEntries(1, 5), readJournal(t, s, "waiting"))
	for i, q := range readWaits(t, s, "waiting") {
		sameWait(t, asked[i], q)
	}
	sameWait(t, watch[0], readWaits(t, s, "watched")[0])
	assert.Empty(t, claimWatches(t, s, "two", hour, 1, watched, "h"))
	assert.Equal(t, document, readDocument(t, s, "d", 0))
	assert.Equal(t, []string{"second input", "input of passed"}, []string{readInput(t, s, "passed"), readSubmitted(t, s, "passed")})
	writeCommit(t, s, passed, passTo(phaseKind, []byte("second input")))
	sameWait(t, durable.AfterWait("after", "watched", getRun(t, s, "after").Created), readWaits(t, s, "after")[0])
	assert.Equal(t, records, readRecords(t, s, durable.AuditFilter{}))
	assert.Equal(t, waivers, readWaivers(t, s, true))
	found, err := s.WaitByToken(t.Context(), q.TokenHash)
	require.NoError(t, err)
	assert.Equal(t, "c", found.ID)
	sw, err := s.DenyTools(t.Context())
	require.NoError(t, err)
	assert.True(t, on.Since.Equal(sw.Since))
	assert.Equal(t, []any{on.On, on.Reason, on.By}, []any{sw.On, sw.Reason, sw.By})

	_, err = s.Acquire(t.Context(), "running", "two", hour, durable.TakeFree)
	require.ErrorAs(t, err, new(*durable.HeldError), "a lease outlives a restart")
	writeUpdate(t, s, running, durable.Update{}, newEntry(1))
	beginRun(t, s, "new")
	assert.Equal(t, []agent.RunID{"new", "passed", "after", "phase", "watched", "ready", "pending", "running", "ended", "waiting"},
		listIDs(t, s, durable.Filter{}))
}

func checkShared(t *testing.T, a, b durable.Store) {
	l := beginRun(t, a, "r")
	assert.Equal(t, getRun(t, a, "r"), getRun(t, b, "r"))
	_, err := b.Acquire(t.Context(), "r", "two", hour, durable.TakeFree)
	require.ErrorAs(t, err, new(*durable.HeldError))
	writeUpdate(t, a, l, waitUpdate(1, newWait("c")), newEntry(1))
	sameEntries(t, readJournal(t, a, "r"), readJournal(t, b, "r"))
	require.NoError(t, b.Answer(t.Context(), "r", durable.Answers(newAnswer("c"))))
	require.ErrorIs(t, a.Answer(t.Context(), "r", durable.Answers(newAnswer("c"))), durable.ErrAnswered)
	require.NoError(t, b.Signal(t.Context(), "r", cancelSignal("enough")))
	assert.Equal(t, "enough", getRun(t, a, "r").CancelReason)

	require.NoError(t, b.Signal(t.Context(), "r", durable.Signal{Kind: durable.SignalContext, Text: "text"}))
	assert.Equal(t, []string{"context text", "cancel request enough"}, readSignals(t, a, "one")["r"])
	writeCommit(t, a, l, durable.Commit{Events: []durable.Event{newEvent("e")}, HandledSignals: 1})
	assert.Equal(t, []string{"e"}, eventNames(t, b, "r"))
	assert.Equal(t, []string{"cancel request enough"}, readSignals(t, b, "one")["r"])
	submitJobs(t, a, keyedJob("keyed", "k"))
	assert.Equal(t, agent.RunID("keyed"), submitJobs(t, b, keyedJob("other", "k"))[0].ID)
	assert.Equal(t, queueKeys(t, a), queueKeys(t, b))

	taken := acquireRun(t, b, "r", "two", durable.TakeOver)
	stale(t, a, l)
	writeUpdate(t, a, taken, durable.Update{}, newEntry(2)) // a lease is good in any process
	require.NoError(t, b.SetDenyTools(t.Context(), durable.Switch{On: true}))
	sw, err := a.DenyTools(t.Context())
	require.NoError(t, err)
	assert.True(t, sw.On)
	releaseRun(t, a, taken)
	requireStatus(t, b, durable.StatusReady, "r")
	assert.Equal(t, []durable.OfferID{{Run: "keyed", Seq: 1}, {Run: "r", Seq: 1}}, readOwed(t, b, hour, 10))
	record(t, b, durable.OfferID{Run: "r", Seq: 1}, durable.OfferID{Run: "keyed", Seq: 1})
	assert.Empty(t, readOwed(t, a, hour, 10))
	require.NoError(t, b.Delete(t.Context(), "r"))
	_, err = a.Run(t.Context(), "r")
	require.ErrorIs(t, err, durable.ErrNotFound)
}
