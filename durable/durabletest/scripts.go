package durabletest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// script is a part that takes steps with run "r", and perhaps with run "kid" for which it waits.
type script struct {
	t     *testing.T
	store durable.Store
	// lease is the newest lease of "r". Spent are leases that ended before the run.
	lease, kid durable.Lease
	spent      []durable.Lease
}

// step is a call, with checks of what it changes in every case, or a check.
type step func(x *script)

// play returns a part that takes steps. At the end, it checks that leases that have ended are stale.
func play(steps ...step) part {
	return func(t *testing.T, s durable.Store) {
		x, i := &script{t: t, store: s}, 0
		defer func() {
			if t.Failed() {
				t.Logf("in step %d of %d", i+1, len(steps))
			}
		}()
		for ; i < len(steps); i++ {
			steps[i](x)
		}
		for _, l := range x.spent {
			stale(t, s, l)
		}
	}
}

// submit submits the run, submitLater for a later time, and submitAfterKid for the time when the kid ends.
func submit(x *script)         { submitJobs(x.t, x.store, newJob("r")) }
func submitLater(x *script)    { submitJobs(x.t, x.store, newLaterJob("r")) }
func submitAfterKid(x *script) { submitJobs(x.t, x.store, newJobAfter("r", "kid")) }

func begin(x *script)    { x.lease = beginRun(x.t, x.store, "r") }
func beginKid(x *script) { x.kid = beginRun(x.t, x.store, "kid") }
func endKid(x *script)   { endRun(x.t, x.store, x.kid) }
func deleteKid(x *script) {
	require.NoError(x.t, x.store.Delete(x.t.Context(), "kid"), "delete the kid")
}

// acquire leases a run that no process holds to "two".
func acquire(x *script)  { x.acquire("two", durable.TakeFree) }
func takeOver(x *script) { x.acquire("two", durable.TakeOver) }

// reacquire leases a held run to its owner.
func reacquire(x *script) { x.acquire(x.lease.Owner, durable.TakeFree) }

func (x *script) acquire(owner string, take durable.Take) {
	before := getRun(x.t, x.store, "r")
	x.checkLease(before, acquireRun(x.t, x.store, "r", owner, take))
}

// claim claims the run, and no other.
func claim(x *script) {
	before := getRun(x.t, x.store, "r")
	runs := claimRuns(x.t, x.store, 10, testerKey(), phaseKey())
	require.Equal(x.t, []agent.RunID{"r"}, runIDs(runs), "claimed runs")
	assert.Equal(x.t, getRun(x.t, x.store, "r"), runs[0])
	x.checkLease(before, runs[0].Lease())
}

// checkLease checks what a new lease changes.
func (x *script) checkLease(before durable.Run, l durable.Lease) {
	r := getRun(x.t, x.store, "r")
	status, attempts := durable.StatusRunning, before.Attempts+1
	if before.Status == durable.StatusWaiting {
		status, attempts = before.Status, before.Attempts
	}
	requireStatus(x.t, x.store, status, "r")
	assert.Equal(x.t, []any{before.Epoch + 1, attempts}, []any{r.Epoch, r.Attempts}, "epoch and attempts")
	assert.Equal(x.t, []any{r.ID, r.Owner, r.Epoch}, []any{l.Run, l.Owner, l.Epoch}, "lease")
	assert.True(x.t, l.Expires.Equal(r.Expires), "the lease says %v, the run %v", l.Expires, r.Expires)
	x.endLease()
	x.lease = l
}

func (x *script) endLease() {
	if x.lease.Run != "" {
		x.spent = append(x.spent, x.lease)
	}
}

// isHeld checks that no other owner gets the run.
func isHeld(x *script) {
	before := getRun(x.t, x.store, "r")
	var held *durable.HeldError
	require.ErrorAs(x.t, second(x.store.Acquire(x.t.Context(), "r", "three", hour, durable.TakeFree)), &held)
	assert.Equal(x.t, []any{before.ID, x.lease.Owner}, []any{held.Run, held.Owner})
	assert.True(x.t, before.Expires.Equal(held.Expires), "held until %v, want %v", held.Expires, before.Expires)
	assert.Equal(x.t, before, getRun(x.t, x.store, "r"))
}

func renew(x *script) {
	l := must(x.store.Renew(x.t.Context(), x.lease, hour))(x.t)
	assert.Equal(x.t, []any{x.lease.Run, x.lease.Owner, x.lease.Epoch}, []any{l.Run, l.Owner, l.Epoch})
	x.lease = l
}

func expire(x *script) { expireLease(x.t, x.store, x.lease) }

func release(x *script) {
	releaseRun(x.t, x.store, x.lease)
	isFree(x)
}

// delayHour releases the run and delays it by an hour.
func delayHour(x *script) {
	require.NoError(x.t, x.store.Release(x.t.Context(), x.lease, hour), "delay the run")
	isFree(x)
}

// passOn passes the run on to the next phase.
func passOn(x *script) {
	writeCommit(x.t, x.store, x.lease, passTo(phaseKind, nil))
	isFree(x)
}

