package durabletest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// changing tests Changes. How soon a value comes is not tested.
var changing = map[string]part{
	"one value at most": func(t *testing.T, s durable.Store) {
		changes := s.Changes(t.Context())
		submitJobs(t, s, newJob("a"), newJob("b"))
		for _, id := range []agent.RunID{"c", "d", "e"} {
			submitJobs(t, s, newJob(id))
			sendSignal(t, s, id, durable.SignalContext, "text")
		}
		assert.LessOrEqual(t, cap(changes), 1)
		awaitChange(t, changes, "a receiver that was late")
	},
	"all receivers": func(t *testing.T, s durable.Store) {
		a, b := s.Changes(t.Context()), s.Changes(t.Context())
		submitJobs(t, s, newJob("r"))
		awaitChange(t, a, "the first receiver")
		awaitChange(t, b, "the second receiver")
	},
	"a receiver that does not receive disturbs none": func(t *testing.T, s durable.Store) {
		s.Changes(t.Context())
		changes := s.Changes(t.Context())
		for range 3 {
			submitJobs(t, s, newJob(""))
			awaitChange(t, changes, "the other receiver")
		}
	},
	"closed with its context": func(t *testing.T, s durable.Store) {
		ctx, stop := context.WithCancel(t.Context())
		done, other := s.Changes(ctx), s.Changes(t.Context())
		stop()
		awaitClosed(t, done)
		submitJobs(t, s, newJob("r"))
		awaitChange(t, other, "the other receiver")
		awaitClosed(t, s.Changes(ctx))
	},
}

// testClosedChanges checks that the channel is closed with the store.
func testClosedChanges(t *testing.T, s durable.Store) {
	changes := s.Changes(t.Context())
	require.NoError(t, s.Close())
	awaitClosed(t, changes)
}

// testChanges checks that each cause in one store is seen through the other.
func testChanges(t *testing.T, handles ...durable.Store) {
	t.Helper()
	writer, reader := handles[0], last(handles)
	held := beginRun(t, writer, "held")
	submitJobs(t, writer, newJob("paused"))
	pauseRun(t, writer, "paused")
	suspendRun(t, writer, "waiting", newWait("c"))
	suspendRun(t, writer, "cancelled", newWait("c"))
	kid := beginRun(t, writer, "kid")
	suspendRun(t, writer, "parent", newWaitTo("c", "kid"))
	expired := beginRun(t, writer, "expired")
	passed, first := beginRun(t, writer, "passed"), beginRun(t, writer, "first")
	submitJobs(t, writer, newJobAfter("after", "first"))

	changes := reader.Changes(t.Context())
	for _, c := range []struct {
		what string
		do   func()
	}{
		{"submit", func() { submitJobs(t, writer, newJob("new")) }},
		{"a job in a commit", func() { writeCommit(t, writer, held, durable.Commit{Jobs: []durable.Job{newJob("child")}}) }},
		{"context for a held run", func() { sendSignal(t, writer, "held", durable.SignalContext, "text") }},
		{"pause of a held run", func() { sendSignal(t, writer, "held", durable.SignalPause, "") }},
		{"resume of a held run", func() { sendSignal(t, writer, "held", durable.SignalResume, "") }},
		{"cancel of a held run", func() { sendSignal(t, writer, "held", durable.SignalCancel, "") }},
		{"release", func() { releaseRun(t, writer, held) }},
		{"resume", func() { resumeRun(t, writer, "paused") }},
		{"answer", func() { answerRun(t, writer, "waiting", "c") }},
		{"cancel", func() { sendSignal(t, writer, "cancelled", durable.SignalCancel, "") }},
		{"the end of a child", func() { endRun(t, writer, kid) }},
		{"a pass", func() { writeCommit(t, writer, passed, passTo(phaseKind, nil)) }},
		{"the end of a run before another", func() { endRun(t, writer, first) }},
		{"reconcile", func() {
			expireLease(t, writer, expired)
			reconcileAll(t, writer)
		}},
	} {
		drain(changes)
		c.do()
		awaitChange(t, changes, c.what)
	}
}

// drain receives until no value has come for a while.
func drain(changes <-chan struct{}) {
	for open := true; open; {
		select {
		case _, open = <-changes:
		case <-time.After(20 * time.Millisecond):
			return
		}
	}
}

func awaitChange(t *testing.T, changes <-chan struct{}, what string) {
	t.Helper()
	select {
	case _, open := <-changes:
		require.True(t, open, "%s: the channel is closed", what)
	case <-time.After(patience):
		require.Fail(t, "no value came", what)
	}
}

func awaitClosed(t *testing.T, changes <-chan struct{}) {
	t.Helper()
	timeout := time.After(patience)
	for open := true; open; {
		select {
		case _, open = <-changes:
		case <-timeout:
			require.Fail(t, "the channel is not closed")
		}
	}
}
