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

// TestEngine tests an engine against the contract of durable.Engine. It calls open for each part; the engine must be
// empty and must not run jobs by itself.
func TestEngine(t *testing.T, open func(t *testing.T) durable.Engine) {
	t.Helper()
	for name, test := range map[string]func(t *testing.T, e durable.Engine){
		"a job waits to be claimed":   testClaim,
		"a run parks and is answered": testPark,
		"a child knows its parent":    testChild,
		"a run that is to be cancelled is claimed": func(t *testing.T, e durable.Engine) {
			submitJob(t, e, "a")
			task := claimTask(t, e)
			require.NoError(t, e.Park(t.Context(), task.Lease, []durable.Question{waitingFor()}))
			checkNoTask(t, e)
			require.NoError(t, e.Cancel(t.Context(), "a", "why not"))
			assert.Equal(t, "why not", claimTask(t, e).Run.CancelReason)
		},
		"watching tells what is there and what changes": testWatch,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func submitJob(t *testing.T, e durable.Engine, id agent.RunID) durable.Run {
	t.Helper()
	run, err := e.Submit(t.Context(), durable.Job{ID: id, Agent: "clerk", Input: []agent.Message{agent.UserText("go")}})
	require.NoError(t, err)
	return run
}

func claimTask(t *testing.T, e durable.Engine) durable.Task {
	t.Helper()
	task, err := e.Claim(t.Context(), "runner", time.Minute)
	require.NoError(t, err)
	return task
}

func checkNoTask(t *testing.T, e durable.Engine) {
	t.Helper()
	_, err := e.Claim(t.Context(), "runner", time.Minute)
	require.ErrorIs(t, err, durable.ErrNothing)
}

func waitingFor() durable.Question {
	return durable.Question{Run: "a", Call: "1", Hash: "h", Tool: "bash", Asked: time.Now(), Data: []byte("{}")}
}

// testClaim checks that a job is stored once, is claimed by one worker, and ends when that worker reports its end.
func testClaim(t *testing.T, e durable.Engine) {
	checkNoTask(t, e)
	run := submitJob(t, e, "a")
	assert.Equal(t, agent.RunID("a"), run.ID)
	assert.Equal(t, "clerk", run.Agent)
	assert.Equal(t, agent.StatusRunning, run.Status)
	_, err := e.Submit(t.Context(), durable.Job{ID: "a"})
	require.ErrorIs(t, err, durable.ErrExists)
	task := claimTask(t, e)
	assert.Equal(t, agent.RunID("a"), task.Run.ID)
	require.Len(t, task.Entries, 1)
	assert.Equal(t, durable.EntrySubmit, task.Entries[0].Kind)
	s, err := agent.Restore(task.Entries[0].Data)
	require.NoError(t, err)
	assert.Equal(t, 1, s.MessageCount())
	checkNoTask(t, e)
	lease, err := e.Renew(t.Context(), task.Lease, time.Minute)
	require.NoError(t, err)
	require.NoError(t, e.Report(t.Context(), lease, durable.Update{Status: agent.StatusDone, Steps: 3},
		durable.Entry{Seq: 2, Kind: durable.EntryEnd, At: time.Now()}))
	checkNoTask(t, e)
	require.ErrorIs(t, e.Report(t.Context(), lease, durable.Update{}, durable.Entry{Seq: 3}), durable.ErrStale)
	runs, err := e.List(t.Context(), durable.Filter{Status: []agent.Status{agent.StatusDone}})
	require.NoError(t, err)
	require.Len(t, runs, 1)
	assert.Equal(t, 3, runs[0].Steps)
	assert.NotEqual(t, agent.RunID(""), submitJob(t, e, "").ID, "an id is made up")
}

// testPark checks that a parked job has no owner, and can be claimed again after it was answered.
func testPark(t *testing.T, e durable.Engine) {
	submitJob(t, e, "a")
	task := claimTask(t, e)
	require.NoError(t, e.Park(t.Context(), task.Lease, []durable.Question{waitingFor()}, durable.Entry{Seq: 2, Kind: durable.EntryPark, At: time.Now()}))
	checkNoTask(t, e)
	require.ErrorIs(t, e.Report(t.Context(), task.Lease, durable.Update{}, durable.Entry{Seq: 3}), durable.ErrStale)
	require.ErrorIs(t, e.Answer(t.Context(), "a", durable.Answer{Call: "1", Hash: "other"}), durable.ErrNotFound)
	require.NoError(t, e.Answer(t.Context(), "a", durable.Answer{Call: "1", Hash: "h", Data: []byte("yes")}))
	require.ErrorIs(t, e.Answer(t.Context(), "a", durable.Answer{Call: "1", Hash: "h"}), durable.ErrAnswered)
	again := claimTask(t, e)
	assert.Equal(t, agent.RunID("a"), again.Run.ID)
	assert.Greater(t, again.Lease.Epoch, task.Lease.Epoch)
	assert.Len(t, again.Entries, 2)
}

// testChild checks LH-81: a parent that waits for its child becomes due when the child has ended, whichever process
// started the child.
func testChild(t *testing.T, e durable.Engine) {
	submitJob(t, e, "a")
	parent := claimTask(t, e)
	child, err := e.Child(t.Context(), "a", durable.Job{ID: "b", Agent: "helper"})
	require.NoError(t, err)
	assert.Equal(t, agent.RunID("a"), child.Parent)
	assert.Equal(t, agent.RunID("a"), child.Root)
	_, err = e.Child(t.Context(), "unknown", durable.Job{})
	require.ErrorIs(t, err, durable.ErrNotFound)
	waits := waitingFor()
	waits.Child = "b"
	require.NoError(t, e.Park(t.Context(), parent.Lease, []durable.Question{waits}))
	task := claimTask(t, e)
	assert.Equal(t, agent.RunID("b"), task.Run.ID)
	checkNoTask(t, e)
	require.NoError(t, e.Report(t.Context(), task.Lease, durable.Update{Status: agent.StatusDone}))
	assert.Equal(t, agent.RunID("a"), claimTask(t, e).Run.ID)
}

func testWatch(t *testing.T, e durable.Engine) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	submitJob(t, e, "a")
	var seen []agent.Status
	for run, err := range e.Watch(ctx, durable.Filter{}) {
		require.NoError(t, err)
		assert.Equal(t, agent.RunID("a"), run.ID)
		if seen = append(seen, run.Status); run.Status == agent.StatusDone {
			break
		}
		if len(seen) == 1 {
			task := claimTask(t, e)
			require.NoError(t, e.Report(ctx, task.Lease, durable.Update{Status: agent.StatusDone}))
		}
	}
	assert.Equal(t, []agent.Status{agent.StatusRunning, agent.StatusDone}, seen)
	done, stop := context.WithCancel(t.Context())
	stop()
	for run, err := range e.Watch(done, durable.Filter{}) {
		t.Error("no watcher is left", run.ID, err)
	}
}
