package durabletest

import (
	"strconv"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

var reconciling = map[string]part{
	"nothing to do": func(t *testing.T, s durable.Store) {
		assert.Equal(t, durable.Reconciled{Done: true}, reconcileAll(t, s))
		ready, started, late := newJob("ready"), newJob("started"), newJob("ended")
		ready.StartBy, ready.Deadline = later(), later()
		started.StartBy, late.Deadline = longAgo(), longAgo()
		submitJobs(t, s, ready, newLaterJob("pending"))
		beginAs(t, s, started, "one", hour)
		beginRun(t, s, "held")
		suspendRun(t, s, "waiting", newWaitBy("c", later()))
		endRun(t, s, beginAs(t, s, late, "one", hour))
		changesNothing(t, s, func() { assert.Equal(t, durable.Reconciled{Done: true}, reconcileAll(t, s)) })
	},
	"a running run whose lease has expired is ready": play(
		begin, expire, isRunning, reconciles(durable.Reconciled{Expired: 1}), isReady, isFree, reconciles(durable.Reconciled{}), claim,
	),
	"a waiting run whose lease has expired is released": play(
		begin, askWaits(newWait("c")), expire, reconciles(durable.Reconciled{Expired: 1}), isWaiting, isFree, isIdle,
	),
	"an answered run whose lease has expired is released": play(
		begin, askWaits(newWait("c")), answerWaits(newAnswer("c")), expire, reconciles(durable.Reconciled{Expired: 1}), isReady, isFree,
	),
	"a run whose child has ended and whose lease has expired is released": play(
		beginKid, begin, askWaits(newWaitTo("c", "kid")), endKid, expire, reconciles(durable.Reconciled{Expired: 1}), isReady, isFree,
	),
	"an overdue run whose lease has expired is released": play(
		begin, askWaits(newWaitBy("c", longAgo())), expire, reconciles(durable.Reconciled{Expired: 1}), isReady, isFree, reconciles(durable.Reconciled{}),
	),
	"a question whose deadline has passed": func(t *testing.T, s durable.Store) {
		soon := time.Now().Add(300 * time.Millisecond).UTC().Truncate(time.Microsecond)
		suspendRun(t, s, "r", newWait("c"), newWaitBy("d", soon))
		suspendRun(t, s, "other", newWaitBy("c", later()))
		if getRun(t, s, "r").Status == durable.StatusWaiting { // a slow machine may have released it after the deadline
			sum := reconcileUntil(t, s, func(r durable.Reconciled) bool { return r.Overdue > 0 })
			assert.Equal(t, durable.Reconciled{Overdue: 1}, sum)
		}
		requireStatus(t, s, durable.StatusReady, "r")
		requireStatus(t, s, durable.StatusWaiting, "other")
	},
	"an overdue question of a run that a process holds": func(t *testing.T, s durable.Store) {
		play(begin, askWaits(newWaitBy("c", longAgo())), isIdle, isWaiting, answerWaits(newAnswer("c")), release, isReady)(t, s)
		assert.True(t, getRun(t, s, "r").AnswerBy.IsZero())
	},
	"a pending run whose time has come": func(t *testing.T, s durable.Store) {
		for wait := 300 * time.Millisecond; ; wait *= 2 {
			j := newJob("")
			j.NotBefore = time.Now().Add(wait).UTC().Truncate(time.Microsecond)
			r := submitJobs(t, s, j)[0]
			if r.Status != durable.StatusPending && wait < patience {
				continue // a slow machine
			}
			assert.Equal(t, durable.Reconciled{Due: 1}, reconcileUntil(t, s, func(r durable.Reconciled) bool { return r.Due > 0 }))
			requireStatus(t, s, durable.StatusReady, r.ID)
			assert.False(t, getRun(t, s, r.ID).Ready.Before(j.NotBefore), "it was not ready before its time")
			assert.Contains(t, runIDs(claimRuns(t, s, 10, testerKey())), r.ID)
			return
		}
	},
	"a deadline cancels": func(t *testing.T, s durable.Store) {
		held, waiting, ready, pending, ended := newJob("held"), newJob("waiting"), newJob("ready"), newJob("pending"), newJob("ended")
		for _, j := range []*durable.Job{&held, &waiting, &ready, &pending, &ended} {
			j.Deadline = longAgo()
		}
		pending.NotBefore = later()
		l := beginAs(t, s, held, "one", hour)
		w := beginAs(t, s, waiting, "two", hour)
		writeUpdate(t, s, w, waitUpdate(1, newWait("c")))
		releaseRun(t, s, w)
		endRun(t, s, beginAs(t, s, ended, "one", hour))
		submitJobs(t, s, ready, pending)

		done := reconcileAll(t, s)
		assert.Equal(t, 4, done.Late)
		requireStatus(t, s, durable.StatusRunning, "held")
		requireStatus(t, s, durable.StatusReady, "waiting")
		requireStatus(t, s, durable.StatusCancelled, "ready", "pending")
		assert.Equal(t, agent.StopUser, getRun(t, s, "ready").Reason)
		for _, id := range []agent.RunID{"held", "waiting", "ready", "pending"} {
			r := getRun(t, s, id)
			assert.Equal(t, []any{durable.CancelDeadline, "the deadline has passed"}, []any{r.CancelCause, r.CancelReason}, id)
		}
		assert.Empty(t, getRun(t, s, "ended").CancelReason)
		assert.Equal(t, []string{"cancel deadline the deadline has passed"}, readSignals(t, s, "one")["held"])
		assert.Equal(t, durable.Reconciled{Done: true}, reconcileAll(t, s), "each run once")
		writeUpdate(t, s, l, durable.Update{Status: durable.StatusCancelled})
	},
	"a deadline does not replace the reason": func(t *testing.T, s durable.Store) {
		j := newJob("r")
		j.Deadline = longAgo()
		beginAs(t, s, j, "one", hour)
		sendSignal(t, s, "r", durable.SignalCancel, "enough")
		assert.False(t, reconcileAll(t, s).Changed())
		r := getRun(t, s, "r")
		assert.Equal(t, []any{durable.CancelRequest, "enough"}, []any{r.CancelCause, r.CancelReason})
	},
	"a run that did not start in time": func(t *testing.T, s durable.Store) {
		ready, paused, started, given, held := newJob("ready"), newJob("paused"), newJob("started"), newJob("given back"), newJob("held")
		for _, j := range []*durable.Job{&ready, &paused, &started, &given, &held} {
			j.StartBy = longAgo()
		}
		submitJobs(t, s, ready, paused, given, held)
		pauseRun(t, s, "paused")
		pauseRun(t, s, "held")
		acquireRun(t, s, "held", "one", durable.TakeFree)
		beginAs(t, s, started, "one", hour)
		releaseRun(t, s, acquireRun(t, s, "given back", "one", durable.TakeFree))
		suspendRun(t, s, "parent", newWaitTo("c", "ready"))
		requireStatus(t, s, durable.StatusWaiting, "parent")

		assert.Equal(t, 2, reconcileAll(t, s).Late)
		requireStatus(t, s, durable.StatusCancelled, "ready", "paused")
		for _, id := range []agent.RunID{"ready", "paused"} {
			r := getRun(t, s, id)
			assert.Equal(t, []any{agent.StopUser, durable.CancelStartBy, "it did not start in time", 0, ""},
				[]any{r.Reason, r.CancelCause, r.CancelReason, r.Attempts, r.Owner}, id)
			assert.False(t, r.Paused, id)
			assert.ErrorIs(t, second(s.Acquire(t.Context(), id, "one", hour, durable.TakeOver)), durable.ErrEnded)
		}
		requireStatus(t, s, durable.StatusRunning, "started")
		requireStatus(t, s, durable.StatusWaiting, "held")
		requireStatus(t, s, durable.StatusReady, "given back", "parent")
		assert.ElementsMatch(t, []agent.RunID{"given back", "parent"}, runIDs(claimRuns(t, s, 10, testerKey())))
		assert.Equal(t, durable.Reconciled{Done: true}, reconcileAll(t, s))
	},
	"many runs, in several calls": func(t *testing.T, s durable.Store) {
		const n = 1200 // more than Reconcile changes at once
		var jobs []durable.Job
		for i := range n {
			jobs = append(jobs, durable.Job{ID: agent.RunID(strconv.Itoa(i)), StartBy: longAgo(), Labels: map[string]string{"team": "red"}})
		}
		submitJobs(t, s, jobs...)
		late, calls := 0, 0
		for done := (durable.Reconciled{}); !done.Done; calls++ {
			require.Less(t, calls, n, "calls")
			done = reconcileAll(t, s)
			late += done.Late
			assert.True(t, done.Changed() || done.Done, "a call that does nothing is the last")
		}
		assert.Equal(t, n, late)
		assert.Len(t, listIDs(t, s, durable.Filter{Status: []durable.Status{durable.StatusCancelled}, Limit: 2 * n}), n)
		submitJobs(t, s, newJob("ready"))
		assert.Equal(t, n, must(s.Prune(t.Context(), later()))(t))
		assert.Equal(t, []agent.RunID{"ready"}, listIDs(t, s, durable.Filter{}))
	},
}

// reconcileUntil reconciles until a call has changed what the test waits for, and returns the sum of all calls.
func reconcileUntil(t *testing.T, s durable.Store, done func(durable.Reconciled) bool) (sum durable.Reconciled) {
	t.Helper()
	for late := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		r := reconcileAll(t, s)
		sum.Expired, sum.Overdue, sum.Due, sum.Late = sum.Expired+r.Expired, sum.Overdue+r.Overdue, sum.Due+r.Due, sum.Late+r.Late
		if done(sum) {
			return sum
		}
		require.True(t, time.Now().Before(late), "Reconcile has changed only %+v", sum)
	}
}

// onceReconciled lets several processes reconcile the same runs: each becomes ready once.
func onceReconciled(t *testing.T, handles ...durable.Store) {
	t.Helper()
	const n = 20
	for i := range n {
		beginAs(t, handles[0], newJob(agent.RunID(strconv.Itoa(i))), "one", gone)
	}
	counts := atOnce(8, func(i int) int {
		done, err := handles[i%len(handles)].Reconcile(t.Context())
		assert.NoError(t, err)
		return done.Expired
	})
	reconcileAll(t, handles[0])
	assert.LessOrEqual(t, lo.Sum(counts), n, "each run is counted once")
	for _, o := range readOwed(t, handles[0], hour, 2*n) {
		assert.Equal(t, int64(1), o.Seq, "run %q became ready once", o.Run)
	}
	assert.Len(t, claimRuns(t, handles[0], 2*n, testerKey()), n)
}
