package durabletest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// updating tests Run.Updated: each change of a run sets it, except for the renewal of its lease.
var updating = map[string]part{
	"by leases": func(t *testing.T, s durable.Store) {
		submitJobs(t, s, newJob("r"), newJob("acquired"))
		changesRun(t, s, "acquired", "acquire", true, func() { acquireRun(t, s, "acquired", "one", durable.TakeFree) })
		var l durable.Lease
		changesRun(t, s, "r", "claim", true, func() { l = claimRuns(t, s, 1, testerKey())[0].Lease() })
		changesRun(t, s, "r", "renew", false, func() { expireLease(t, s, l) })
		changesRun(t, s, "r", "take over", true, func() { l = acquireRun(t, s, "r", "three", durable.TakeOver) })
		changesRun(t, s, "r", "step", true, func() { writeUpdate(t, s, l, durable.Update{}, newEntry(1)) })
		changesRun(t, s, "r", "ask", true, func() { writeUpdate(t, s, l, waitUpdate(1, newWait("c"))) })
		changesRun(t, s, "r", "release", true, func() { releaseRun(t, s, l) })
		l = acquireRun(t, s, "r", "one", durable.TakeFree)
		expireLease(t, s, l)
		changesRun(t, s, "r", "the lease expires", true, func() { reconcileAll(t, s) })
	},
	"by signals": func(t *testing.T, s durable.Store) {
		submitJobs(t, s, newJob("r"))
		for _, c := range []struct {
			kind durable.SignalKind
			text string
			want bool
		}{
			{durable.SignalResume, "", false},
			{durable.SignalPause, "", true},
			{durable.SignalPause, "", false},
			{durable.SignalResume, "", true},
			{durable.SignalContext, "text", true},
			{durable.SignalResume, "text", true},
			{durable.SignalCancel, "", true},
			{durable.SignalCancel, "", false},
		} {
			changesRun(t, s, "r", fmt.Sprintf("%s %q", c.kind, c.text), c.want, func() { sendSignal(t, s, "r", c.kind, c.text) })
		}
	},
	"by answers and the ends of other runs": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "r", newWait("c"), newWait("d"))
		changesRun(t, s, "r", "answer", true, func() { answerRun(t, s, "r", "c") })
		changesRun(t, s, "r", "last answer", true, func() { answerRun(t, s, "r", "d") })
		kid := beginRun(t, s, "kid")
		suspendRun(t, s, "parent", newWaitTo("c", "kid"))
		changesRun(t, s, "parent", "the child ends", true, func() { endRun(t, s, kid) })
	},
	"by time": func(t *testing.T, s durable.Store) {
		late := newJob("late")
		late.Deadline = longAgo()
		submitJobs(t, s, late)
		changesRun(t, s, "late", "deadline", true, func() { reconcileAll(t, s) })
		l := beginRun(t, s, "overdue")
		require.NoError(t, s.Release(t.Context(), l, time.Microsecond))
		changesRun(t, s, "overdue", "the delay is over", true, func() { reconcileAll(t, s) })
	},
}

// changesRun checks whether a call changes Run.Updated. First it lets the clock of the store go on.
func changesRun(t *testing.T, s durable.Store, id agent.RunID, what string, want bool, call func()) {
	t.Helper()
	before := getRun(t, s, id).Updated
	for {
		clock := durable.Job{Name: "clock"}
		if submitJobs(t, s, clock)[0].Created.After(before) {
			break
		}
	}
	call()
	assert.Equal(t, want, getRun(t, s, id).Updated.After(before), "%s changes Updated", what)
}
