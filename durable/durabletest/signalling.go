package durabletest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

var signalling = map[string]part{
	"cancel is a request to the holder": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		assert.Empty(t, getRun(t, s, "r").CancelCause)
		require.NoError(t, s.Signal(t.Context(), "r", durable.Signal{Kind: durable.SignalCancel, Text: "enough", Cause: durable.CancelDeadline}))
		sendSignal(t, s, "r", durable.SignalCancel, "another reason")
		r := getRun(t, s, "r")
		assert.Equal(t, []any{durable.StatusRunning, "enough", durable.CancelRequest, "one"}, []any{r.Status, r.CancelReason, r.CancelCause, r.Owner})
		writeUpdate(t, s, l, durable.Update{}, newEntry(1))
		require.NoError(t, second(s.Renew(t.Context(), l, hour)))
		assert.Equal(t, "enough", getRun(t, s, "r").CancelReason)
		assert.Equal(t, []string{"cancel request enough"}, readSignals(t, s, "one")["r"])
		releaseRun(t, s, l)
		requireStatus(t, s, durable.StatusReady, "r")
	},
	"cancel without a reason": func(t *testing.T, s durable.Store) {
		beginRun(t, s, "r")
		sendSignal(t, s, "r", durable.SignalCancel, "")
		assert.Equal(t, "cancelled", getRun(t, s, "r").CancelReason)
		sendSignal(t, s, "r", durable.SignalCancel, "too late")
		assert.Equal(t, "cancelled", getRun(t, s, "r").CancelReason)
	},
	"cancel makes a started run ready that is delayed":         play(begin, delayHour, cancel, isReady, claim, hearSignals("two", "cancel request enough")),
	"cancel makes a started run ready that waits":              play(suspendOn(newWait("c")), cancel, isReady, claim),
	"cancel makes a started run ready whose lease has expired": play(begin, askWaits(newWait("c")), expire, cancel, isReady, isFree, claim),
	"cancel leaves a started run ready": func(t *testing.T, s durable.Store) {
		play(begin, release)(t, s)
		before := getRun(t, s, "r").Ready
		play(cancel, isReady)(t, s)
		assert.True(t, before.Equal(getRun(t, s, "r").Ready))
	},
	"cancel ends a run that has never started": func(t *testing.T, s durable.Store) {
		submitJobs(t, s, newLaterJob("pending"), newJob("ready"), newJob("paused"), newJob("expired"))
		pauseRun(t, s, "paused")
		pauseRun(t, s, "expired")
		expired := acquireRun(t, s, "expired", "one", durable.TakeFree)
		expireLease(t, s, expired)
		suspendRun(t, s, "parent", newWaitTo("c", "pending"))
		ids := []agent.RunID{"pending", "ready", "paused", "expired"}
		for _, id := range ids {
			sendSignal(t, s, id, durable.SignalCancel, "enough")
			r := getRun(t, s, id)
			assert.Equal(t, []any{durable.StatusCancelled, agent.StopUser, "enough", 0, "", false},
				[]any{r.Status, r.Reason, r.CancelReason, r.Attempts, r.Owner, r.Paused}, id)
		}
		requireStatus(t, s, durable.StatusCancelled, ids...)
		stale(t, s, expired)
		requireStatus(t, s, durable.StatusReady, "parent")
		assert.Equal(t, []agent.RunID{"parent"}, runIDs(claimRuns(t, s, 10, testerKey())))
		before := getRun(t, s, "ready")
		sendSignal(t, s, "ready", durable.SignalCancel, "again")
		assert.Equal(t, before, getRun(t, s, "ready"))
	},
	"cancel of a run that has never started and that a process holds": play(
		submit, pause, acquire, cancel, isWaiting, hearSignals("two", "pause ", "cancel request enough"), release, isReady, cancel, isCancelled,
	),
	"cancel of a waiting run that a process holds": play(begin, askWaits(newWait("c")), cancel, isWaiting, release, isReady),
	"none after the end": func(t *testing.T, s durable.Store) {
		endRun(t, s, beginRun(t, s, "r"))
		changesNothing(t, s, func() {
			for _, kind := range []durable.SignalKind{durable.SignalCancel, durable.SignalPause, durable.SignalResume, durable.SignalContext} {
				sendSignal(t, s, "r", kind, "text")
			}
		})
	},
	"an unknown kind": func(t *testing.T, s durable.Store) {
		beginRun(t, s, "r")
		changesNothing(t, s, func() {
			for _, kind := range []durable.SignalKind{"", "stop", "Cancel"} {
				require.Error(t, s.Signal(t.Context(), "r", durable.Signal{Kind: kind, Text: "text"}), "%q", kind)
			}
		})
	},
	"context is numbered and kept": func(t *testing.T, s durable.Store) {
		beginRun(t, s, "r")
		for _, text := range []string{"first", "", "third"} {
			require.NoError(t, s.Signal(t.Context(), "r", durable.Signal{
				Run: "another", Seq: 77, Kind: durable.SignalContext, Text: text, By: "by " + text, At: longAgo(),
			}))
		}
		signals := must(s.Signals(t.Context(), "one"))(t)
		require.Len(t, signals, 3)
		for i, text := range []string{"first", "", "third"} {
			g := signals[i]
			assert.Equal(t, []any{agent.RunID("r"), int64(i + 1), durable.SignalContext, text, "by " + text}, []any{g.Run, g.Seq, g.Kind, g.Text, g.By})
			assert.WithinDuration(t, getRun(t, s, "r").Created, g.At, time.Minute, "the store says when")
		}
	},
	"context waits for a holder": func(t *testing.T, s durable.Store) {
		submitJobs(t, s, newLaterJob("pending"), newJob("ready"))
		suspendRun(t, s, "waiting", newWait("c"))
		for id, status := range map[agent.RunID]durable.Status{
			"pending": durable.StatusPending, "ready": durable.StatusReady, "waiting": durable.StatusWaiting,
		} {
			sendSignal(t, s, id, durable.SignalContext, "text")
			requireStatus(t, s, status, id)
			assert.Empty(t, readSignals(t, s, "one"))
			assert.Empty(t, readSignals(t, s, ""))
			acquireRun(t, s, id, "one", durable.TakeFree)
			assert.Equal(t, map[agent.RunID][]string{id: {"context text"}}, readSignals(t, s, "one"))
			l := acquireRun(t, s, id, "one", durable.TakeOver)
			endRun(t, s, l)
		}
	},
	"context is handled once": play( // the number of the last one never falls, and the next process gets what was not handled
		begin, sendText(durable.SignalContext, "a"), sendText(durable.SignalContext, "b"), sendText(durable.SignalContext, "c"),
		handleSignals(2), hearSignals("one", "context c"), handleSignals(1), hearSignals("one", "context c"), writeEntry, hearSignals("one", "context c"),
		takeOver, hearSignals("one"), hearSignals("two", "context c"), takeOver, handleSignals(3), hearSignals("two"),
		sendText(durable.SignalContext, "d"), hearSignals("two", "context d"),
	),
	"cancel and pause stay": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		sendSignal(t, s, "r", durable.SignalCancel, "enough")
		sendSignal(t, s, "r", durable.SignalContext, "text")
		sendSignal(t, s, "r", durable.SignalPause, "")
		for range 2 {
			assert.Equal(t, []string{"context text", "pause ", "cancel request enough"}, readSignals(t, s, "one")["r"])
		}
		writeCommit(t, s, l, durable.Commit{HandledSignals: 1})
		assert.Equal(t, []string{"pause ", "cancel request enough"}, readSignals(t, s, "one")["r"])
		signals := must(s.Signals(t.Context(), "one"))(t)
		for _, g := range signals {
			assert.Zero(t, g.Seq)
			assert.True(t, g.At.IsZero())
		}
		sendSignal(t, s, "r", durable.SignalResume, "")
		assert.Equal(t, []string{"cancel request enough"}, readSignals(t, s, "one")["r"])
	},
	"of all runs of one owner": func(t *testing.T, s durable.Store) {
		for id, owner := range map[agent.RunID]string{"a": "one", "b": "one", "c": "two", "d": "one"} {
			beginAs(t, s, newJob(id), owner, hour)
		}
		submitJobs(t, s, newJob("e"))
		for _, id := range []agent.RunID{"a", "b", "c", "e"} {
			sendSignal(t, s, id, durable.SignalContext, "to "+string(id))
			sendSignal(t, s, id, durable.SignalPause, "")
		}
		sendSignal(t, s, "a", durable.SignalContext, "more")
		assert.Equal(t, map[agent.RunID][]string{"a": {"context to a", "context more", "pause "}, "b": {"context to b", "pause "}}, readSignals(t, s, "one"))
		assert.Equal(t, map[agent.RunID][]string{"c": {"context to c", "pause "}}, readSignals(t, s, "two"))
		assert.Empty(t, readSignals(t, s, "three"))
		assert.Empty(t, readSignals(t, s, ""))
	},
	"an expired lease gets them, a released one does not": play(
		begin, expire, sendText(durable.SignalContext, "text"), cancel, hearSignals("one", "context text", "cancel request enough"), release,
		hearSignals("one"),
	),
	"a waiting run that a process holds": play(
		begin, askWaits(newWait("c")), sendText(durable.SignalContext, "text"), pause, cancel,
		hearSignals("one", "context text", "pause ", "cancel request enough"),
	),
}

