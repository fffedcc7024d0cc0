package durabletest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// waking tests when a waiting run becomes ready.
var waking = map[string]part{
	"a run with open questions waits": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "person", newWait("c"))
		suspendRun(t, s, "later", newWaitBy("c", later()))
		suspendRun(t, s, "child", newWaitTo("c", "person"))
		suspendRun(t, s, "no child", newWaitTo("c", unknownRun))
		assert.False(t, reconcileAll(t, s).Changed())
		requireStatus(t, s, durable.StatusWaiting, "person", "later", "child", "no child")
		assert.Empty(t, claimRuns(t, s, 10, testerKey()))
		assert.Empty(t, readOwed(t, s, hour, 10))
	},
	"a run without questions does not wait": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "r")
		requireStatus(t, s, durable.StatusReady, "r")
	},
	"all questions are answered": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "r", newWait("c"), newWait("d"))
		answerRun(t, s, "r", "c")
		requireStatus(t, s, durable.StatusWaiting, "r")
		answerRun(t, s, "r", "d")
		requireStatus(t, s, durable.StatusReady, "r")
		assert.Equal(t, []agent.RunID{"r"}, runIDs(claimRuns(t, s, 10, testerKey())))
		assert.Len(t, readWaits(t, s, "r"), 2, "the questions stay until a commit")
	},
	"all answers at once": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "r", newWait("c"), newWait("d"))
		require.NoError(t, s.Answer(t.Context(), "r", durable.Answers(newAnswer("d"), newAnswer("c"))))
		requireStatus(t, s, durable.StatusReady, "r")
	},
	"an answer ends the run": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "r", newWait("c"), newWait("d"))
		a := newAnswer("d")
		a.Ends = true
		require.NoError(t, s.Answer(t.Context(), "r", durable.Answers(a)))
		requireStatus(t, s, durable.StatusReady, "r")
	},
	"any of the waits": func(t *testing.T, s durable.Store) {
		suspendAny := func(id agent.RunID, waits ...durable.Wait) durable.Lease {
			l := beginRun(t, s, id)
			u := waitUpdate(1, waits...)
			u.AnyWait = true
			writeUpdate(t, s, l, u)
			return l
		}
		decided := newWait("d")
		decided.Answer = new(newAnswer("d"))
		for id, other := range map[agent.RunID]durable.Wait{
			"answer": newWait("d"), "partial": newWait("d"), "given": decided, "overdue": newWaitBy("d", longAgo()), "later": newWaitBy("d", later()),
		} {
			releaseRun(t, s, suspendAny(id, newWait("c"), other))
		}
		requireStatus(t, s, durable.StatusWaiting, "answer", "partial", "later")
		requireStatus(t, s, durable.StatusReady, "given", "overdue")
		answerRun(t, s, "answer", "d")
		partial := newAnswer("d")
		partial.More = true
		require.NoError(t, s.Answer(t.Context(), "partial", durable.Answers(partial)))
		requireStatus(t, s, durable.StatusReady, "answer")
		requireStatus(t, s, durable.StatusWaiting, "partial", "later")

		l := suspendAny("all again", newWait("c"), newWait("d"))
		writeUpdate(t, s, l, waitUpdate(1, newWait("c"), newWait("d")))
		answerRun(t, s, "all again", "c")
		releaseRun(t, s, l)
		requireStatus(t, s, durable.StatusWaiting, "all again")
		l = suspendAny("held", newWait("c"), newWait("d"))
		answerRun(t, s, "held", "d")
		writeUpdate(t, s, l, durable.Update{}, newEntry(1))
		requireStatus(t, s, durable.StatusWaiting, "held")
		releaseRun(t, s, l)
		requireStatus(t, s, durable.StatusReady, "held")
		kid := beginRun(t, s, "kid")
		releaseRun(t, s, suspendAny("child", newWait("c"), newWaitTo("d", "kid")))
		endRun(t, s, kid)
		requireStatus(t, s, durable.StatusReady, "child")
	},
	// LH-81: a parent that waits for its child becomes ready when the child has ended.
	"a child has ended": func(t *testing.T, s durable.Store) {
		for _, status := range []durable.Status{durable.StatusCompleted, durable.StatusFailed, durable.StatusStopped, durable.StatusCancelled} {
			id, kid := agent.RunID(status), agent.RunID("child of "+status)
			l := beginRun(t, s, kid)
			suspendRun(t, s, id, newWait("c"), newWaitTo("d", kid))
			writeUpdate(t, s, l, durable.Update{}, newEntry(1))
			requireStatus(t, s, durable.StatusWaiting, id)
			writeUpdate(t, s, l, durable.Update{Status: status})
			requireStatus(t, s, durable.StatusReady, id)
		}
	},
	"all parents of a child": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "kid")
		for _, id := range []agent.RunID{"a", "b", "c"} {
			suspendRun(t, s, id, newWaitTo("c", "kid"))
		}
		suspendRun(t, s, "other", newWaitTo("c", "other kid"))
		endRun(t, s, l)
		requireStatus(t, s, durable.StatusReady, "a", "b", "c")
		requireStatus(t, s, durable.StatusWaiting, "other")
	},
	"a child ends after its question was answered": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "kid")
		suspendRun(t, s, "r", newWait("c"), newWaitTo("d", "kid"))
		answerRun(t, s, "r", "d")
		endRun(t, s, l)
		requireStatus(t, s, durable.StatusWaiting, "r")
	},
	"a child ended before its parent waits": func(t *testing.T, s durable.Store) {
		endRun(t, s, beginRun(t, s, "kid"))
		suspendRun(t, s, "r", newWaitTo("c", "kid"))
		requireStatus(t, s, durable.StatusReady, "r")
	},
	"a child ends while its parent is held": func(t *testing.T, s durable.Store) {
		kid, l := beginRun(t, s, "kid"), beginRun(t, s, "r")
		writeUpdate(t, s, l, waitUpdate(1, newWaitTo("c", "kid")))
		endRun(t, s, kid)
		requireStatus(t, s, durable.StatusWaiting, "r")
		releaseRun(t, s, l)
		requireStatus(t, s, durable.StatusReady, "r")
	},
	"an answer while the run is held": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		writeUpdate(t, s, l, waitUpdate(1, newWait("c")))
		answerRun(t, s, "r", "c")
		requireStatus(t, s, durable.StatusWaiting, "r")
		writeUpdate(t, s, l, durable.Update{}, newEntry(1))
		releaseRun(t, s, l)
		requireStatus(t, s, durable.StatusReady, "r")
	},
	"an answer after the lease has expired": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		writeUpdate(t, s, l, waitUpdate(1, newWait("c")))
		expireLease(t, s, l)
		answerRun(t, s, "r", "c")
		requireStatus(t, s, durable.StatusReady, "r")
		assert.Empty(t, getRun(t, s, "r").Owner)
		stale(t, s, l)
	},
	"a deadline passed before the release": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "r", newWaitBy("c", later()), newWaitBy("d", longAgo()))
		requireStatus(t, s, durable.StatusReady, "r")
		assert.True(t, longAgo().Equal(getRun(t, s, "r").AnswerBy), "the first deadline counts")
	},
	"a ready run keeps its journal": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		writeUpdate(t, s, l, waitUpdate(3, newWait("c")), newEntries(1, 5)...)
		releaseRun(t, s, l)
		answerRun(t, s, "r", "c")
		r := getRun(t, s, "r")
		assert.Equal(t, []any{durable.StatusReady, 3, int64(5), int64(1), 1}, []any{r.Status, r.Steps, r.Entries, r.Epoch, r.Attempts})
		claimed := claimRuns(t, s, 1, testerKey())[0]
		assert.Equal(t, []any{int64(2), 2}, []any{claimed.Epoch, claimed.Attempts})
		sameEntries(t, newEntries(1, 5), readJournal(t, s, "r"))
		writeUpdate(t, s, claimed.Lease(), durable.Update{}, newEntry(6))
	},
	"a release with a delay": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		require.NoError(t, s.Release(t.Context(), l, hour))
		requireStatus(t, s, durable.StatusPending, "r")
		r := getRun(t, s, "r")
		assert.WithinDuration(t, r.Created.Add(hour), r.NotBefore, time.Minute)
		assert.Equal(t, []any{"", int64(1), 1}, []any{r.Owner, r.Epoch, r.Attempts})
		stale(t, s, l)
		assert.Empty(t, claimRuns(t, s, 10, testerKey()))
		assert.Empty(t, readOwed(t, s, hour, 10))
		assert.False(t, reconcileAll(t, s).Changed())
		acquireRun(t, s, "r", "one", durable.TakeFree)
		requireStatus(t, s, durable.StatusRunning, "r")
	},
	"a delay ends": func(t *testing.T, s durable.Store) {
		require.NoError(t, s.Release(t.Context(), beginRun(t, s, "r"), time.Millisecond))
		requireStatus(t, s, durable.StatusPending, "r")
		assert.Equal(t, 1, reconcileUntil(t, s, func(r durable.Reconciled) bool { return r.Due > 0 }).Due)
		requireStatus(t, s, durable.StatusReady, "r")
	},
	"a delay of a run that is cancelled, paused or waiting": func(t *testing.T, s durable.Store) {
		release := func(id agent.RunID, u durable.Update, kinds ...durable.SignalKind) {
			l := beginRun(t, s, id)
			writeUpdate(t, s, l, u)
			for _, kind := range kinds {
				sendSignal(t, s, id, kind, "")
			}
			require.NoError(t, s.Release(t.Context(), l, hour), id)
		}
		release("cancelled", durable.Update{}, durable.SignalCancel)
		release("cancelled and paused", durable.Update{}, durable.SignalPause, durable.SignalCancel)
		release("paused", durable.Update{}, durable.SignalPause)
		release("waiting", waitUpdate(1, newWait("c")))
		release("satisfied", waitUpdate(1))
		requireStatus(t, s, durable.StatusReady, "cancelled", "cancelled and paused", "satisfied")
		requireStatus(t, s, durable.StatusWaiting, "paused", "waiting")
	},
	"cancel ends a delay": func(t *testing.T, s durable.Store) {
		require.NoError(t, s.Release(t.Context(), beginRun(t, s, "r"), hour))
		sendSignal(t, s, "r", durable.SignalCancel, "")
		requireStatus(t, s, durable.StatusReady, "r")
	},
	"a refused end wakes no run": func(t *testing.T, s durable.Store) {
		ended := beginRun(t, s, "ended")
		endRun(t, s, ended)
		l := beginRun(t, s, "r")
		writeUpdate(t, s, l, waitUpdate(1, newWaitTo("c", "ended")))
		expireLease(t, s, l)
		require.ErrorIs(t, add(t.Context(), s, ended, endUpdate(), newEntry(1)), durable.ErrStale)
		require.NoError(t, s.Signal(t.Context(), "ended", cancelSignal("late")))
		requireStatus(t, s, durable.StatusWaiting, "r")
	},
}
