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
		require.NoError(t, s.Signal(t.Context(), "r", cancelSignal("another reason")))
		r := getRun(t, s, "r")
		assert.Equal(t, []any{durable.StatusRunning, "enough", durable.CancelRequest, "one"}, []any{r.Status, r.CancelReason, r.CancelCause, r.Owner})
		writeUpdate(t, s, l, durable.Update{}, newEntry(1))
		_, err := s.Renew(t.Context(), l, hour)
		require.NoError(t, err)
		assert.Equal(t, "enough", getRun(t, s, "r").CancelReason)
		assert.Equal(t, []string{"cancel request enough"}, readSignals(t, s, "one")["r"])
		releaseRun(t, s, l)
		requireStatus(t, s, durable.StatusReady, "r")
	},
	"cancel without a reason": func(t *testing.T, s durable.Store) {
		beginRun(t, s, "r")
		require.NoError(t, s.Signal(t.Context(), "r", cancelSignal("")))
		assert.Equal(t, "cancelled", getRun(t, s, "r").CancelReason)
		require.NoError(t, s.Signal(t.Context(), "r", cancelSignal("too late")))
		assert.Equal(t, "cancelled", getRun(t, s, "r").CancelReason)
	},
	"cancel makes a started run ready that no process holds": func(t *testing.T, s durable.Store) {
		require.NoError(t, s.Release(t.Context(), beginRun(t, s, "pending"), hour))
		releaseRun(t, s, beginRun(t, s, "ready"))
		suspendRun(t, s, "waiting", newWait("c"))
		l := beginRun(t, s, "expired")
		writeUpdate(t, s, l, waitUpdate(1, newWait("c")))
		expireLease(t, s, l)
		before := getRun(t, s, "ready")
		ids := []agent.RunID{"pending", "ready", "waiting", "expired"}
		for _, id := range ids {
			require.NoError(t, s.Signal(t.Context(), id, cancelSignal("enough")))
		}
		requireStatus(t, s, durable.StatusReady, ids...)
		assert.Empty(t, getRun(t, s, "expired").Owner)
		stale(t, s, l)
		assert.True(t, before.Ready.Equal(getRun(t, s, "ready").Ready), "it was ready already")
		assert.ElementsMatch(t, ids, runIDs(claimRuns(t, s, 10, testerKey())))
		assert.Equal(t, []string{"cancel request enough"}, readSignals(t, s, "two")["pending"])
	},
	"cancel ends a run that has never started": func(t *testing.T, s durable.Store) {
		pending := newJob("pending")
		pending.NotBefore = later()
		submitJobs(t, s, pending, newJob("ready"), newJob("paused"), newJob("expired"))
		pauseRun(t, s, "paused")
		pauseRun(t, s, "expired")
		expired := acquireRun(t, s, "expired", "one", durable.TakeFree)
		expireLease(t, s, expired)
		suspendRun(t, s, "parent", newWaitTo("c", "pending"))
		ids := []agent.RunID{"pending", "ready", "paused", "expired"}
		for _, id := range ids {
			require.NoError(t, s.Signal(t.Context(), id, cancelSignal("enough")))
			r := getRun(t, s, id)
			assert.Equal(t, []any{durable.StatusCancelled, agent.StopUser, "enough", 0, "", false},
				[]any{r.Status, r.Reason, r.CancelReason, r.Attempts, r.Owner, r.Paused}, id)
		}
		requireStatus(t, s, durable.StatusCancelled, ids...)
		stale(t, s, expired)
		requireStatus(t, s, durable.StatusReady, "parent")
		assert.Equal(t, []agent.RunID{"parent"}, runIDs(claimRuns(t, s, 10, testerKey())))
		before := getRun(t, s, "ready")
		require.NoError(t, s.Signal(t.Context(), "ready", cancelSignal("again")))
		assert.Equal(t, before, getRun(t, s, "ready"))
	},
	"cancel of a run that has never started and that a process holds": func(t *testing.T, s durable.Store) {
		submitJobs(t, s, newJob("r"))
		pauseRun(t, s, "r")
		l := acquireRun(t, s, "r", "one", durable.TakeFree)
		require.NoError(t, s.Signal(t.Context(), "r", cancelSignal("enough")))
		requireStatus(t, s, durable.StatusWaiting, "r")
		assert.Equal(t, []string{"pause ", "cancel request enough"}, readSignals(t, s, "one")["r"])
		releaseRun(t, s, l)
		requireStatus(t, s, durable.StatusReady, "r")
		require.NoError(t, s.Signal(t.Context(), "r", cancelSignal("again")))
		requireStatus(t, s, durable.StatusCancelled, "r")
		assert.Equal(t, "enough", getRun(t, s, "r").CancelReason)
	},
	"cancel of a waiting run that a process holds": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		writeUpdate(t, s, l, waitUpdate(1, newWait("c")))
		require.NoError(t, s.Signal(t.Context(), "r", cancelSignal("enough")))
		requireStatus(t, s, durable.StatusWaiting, "r")
		releaseRun(t, s, l)
		requireStatus(t, s, durable.StatusReady, "r")
	},
	"none after the end": func(t *testing.T, s durable.Store) {
		endRun(t, s, beginRun(t, s, "r"))
		before := getRun(t, s, "r")
		for _, kind := range []durable.SignalKind{durable.SignalCancel, durable.SignalPause, durable.SignalResume, durable.SignalContext} {
			sendSignal(t, s, "r", kind, "text")
			assert.Equal(t, before, getRun(t, s, "r"), kind)
		}
		assert.Empty(t, readSignals(t, s, "one"))
	},
	"an unknown kind": func(t *testing.T, s durable.Store) {
		beginRun(t, s, "r")
		before := getRun(t, s, "r")
		for _, kind := range []durable.SignalKind{"", "stop", "Cancel"} {
			require.Error(t, s.Signal(t.Context(), "r", durable.Signal{Kind: kind, Text: "text"}), "%q", kind)
		}
		assert.Equal(t, before, getRun(t, s, "r"))
		assert.Empty(t, readSignals(t, s, "one"))
	},
	"context is numbered and kept": func(t *testing.T, s durable.Store) {
		beginRun(t, s, "r")
		for _, text := range []string{"first", "", "third"} {
			require.NoError(t, s.Signal(t.Context(), "r", durable.Signal{
				Run: "another", Seq: 77, Kind: durable.SignalContext, Text: text, By: "by " + text, At: longAgo(),
			}))
		}
		signals, err := s.Signals(t.Context(), "one")
		require.NoError(t, err)
		require.Len(t, signals, 3)
		for i, text := range []string{"first", "", "third"} {
			g := signals[i]
			assert.Equal(t, []any{agent.RunID("r"), int64(i + 1), durable.SignalContext, text, "by " + text}, []any{g.Run, g.Seq, g.Kind, g.Text, g.By})
			assert.WithinDuration(t, getRun(t, s, "r").Created, g.At, time.Minute, "the store says when")
		}
	},
	"context waits for a holder": func(t *testing.T, s durable.Store) {
		pending := newJob("pending")
		pending.NotBefore = later()
		submitJobs(t, s, pending, newJob("ready"))
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
			writeUpdate(t, s, l, endUpdate())
		}
	},
	"context is handled once": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		for _, text := range []string{"a", "b", "c"} {
			sendSignal(t, s, "r", durable.SignalContext, text)
		}
		writeCommit(t, s, l, durable.Commit{HandledSignals: 2})
		assert.Equal(t, []string{"context c"}, readSignals(t, s, "one")["r"])
		writeCommit(t, s, l, durable.Commit{HandledSignals: 1})
		assert.Equal(t, []string{"context c"}, readSignals(t, s, "one")["r"], "the number never falls")
		writeCommit(t, s, l, durable.Commit{Entries: newEntries(1, 1)})
		assert.Equal(t, []string{"context c"}, readSignals(t, s, "one")["r"], "zero handles none")

		acquireRun(t, s, "r", "two", durable.TakeOver)
		assert.Empty(t, readSignals(t, s, "one"))
		assert.Equal(t, []string{"context c"}, readSignals(t, s, "two")["r"], "the next process gets what was not handled")
		l = acquireRun(t, s, "r", "two", durable.TakeOver)
		writeCommit(t, s, l, durable.Commit{HandledSignals: 3})
		assert.Empty(t, readSignals(t, s, "two"))
		sendSignal(t, s, "r", durable.SignalContext, "d")
		assert.Equal(t, []string{"context d"}, readSignals(t, s, "two")["r"])
	},
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
		signals, err := s.Signals(t.Context(), "one")
		require.NoError(t, err)
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
	"an expired lease gets them, a released one does not": func(t *testing.T, s durable.Store) {
		l := beginAs(t, s, newJob("r"), "one", gone)
		sendSignal(t, s, "r", durable.SignalContext, "text")
		sendSignal(t, s, "r", durable.SignalCancel, "enough")
		assert.Equal(t, []string{"context text", "cancel request enough"}, readSignals(t, s, "one")["r"])
		releaseRun(t, s, l)
		assert.Empty(t, readSignals(t, s, "one"))
	},
	"a waiting run that a process holds": func(t *testing.T, s durable.Store) {
		writeUpdate(t, s, beginRun(t, s, "r"), waitUpdate(1, newWait("c")))
		sendSignal(t, s, "r", durable.SignalContext, "text")
		sendSignal(t, s, "r", durable.SignalPause, "")
		sendSignal(t, s, "r", durable.SignalCancel, "enough")
		assert.Equal(t, []string{"context text", "pause ", "cancel request enough"}, readSignals(t, s, "one")["r"])
	},
}
