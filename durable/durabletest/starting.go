package durabletest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// newJobAfter returns a job that starts after another run.
func newJobAfter(id, after agent.RunID) durable.Job {
	j := newJob(id)
	j.After = after
	return j
}

// starting tests runs that start after others.
var starting = map[string]part{
	"a run waits until another has ended": func(t *testing.T, s durable.Store) {
		for _, status := range []durable.Status{durable.StatusCompleted, durable.StatusFailed, durable.StatusStopped, durable.StatusCancelled} {
			first, id := agent.RunID("first "+status), agent.RunID(status)
			l := beginRun(t, s, first)
			r := submitJobs(t, s, newJobAfter(id, first))[0]
			assert.Equal(t, r, getRun(t, s, id))
			requireStatus(t, s, durable.StatusWaiting, id)
			waits := readWaits(t, s, id)
			require.Len(t, waits, 1)
			sameWait(t, durable.AfterWait(id, first, r.Created), waits[0])
			assert.Empty(t, claimRuns(t, s, 10, testerKey()))
			assert.Empty(t, readOwed(t, s, hour, 10))
			assert.False(t, reconcileAll(t, s).Changed())
			writeUpdate(t, s, l, durable.Update{Status: status})
			requireStatus(t, s, durable.StatusReady, id)
			assert.Equal(t, []durable.OfferID{{Run: id, Seq: 1}}, readOwed(t, s, hour, 10))
			claimed := claimRuns(t, s, 10, testerKey())
			require.Len(t, claimed, 1)
			assert.Equal(t, []any{id, int64(1), 1}, []any{claimed[0].ID, claimed[0].Epoch, claimed[0].Attempts})
			answer := readWaits(t, s, id)[0].Answer
			require.NotNil(t, answer)
			assert.True(t, answer.Ends)
			assert.WithinDuration(t, r.Created, answer.At, time.Minute)
		}
	},
	"a run that has ended is not waited for": func(t *testing.T, s durable.Store) {
		endRun(t, s, beginRun(t, s, "first"))
		submitJobs(t, s, newJobAfter("r", "first"))
		requireStatus(t, s, durable.StatusReady, "r")
		assert.Empty(t, readWaits(t, s, "r"))
		assert.Equal(t, []durable.OfferID{{Run: "r", Seq: 1}}, readOwed(t, s, hour, 10))
	},
	"runs of one call in a row": func(t *testing.T, s durable.Store) {
		submitJobs(t, s, newJob("a"), newJobAfter("b", "a"), newJobAfter("c", "b"), newJobAfter("d", "a"))
		requireStatus(t, s, durable.StatusWaiting, "b", "c", "d")
		claimed := claimRuns(t, s, 10, testerKey())
		require.Equal(t, []agent.RunID{"a"}, runIDs(claimed))
		endRun(t, s, claimed[0].Lease())
		requireStatus(t, s, durable.StatusReady, "b", "d")
		requireStatus(t, s, durable.StatusWaiting, "c")
		sendSignal(t, s, "b", durable.SignalCancel, "")
		requireStatus(t, s, durable.StatusReady, "c")
	},
	"an unknown run": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		for name, jobs := range map[string][]durable.Job{
			"unknown": {newJob("a"), newJobAfter("b", unknownRun)}, "itself": {newJob("a"), newJobAfter("b", "b")},
			"submitted later": {newJobAfter("b", "a"), newJob("a")},
		} {
			require.ErrorIs(t, second(s.Submit(t.Context(), jobs...)), durable.ErrNotFound, name)
			require.ErrorIs(t, s.Commit(t.Context(), l, durable.Commit{Entries: newEntries(1, 1), Jobs: jobs}), durable.ErrNotFound, name)
			assert.Equal(t, []agent.RunID{"r"}, listIDs(t, s, durable.Filter{}), name)
			assert.Empty(t, readJournal(t, s, "r"), name)
		}
	},
	"jobs of a commit": func(t *testing.T, s durable.Store) {
		l, other := beginRun(t, s, "r"), beginRun(t, s, "other")
		writeCommit(t, s, l, durable.Commit{Jobs: []durable.Job{newJobAfter("a", "r"), newJobAfter("b", "other"), newJobAfter("c", "a")}})
		requireStatus(t, s, durable.StatusWaiting, "a", "b", "c")
		endRun(t, s, other)
		requireStatus(t, s, durable.StatusReady, "b")
		endRun(t, s, l)
		requireStatus(t, s, durable.StatusReady, "a")
		requireStatus(t, s, durable.StatusWaiting, "c")
	},
	"a job of the commit that ends its run": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		writeCommit(t, s, l, durable.Commit{Update: endUpdate(), Jobs: []durable.Job{newJobAfter("next", "r")}})
		requireStatus(t, s, durable.StatusReady, "next")
		assert.Empty(t, readWaits(t, s, "next"))
		l = beginRun(t, s, "passed")
		c := passTo(phaseKind, nil)
		c.Jobs = []durable.Job{newJobAfter("later", "passed")}
		writeCommit(t, s, l, c)
		requireStatus(t, s, durable.StatusWaiting, "later")
	},
	"not with Begin": func(t *testing.T, s durable.Store) {
		beginRun(t, s, "first")
		require.ErrorContains(t, second(s.Begin(t.Context(), newJobAfter("r", "first"), "one", hour)), "submit the job")
		assert.Equal(t, []agent.RunID{"first"}, listIDs(t, s, durable.Filter{}))
	},
	"not with NotBefore": func(t *testing.T, s durable.Store) {
		beginRun(t, s, "first")
		j := newJobAfter("r", "first")
		j.NotBefore = later()
		require.ErrorContains(t, second(s.Submit(t.Context(), j)), "use either After or NotBefore")
		assert.Equal(t, []agent.RunID{"first"}, listIDs(t, s, durable.Filter{}))
	},
	"a known idempotency key goes first": func(t *testing.T, s durable.Store) {
		endRun(t, s, beginRun(t, s, "first"))
		j := newJobAfter("r", "first")
		j.IdempotencyKey = "k"
		submitJobs(t, s, j)
		require.NoError(t, s.Delete(t.Context(), "first"))
		j.ID = "other"
		assert.Equal(t, agent.RunID("r"), submitJobs(t, s, j)[0].ID)
	},
	"a pause lasts": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "first")
		submitJobs(t, s, newJobAfter("r", "first"), newJobAfter("resumed", "first"))
		pauseRun(t, s, "r")
		pauseRun(t, s, "resumed")
		resumeRun(t, s, "resumed")
		requireStatus(t, s, durable.StatusWaiting, "r", "resumed")
		endRun(t, s, l)
		requireStatus(t, s, durable.StatusReady, "resumed")
		requireStatus(t, s, durable.StatusWaiting, "r")
		resumeRun(t, s, "r")
		requireStatus(t, s, durable.StatusReady, "r")
	},
	"the other run may be deleted when it has ended": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "first")
		submitJobs(t, s, newJobAfter("paused", "first"), newJobAfter("r", "first"))
		pauseRun(t, s, "paused")
		endRun(t, s, l)
		require.NoError(t, s.Delete(t.Context(), "first"))
		resumeRun(t, s, "paused")
		requireStatus(t, s, durable.StatusReady, "paused", "r")
		claimed := claimRuns(t, s, 10, testerKey())[0]
		sendSignal(t, s, claimed.ID, durable.SignalPause, "")
		releaseRun(t, s, claimed.Lease())
		requireStatus(t, s, durable.StatusWaiting, claimed.ID)
		resumeRun(t, s, claimed.ID)
		requireStatus(t, s, durable.StatusReady, claimed.ID)
	},
	"the other run is deleted before it has ended": func(t *testing.T, s durable.Store) {
		submitJobs(t, s, newJob("first"), newJobAfter("r", "first"), newJobAfter("answered", "first"))
		require.NoError(t, s.Delete(t.Context(), "first"))
		assert.False(t, reconcileAll(t, s).Changed())
		requireStatus(t, s, durable.StatusWaiting, "r", "answered")
		require.NoError(t, s.Answer(t.Context(), "answered", durable.Answers(durable.Answer{Wait: "after", By: "ann"})))
		requireStatus(t, s, durable.StatusReady, "answered")
		sendSignal(t, s, "r", durable.SignalCancel, "")
		requireStatus(t, s, durable.StatusCancelled, "r")
	},
	"a run that waits may be cancelled": func(t *testing.T, s durable.Store) {
		beginRun(t, s, "first")
		unstarted, late := newJobAfter("unstarted", "first"), newJobAfter("late", "first")
		unstarted.StartBy, late.Deadline = longAgo(), longAgo()
		submitJobs(t, s, newJobAfter("cancelled", "first"), unstarted, late, newJobAfter("next", "cancelled"))
		require.NoError(t, s.SetToken(t.Context(), "cancelled", "after", [32]byte{1}))
		sendSignal(t, s, "cancelled", durable.SignalCancel, "")
		requireStatus(t, s, durable.StatusCancelled, "cancelled")
		assert.Empty(t, readWaits(t, s, "cancelled"))
		require.ErrorIs(t, second(s.WaitByToken(t.Context(), [32]byte{1})), durable.ErrTokenSpent)
		requireStatus(t, s, durable.StatusReady, "next")
		assert.Equal(t, 2, reconcileAll(t, s).Late)
		requireStatus(t, s, durable.StatusCancelled, "unstarted", "late")
	},
	"a run in a phase starts after another": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "first")
		j := newPhaseJob("r")
		j.After = "first"
		submitJobs(t, s, j)
		assert.Empty(t, claimRuns(t, s, 10, phaseKey()))
		endRun(t, s, l)
		claimed := claimRuns(t, s, 10, phaseKey())
		require.Len(t, claimed, 1)
		writeCommit(t, s, claimed[0].Lease(), passTo("", nil))
		requireStatus(t, s, durable.StatusReady, "r")
		assert.Empty(t, readWaits(t, s, "r"))
	},
}

// startsWhileEnding submits runs that start after a run that ends at the same time.
func startsWhileEnding(t *testing.T, handles ...durable.Store) {
	t.Helper()
	for round := range 20 {
		first, id := agent.RunID(fmt.Sprint("first ", round)), func(i int) agent.RunID { return agent.RunID(fmt.Sprint(round, ".", i)) }
		l := beginRun(t, handles[0], first)
		other := beginRun(t, handles[0], agent.RunID(fmt.Sprint("other ", round)))
		var group sync.WaitGroup
		group.Go(func() { assert.NoError(t, add(t.Context(), handles[0], l, endUpdate())) })
		group.Go(func() {
			assert.NoError(t, second(handles[len(handles)-1].Submit(t.Context(), newJobAfter(id(0), first), newJobAfter(id(1), id(0)))))
		})
		group.Go(func() {
			c := durable.Commit{Entries: newEntries(1, 1), Jobs: []durable.Job{newJobAfter(id(2), first)}}
			assert.NoError(t, handles[len(handles)-1].Commit(t.Context(), other, c))
		})
		group.Wait()
		requireStatus(t, handles[0], durable.StatusReady, id(0), id(2))
		requireStatus(t, handles[0], durable.StatusWaiting, id(1))
	}
}