// isFree checks that the newest lease has ended.
func isFree(x *script) {
	r := getRun(x.t, x.store, "r")
	assert.Equal(x.t, []any{"", x.lease.Epoch}, []any{r.Owner, r.Epoch}, "owner and epoch")
	x.endLease()
	x.lease = durable.Lease{}
}

// reconciles checks what Reconcile does.
func reconciles(want durable.Reconciled) step {
	want.Done = true
	return func(x *script) { assert.Equal(x.t, want, reconcileAll(x.t, x.store)) }
}

// writeEntry writes an entry.
func writeEntry(x *script) {
	writeUpdate(x.t, x.store, x.lease, durable.Update{}, newEntry(getRun(x.t, x.store, "r").Entries+1))
}

func handleSignals(signals int64) step {
	return func(x *script) { writeCommit(x.t, x.store, x.lease, durable.Commit{HandledSignals: signals}) }
}

// finishRun ends the run, and a pause.
func finishRun(x *script) {
	endRun(x.t, x.store, x.lease)
	assert.False(x.t, getRun(x.t, x.store, "r").Paused)
}

// askWaits makes the run wait, and askAny for any one of the waits. It stays leased.
func askWaits(waits ...durable.Wait) step {
	return func(x *script) { writeUpdate(x.t, x.store, x.lease, waitUpdate(1, waits...)) }
}

func askAny(waits ...durable.Wait) step {
	u := waitUpdate(1, waits...)
	u.AnyWait = true
	return func(x *script) { writeUpdate(x.t, x.store, x.lease, u) }
}

// suspendOn begins a run that waits and that no process holds.
func suspendOn(waits ...durable.Wait) step {
	return func(x *script) { suspendRun(x.t, x.store, "r", waits...) }
}

// answerWaits answers waits in one call.
func answerWaits(answers ...durable.Answer) step {
	return func(x *script) { answerAll(x.t, x.store, "r", answers...) }
}

// refuseAnswers checks that answers fail with an error and change nothing.
func refuseAnswers(want error, answers ...durable.Answer) step {
	return func(x *script) { refusesAnswers(x.t, x.store, want, answers...) }
}

// goOn ends the status waiting.
func goOn(x *script) {
	writeUpdate(x.t, x.store, x.lease, durable.Update{Status: durable.StatusRunning, Steps: 1})
}

func pause(x *script)  { pauseRun(x.t, x.store, "r") }
func resume(x *script) { resumeRun(x.t, x.store, "r") }
func cancel(x *script) { sendSignal(x.t, x.store, "r", durable.SignalCancel, "enough") }

func sendText(kind durable.SignalKind, text string) step {
	return func(x *script) { sendSignal(x.t, x.store, "r", kind, text) }
}

// hearSignals checks which signals of the run an owner gets.
func hearSignals(owner string, signals ...string) step {
	return func(x *script) {
		assert.Equal(x.t, signals, readSignals(x.t, x.store, owner)["r"], "signals for %q", owner)
	}
}

// leavesUpdated checks that a step does not change Run.Updated.
func leavesUpdated(do step) step {
	return func(x *script) {
		before := getRun(x.t, x.store, "r").Updated
		do(x)
		assert.Equal(x.t, before, getRun(x.t, x.store, "r").Updated)
	}
}

// leavesStore checks that a step changes nothing that callers see.
func leavesStore(do step) step {
	return func(x *script) { changesNothing(x.t, x.store, func() { do(x) }) }
}

// updates checks that a step changes Run.Updated. First it lets the clock of the store go on.
func updates(do step) step {
	return func(x *script) {
		before := getRun(x.t, x.store, "r").Updated
		for !submitJobs(x.t, x.store, durable.Job{Name: "clock"})[0].Created.After(before) {
			continue
		}
		do(x)
		assert.True(x.t, getRun(x.t, x.store, "r").Updated.After(before), "Updated changes")
	}
}

// hasStatus checks the status.
func hasStatus(status durable.Status) step {
	return func(x *script) { requireStatus(x.t, x.store, status, "r") }
}

var (
	isPending   = hasStatus(durable.StatusPending)
	isReady     = hasStatus(durable.StatusReady)
	isRunning   = hasStatus(durable.StatusRunning)
	isWaiting   = hasStatus(durable.StatusWaiting)
	isCancelled = hasStatus(durable.StatusCancelled)
)

// owesOffer checks the number of the offer that the store owes; zero for none.
func owesOffer(seq int64) step {
	return func(x *script) {
		want := []durable.OfferID{}
		if seq > 0 {
			want = append(want, durable.OfferID{Run: "r", Seq: seq})
		}
		assert.Equal(x.t, want, readOwed(x.t, x.store, hour, 10), "owed offers")
	}
}

// hasWaits checks how many waits the run has.
func hasWaits(n int) step {
	return func(x *script) { assert.Len(x.t, readWaits(x.t, x.store, "r"), n, "waits") }
}

func isPaused(x *script) { assert.True(x.t, getRun(x.t, x.store, "r").Paused, "paused") }

// isIdle checks that no worker is to execute a run.
func isIdle(x *script) {
	assert.Empty(x.t, claimRuns(x.t, x.store, 10, testerKey(), phaseKey()))
	assert.Empty(x.t, readOwed(x.t, x.store, hour, 10))
	reconciles(durable.Reconciled{})(x)
}