var pausing = map[string]part{
	"a ready run waits":   play(submit, pause, isWaiting, pause, isIdle, resume, isReady, claim),
	"a pending run waits": play(submitLater, pause, isWaiting, resume, isPending, isIdle),
	"a running run goes on until it is released": play(
		begin, pause, isRunning, hearSignals("one", "pause "), writeEntry, isPaused, release, isWaiting, resume, isReady,
	),
	"a running run that is resumed before it is released": play(begin, pause, resume, isRunning, hearSignals("one"), release, isReady),
	"a running run whose lease expires": play(
		begin, pause, expire, reconciles(durable.Reconciled{Expired: 1}), isWaiting, isFree, isIdle, resume, isReady,
	),
	"a waiting run stays waiting": play(
		suspendOn(newWait("c")), pause, isWaiting, resume, isWaiting, pause, answerWaits(newAnswer("c")), isWaiting, resume, isReady,
	),
	"a child does not wake a paused run": play(beginKid, suspendOn(newWaitTo("c", "kid")), pause, endKid, isWaiting, resume, isReady),
	"a deadline does not wake a paused run": play( // the claim needs no call of Reconcile
		begin, pause, askWaits(newWaitBy("c", longAgo())), release, isIdle, isWaiting, resume, isReady, claim,
	),
	"the delay of a release ends with a pause": play(begin, delayHour, isPending, pause, resume, isReady),
	"a waiting run that a process holds": play(
		begin, askWaits(newWait("c")), pause, answerWaits(newAnswer("c")), release, isWaiting, acquire, isWaiting, resume, isWaiting, release, isReady,
	),
	"a run that must not start yet": play(
		submitLater, pause, acquire, resume, release, isPending, pause, acquire, askWaits(newWait("c")), expire, resume, isWaiting,
	),
	"resume without a pause": play(
		submitLater, leavesStore(resume), acquire, leavesStore(resume), askWaits(newWait("c")), release, leavesStore(resume), answerWaits(newAnswer("c")),
		isReady, leavesStore(resume),
	),
	"a text of resume is added": play(
		begin, sendText(durable.SignalResume, "not paused"), pause, sendText(durable.SignalResume, "paused"), resume, sendText(durable.SignalContext, "more"),
		hearSignals("one", "resume not paused", "resume paused", "context more"), handleSignals(2), hearSignals("one", "context more"),
	),
	"cancel beats pause":                        play(begin, release, pause, cancel, isReady, claim),
	"cancel beats a later pause":                play(begin, release, cancel, pause, isReady, claim),
	"cancel beats pause at the release":         play(begin, pause, cancel, release, isReady),
	"cancel beats pause when the lease expires": play(begin, pause, cancel, expire, reconciles(durable.Reconciled{Expired: 1}), isReady),
	"cancel beats pause at an answer":           play(begin, askWaits(newWait("c")), pause, cancel, expire, answerWaits(newAnswer("c")), isReady),
	"an end clears it":                          play(begin, pause, finishRun),
}

// updating tests Run.Updated: each change of a run sets it, except for the renewal of its lease.
var updating = map[string]part{
	"by leases": play(
		submit, updates(claim), updates(takeOver), updates(writeEntry), updates(askWaits(newWait("c"))), updates(release),
		updates(acquire), leavesUpdated(expire), updates(reconciles(durable.Reconciled{Expired: 1})),
	),
	"by signals": play(
		submit, leavesStore(resume), updates(pause), leavesStore(pause), updates(resume), updates(sendText(durable.SignalContext, "text")),
		updates(sendText(durable.SignalResume, "text")), updates(cancel), leavesStore(cancel),
	),
	"by signals to a held run": play(begin, updates(pause), updates(resume), updates(cancel), leavesStore(cancel)),
	"by answers":               play(suspendOn(newWait("c"), newWait("d")), updates(answerWaits(newAnswer("c"))), updates(answerWaits(newAnswer("d")))),
	"by the end of a child":    play(beginKid, suspendOn(newWaitTo("c", "kid")), updates(endKid)),
}
