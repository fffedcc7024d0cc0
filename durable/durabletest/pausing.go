package durabletest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

var pausing = map[string]part{
	"a ready run waits": func(t *testing.T, s durable.Store) {
		submitJobs(t, s, newJob("r"))
		pauseRun(t, s, "r")
		requireStatus(t, s, durable.StatusWaiting, "r")
		pauseRun(t, s, "r")
		assert.Empty(t, claimRuns(t, s, 10, testerKey()))
		assert.Empty(t, readOwed(t, s, hour, 10))
		assert.False(t, reconcileAll(t, s).Changed())
		resumeRun(t, s, "r")
		requireStatus(t, s, durable.StatusReady, "r")
		assert.Equal(t, []agent.RunID{"r"}, runIDs(claimRuns(t, s, 10, testerKey())))
	},
	"a pending run waits": func(t *testing.T, s durable.Store) {
		j := newJob("r")
		j.NotBefore = later()
		submitJobs(t, s, j)
		pauseRun(t, s, "r")
		requireStatus(t, s, durable.StatusWaiting, "r")
		resumeRun(t, s, "r")
		requireStatus(t, s, durable.StatusPending, "r")
		assert.Empty(t, claimRuns(t, s, 10, testerKey()))
	},
	"a running run goes on until it is released": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		pauseRun(t, s, "r")
		requireStatus(t, s, durable.StatusRunning, "r")
		assert.Equal(t, []string{"pause "}, readSignals(t, s, "one")["r"])
		writeUpdate(t, s, l, durable.Update{Status: durable.StatusRunning, Steps: 1}, newEntry(1))
		assert.True(t, getRun(t, s, "r").Paused, "a commit does not resume")
		releaseRun(t, s, l)
		requireStatus(t, s, durable.StatusWaiting, "r")
		assert.Empty(t, getRun(t, s, "r").Owner)
		stale(t, s, l)
		resumeRun(t, s, "r")
		requireStatus(t, s, durable.StatusReady, "r")
	},
	"a running run that is resumed before it is released": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		pauseRun(t, s, "r")
		resumeRun(t, s, "r")
		requireStatus(t, s, durable.StatusRunning, "r")
		assert.Empty(t, readSignals(t, s, "one"))
		releaseRun(t, s, l)
		requireStatus(t, s, durable.StatusReady, "r")
	},
	"a running run whose lease expires": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		pauseRun(t, s, "r")
		expireLease(t, s, l)
		assert.Equal(t, 1, reconcileAll(t, s).Expired)
		requireStatus(t, s, durable.StatusWaiting, "r")
		assert.Empty(t, claimRuns(t, s, 10, testerKey()))
		resumeRun(t, s, "r")
		requireStatus(t, s, durable.StatusReady, "r")
	},
	"a waiting run stays waiting": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "r", newWait("c"))
		pauseRun(t, s, "r")
		requireStatus(t, s, durable.StatusWaiting, "r")
		resumeRun(t, s, "r")
		requireStatus(t, s, durable.StatusWaiting, "r")
		pauseRun(t, s, "r")
		answerRun(t, s, "r", "c")
		requireStatus(t, s, durable.StatusWaiting, "r")
		resumeRun(t, s, "r")
		requireStatus(t, s, durable.StatusReady, "r")
	},
	"a child does not wake a paused run": func(t *testing.T, s durable.Store) {
		kid := beginRun(t, s, "kid")
		suspendRun(t, s, "r", newWaitTo("c", "kid"))
		pauseRun(t, s, "r")
		endRun(t, s, kid)
		requireStatus(t, s, durable.StatusWaiting, "r")
		resumeRun(t, s, "r")
		requireStatus(t, s, durable.StatusReady, "r")
	},
	"a deadline does not wake a paused run": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		pauseRun(t, s, "r")
		writeUpdate(t, s, l, waitUpdate(1, newWaitBy("c", longAgo())))
		releaseRun(t, s, l)
		assert.False(t, reconcileAll(t, s).Changed())
		requireStatus(t, s, durable.StatusWaiting, "r")
		resumeRun(t, s, "r")
		requireStatus(t, s, durable.StatusReady, "r")
		assert.Len(t, claimRuns(t, s, 1, testerKey()), 1, "without a call of Reconcile")
	},
	"the delay of a release ends with a pause": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		require.NoError(t, s.Release(t.Context(), l, hour))
		requireStatus(t, s, durable.StatusPending, "r")
		pauseRun(t, s, "r")
		resumeRun(t, s, "r")
		requireStatus(t, s, durable.StatusReady, "r")
	},
	"a waiting run that a process holds": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		writeUpdate(t, s, l, waitUpdate(1, newWait("c")))
		pauseRun(t, s, "r")
		answerRun(t, s, "r", "c")
		releaseRun(t, s, l)
		requireStatus(t, s, durable.StatusWaiting, "r")
		l = acquireRun(t, s, "r", "two", durable.TakeFree)
		requireStatus(t, s, durable.StatusWaiting, "r")
		resumeRun(t, s, "r")
		requireStatus(t, s, durable.StatusWaiting, "r")
		releaseRun(t, s, l)
		requireStatus(t, s, durable.StatusReady, "r")
	},
	"a run that must not start yet": func(t *testing.T, s durable.Store) {
		j := newJob("r")
		j.NotBefore = later()
		submitJobs(t, s, j)
		pauseRun(t, s, "r")
		l := acquireRun(t, s, "r", "one", durable.TakeFree)
		resumeRun(t, s, "r")
		releaseRun(t, s, l)
		requireStatus(t, s, durable.StatusPending, "r")
		pauseRun(t, s, "r")
		l = acquireRun(t, s, "r", "one", durable.TakeFree)
		writeUpdate(t, s, l, waitUpdate(1, newWait("c")))
		expireLease(t, s, l)
		resumeRun(t, s, "r")
		requireStatus(t, s, durable.StatusWaiting, "r")
	},
	"resume without a pause": func(t *testing.T, s durable.Store) {
		pending := newJob("pending")
		pending.NotBefore = later()
		submitJobs(t, s, pending, newJob("ready"))
		suspendRun(t, s, "waiting", newWait("c"))
		beginRun(t, s, "running")
		for _, id := range []agent.RunID{"pending", "ready", "waiting", "running"} {
			before := getRun(t, s, id)
			resumeRun(t, s, id)
			r := getRun(t, s, id)
			assert.Equal(t, []any{before.Status, before.Ready, before.Owner}, []any{r.Status, r.Ready, r.Owner}, id)
		}
	},
	"a text of resume is added": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		sendSignal(t, s, "r", durable.SignalResume, "not paused")
		pauseRun(t, s, "r")
		sendSignal(t, s, "r", durable.SignalResume, "paused")
		resumeRun(t, s, "r")
		sendSignal(t, s, "r", durable.SignalContext, "more")
		assert.Equal(t, []string{"resume not paused", "resume paused", "context more"}, readSignals(t, s, "one")["r"])
		writeCommit(t, s, l, durable.Commit{HandledSignals: 2})
		assert.Equal(t, []string{"context more"}, readSignals(t, s, "one")["r"])
	},
	"cancel beats pause": func(t *testing.T, s durable.Store) {
		releaseRun(t, s, beginRun(t, s, "paused first"))
		releaseRun(t, s, beginRun(t, s, "cancelled first"))
		pauseRun(t, s, "paused first")
		require.NoError(t, s.Signal(t.Context(), "paused first", cancelSignal("enough")))
		require.NoError(t, s.Signal(t.Context(), "cancelled first", cancelSignal("enough")))
		pauseRun(t, s, "cancelled first")
		requireStatus(t, s, durable.StatusReady, "paused first", "cancelled first")
		assert.Len(t, claimRuns(t, s, 10, testerKey()), 2)
	},
	"cancel beats pause at the release": func(t *testing.T, s durable.Store) {
		for _, id := range []agent.RunID{"released", "expired"} {
			l := beginRun(t, s, id)
			pauseRun(t, s, id)
			require.NoError(t, s.Signal(t.Context(), id, cancelSignal("enough")))
			if id == "released" {
				releaseRun(t, s, l)
			} else {
				expireLease(t, s, l)
				reconcileAll(t, s)
			}
			requireStatus(t, s, durable.StatusReady, id)
		}
		l := beginRun(t, s, "answered")
		writeUpdate(t, s, l, waitUpdate(1, newWait("c")))
		pauseRun(t, s, "answered")
		require.NoError(t, s.Signal(t.Context(), "answered", cancelSignal("enough")))
		expireLease(t, s, l)
		answerRun(t, s, "answered", "c")
		requireStatus(t, s, durable.StatusReady, "answered")
	},
	"an end clears it": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		pauseRun(t, s, "r")
		endRun(t, s, l)
		assert.False(t, getRun(t, s, "r").Paused)
	},
}

func pauseRun(t *testing.T, s durable.Store, id agent.RunID) {
	t.Helper()
	sendSignal(t, s, id, durable.SignalPause, "")
	require.True(t, getRun(t, s, id).Paused, "run %q is paused", id)
}

func resumeRun(t *testing.T, s durable.Store, id agent.RunID) {
	t.Helper()
	sendSignal(t, s, id, durable.SignalResume, "")
	require.False(t, getRun(t, s, id).Paused, "run %q is paused", id)
}
