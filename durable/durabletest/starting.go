package durabletest

import (
	"errors"
	"fmt"
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
		for _, status := range endStatuses {
			first, id := agent.RunID("first "+status), agent.RunID(status)
			l := beginRun(t, s, first)
			r := submitJobs(t, s, newJobAfter(id, first))[0]
			assert.Equal(t, r, getRun(t, s, id))
			waits := readWaits(t, s, id)
			require.Len(t, waits, 1)
			sameWait(t, durable.AfterWait(id, first, r.Created), waits[0])
			play(isIdle)(t, s)
			requireStatus(t, s, durable.StatusWaiting, id)
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
	"a run that has ended is not waited for": play(beginKid, endKid, submitAfterKid, isReady, hasWaits(0), claim),
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
			changesNothing(t, s, func() { require.ErrorIs(t, second(s.Submit(t.Context(), jobs...)), durable.ErrNotFound, name) })
			refusesCommit(t, s, durable.ErrNotFound, l, durable.Commit{Entries: newEntries(1, 1), Jobs: jobs}, name)
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
	"not with Begin or NotBefore": func(t *testing.T, s durable.Store) {
		beginRun(t, s, "first")
		j := newJobAfter("r", "first")
		changesNothing(t, s, func() {
			require.ErrorContains(t, second(s.Begin(t.Context(), j, "one", hour)), "submit the job")
			j.NotBefore = later()
			require.ErrorContains(t, second(s.Submit(t.Context(), j)), "use either After or NotBefore")
		})
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
	"a pause lasts":       play(beginKid, submitAfterKid, pause, isWaiting, endKid, isWaiting, resume, isReady),
	"a pause ends before": play(beginKid, submitAfterKid, pause, resume, isWaiting, endKid, isReady),
	"the other run may be deleted when it has ended": play(beginKid, submitAfterKid, pause, endKid, deleteKid, resume, isReady),
	"the other run is deleted when it has ended, and the run starts": play(
		beginKid, submitAfterKid, endKid, deleteKid, isReady, claim, pause, release, isWaiting, resume, isReady,
	),
	"the other run is deleted before it has ended": func(t *testing.T, s durable.Store) {
		submitJobs(t, s, newJob("first"), newJobAfter("r", "first"), newJobAfter("answered", "first"))
		require.NoError(t, s.Delete(t.Context(), "first"))
		assert.False(t, reconcileAll(t, s).Changed())
		requireStatus(t, s, durable.StatusWaiting, "r", "answered")
		answerAll(t, s, "answered", durable.Answer{Wait: "after", By: "ann"})
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
		calls := []func() error{
			func() error { return add(t.Context(), handles[0], l, endUpdate()) },
			func() error {
				return second(last(handles).Submit(t.Context(), newJobAfter(id(0), first), newJobAfter(id(1), id(0))))
			},
			func() error {
				c := durable.Commit{Entries: newEntries(1, 1), Jobs: []durable.Job{newJobAfter(id(2), first)}}
				return last(handles).Commit(t.Context(), other, c)
			},
		}
		require.NoError(t, errors.Join(atOnce(len(calls), func(i int) error { return calls[i]() })...))
		requireStatus(t, handles[0], durable.StatusReady, id(0), id(2))
		requireStatus(t, handles[0], durable.StatusWaiting, id(1))
	}
}

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
	"a run without questions does not wait": play(suspendOn(), isReady),
	"all questions are answered": play(
		suspendOn(newWait("c"), newWait("d")), answerWaits(newAnswer("c")), isWaiting, answerWaits(newAnswer("d")), isReady, hasWaits(2), claim, hasWaits(2),
	),
	"all answers at once":    play(suspendOn(newWait("c"), newWait("d")), answerWaits(newAnswer("d"), newAnswer("c")), isReady),
	"an answer ends the run": play(suspendOn(newWait("c"), newWait("d")), answerWaits(newEnding("d")), isReady),
	"any of the waits is answered": play(
		begin, askAny(newWait("c"), newWait("d")), release, isWaiting, answerWaits(newPartial("d", "ann")), isWaiting, answerWaits(newAnswer("d")), isReady,
	),
	"any of the waits is answered already": play(begin, askAny(newWait("c"), newDecided("d")), release, isReady),
	"any of the waits is overdue":          play(begin, askAny(newWait("c"), newWaitBy("d", longAgo())), release, isReady),
	"none of the waits is overdue":         play(begin, askAny(newWait("c"), newWaitBy("d", later())), release, isWaiting),
	"any of the waits of a held run": play(
		begin, askAny(newWait("c"), newWait("d")), answerWaits(newAnswer("d")), writeEntry, isWaiting, release, isReady,
	),
	"any of the waits is for a child": play(beginKid, begin, askAny(newWait("c"), newWaitTo("d", "kid")), release, endKid, isReady),
	"after any of the waits, all are asked": play(
		begin, askAny(newWait("c"), newWait("d")), askWaits(newWait("c"), newWait("d")), answerWaits(newAnswer("c")), release, isWaiting,
	),
	// LH-81: a parent that waits for its child becomes ready when the child has ended.
	"a child has ended": func(t *testing.T, s durable.Store) {
		for _, status := range endStatuses {
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
	"a child ends after its question was answered": play(
		beginKid, suspendOn(newWait("c"), newWaitTo("d", "kid")), answerWaits(newAnswer("d")), endKid, isWaiting,
	),
	"a child ended before its parent waits": play(beginKid, endKid, suspendOn(newWaitTo("c", "kid")), isReady),
	"a child ends while its parent is held": play(beginKid, begin, askWaits(newWaitTo("c", "kid")), endKid, isWaiting, release, isReady),
	"an answer while the run is held":       play(begin, askWaits(newWait("c")), answerWaits(newAnswer("c")), isWaiting, writeEntry, release, isReady),
	"an answer after the lease has expired": play(begin, askWaits(newWait("c")), expire, answerWaits(newAnswer("c")), isReady, isFree),
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
		play(begin, delayHour, isPending, isIdle)(t, s)
		r := getRun(t, s, "r")
		assert.WithinDuration(t, r.Created.Add(hour), r.NotBefore, time.Minute)
		assert.Equal(t, 1, r.Attempts)
	},
	"a delayed run is acquired": play(begin, delayHour, acquire),
	"a delay ends": func(t *testing.T, s durable.Store) {
		require.NoError(t, s.Release(t.Context(), beginRun(t, s, "r"), time.Millisecond))
		requireStatus(t, s, durable.StatusPending, "r")
		assert.Equal(t, 1, reconcileUntil(t, s, func(r durable.Reconciled) bool { return r.Due > 0 }).Due)
		requireStatus(t, s, durable.StatusReady, "r")
	},
	"a delay of a cancelled run":            play(begin, cancel, delayHour, isReady),
	"a delay of a cancelled and paused run": play(begin, pause, cancel, delayHour, isReady),
	"a delay of a paused run":               play(begin, pause, delayHour, isWaiting),
	"a delay of a waiting run":              play(begin, askWaits(newWait("c")), delayHour, isWaiting),
	"a delay of a run that is satisfied":    play(begin, askWaits(), delayHour, isReady),
	"a refused end wakes no run": func(t *testing.T, s durable.Store) {
		ended := beginRun(t, s, "ended")
		endRun(t, s, ended)
		l := askRun(t, s, "r", newWaitTo("c", "ended"))
		expireLease(t, s, l)
		require.ErrorIs(t, add(t.Context(), s, ended, endUpdate(), newEntry(1)), durable.ErrStale)
		sendSignal(t, s, "ended", durable.SignalCancel, "late")
		requireStatus(t, s, durable.StatusWaiting, "r")
	},
}
