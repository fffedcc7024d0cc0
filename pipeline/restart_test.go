package pipeline_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/gate"
	"github.com/grapnel-go/grapnel/pipeline"
)

// AP-70: a stage begins again with its first iteration, and its hooks and gates with it.
func TestRestartStage(t *testing.T) {
	b := newBench(t)
	id, first := b.park(gated(filed))
	run, err := b.store.Run(t.Context(), id)
	require.NoError(t, err)
	require.NoError(t, pipeline.RestartStage(t.Context(), b.store, durable.Keep(b.store, durable.Options{}), run))
	require.NoError(t, b.parking().ExecuteReady(t.Context()))
	s := b.status(id)
	require.Len(t, s.WaitsFor, 1, "%+v", s)
	assert.NotEqual(t, first.Wait, s.WaitsFor[0].Wait)
	assert.Equal(t, []string{"plan 1", "before", "plan 1", "before"}, b.lines("log"))
	b.write("work/answer", "approve")
	s = b.finish(id, gate.Options{})
	assert.Equal(t, pipeline.Completed, s.Reason, s.Error)
	assert.Len(t, b.lines("log"), 6)
	b.readOnly(s)
	run, err = b.store.Run(t.Context(), id)
	require.NoError(t, err)
	assert.Error(t, pipeline.RestartStage(t.Context(), b.store, durable.Keep(b.store, durable.Options{}), run), "it has ended")
}

// The running iteration of a stage that begins again is cancelled.
func TestRestartStageOfARunningIteration(t *testing.T) {
	b := newBench(t)
	run := b.submit("name: p\nstages: [{name: a, command: {argv: [sh, -c, 'if [ -e go ]; then echo again >> log; else echo began >> log; sleep 600; fi']}, termination: {type: fixed, iterations: 1}}]")
	ran := make(chan error, 1)
	w := b.worker()
	go func() { ran <- w.ExecuteReady(t.Context()) }()
	require.Eventually(t, func() bool { return len(b.lines("log")) == 1 }, time.Minute, 10*time.Millisecond)
	b.write("work/go", "")
	about, err := b.store.Run(t.Context(), run.ID)
	require.NoError(t, err)
	require.NoError(t, pipeline.RestartStage(t.Context(), b.store, durable.Keep(b.store, durable.Options{}), about))
	require.NoError(t, <-ran)
	require.NoError(t, b.worker().ExecuteReady(t.Context()))
	assert.Equal(t, pipeline.Completed, b.status(run.ID).Reason)
	assert.Len(t, b.lines("log"), 2)
	statuses := map[durable.Status]int{}
	for _, r := range b.iterations(run.ID) {
		statuses[r.Status]++
	}
	assert.Equal(t, map[durable.Status]int{durable.StatusCancelled: 1, durable.StatusCompleted: 1}, statuses)
}

// A session that has the directory of a deleted one begins with an empty progress file and no iterations; the old files are kept aside.
func TestDirectoryOfADeletedSession(t *testing.T) {
	b := newBench(t)
	const text = "name: p\nstages: [{name: a, command: {argv: [sh, -c, 'echo x >> \"$PROGRESS\"; wc -l < \"$PROGRESS\"']}, " +
		"termination: {type: fixed, iterations: 2}}]"
	first := b.submit(text)
	b.finish(first.ID, gate.Options{})
	second := b.submit(text)
	require.NotEqual(t, first.ID, second.ID)
	s := b.finish(second.ID, gate.Options{})
	require.Equal(t, pipeline.Completed, s.Reason, s.Error)
	result, err := durable.ResultOf(t.Context(), b.store, second.ID)
	require.NoError(t, err)
	assert.Equal(t, "2", strings.TrimSpace(result.Text))
	dir := filepath.Join(s.Dir, "previous", string(first.ID))
	assert.FileExists(t, filepath.Join(dir, "stages", "01-a", "progress.md"))
	assert.FileExists(t, filepath.Join(dir, "status.json"))
	written, err := os.ReadFile(filepath.Join(s.Dir, "events.jsonl"))
	require.NoError(t, err)
	assert.Contains(t, string(written), `"seq":1,`, "the events of the new session")
}

// A program that outlives the iterations before cannot decide for a stage that has begun again.
func TestRestartedStageHasOtherFiles(t *testing.T) {
	b := newBench(t)
	run := b.submit("name: p\nstages: [{name: a, command: {argv: [sh, -c, 'if [ -e go ]; then echo \"$STATUS\" >> log; else echo \"$STATUS\" >> log; sleep 600; fi']}, " +
		"termination: {type: judgment}, max_iterations: 1}]")
	ran := make(chan error, 1)
	w := b.worker()
	go func() { ran <- w.ExecuteReady(t.Context()) }()
	require.Eventually(t, func() bool { return len(b.lines("log")) == 1 }, time.Minute, 10*time.Millisecond)
	b.write("work/go", "")
	about, err := b.store.Run(t.Context(), run.ID)
	require.NoError(t, err)
	require.NoError(t, pipeline.RestartStage(t.Context(), b.store, durable.Keep(b.store, durable.Options{}), about))
	require.NoError(t, os.WriteFile(b.lines("log")[0], []byte(`{"decision": "nonsense"}`), 0o600))
	require.NoError(t, <-ran)
	require.NoError(t, b.worker().ExecuteReady(t.Context()))
	s := b.status(run.ID)
	assert.Equal(t, pipeline.MaxIterations, s.Reason, s.Error)
	status := b.lines("log")
	require.Len(t, status, 2)
	assert.NotEqual(t, status[0], status[1])
	require.NoError(t, os.RemoveAll(filepath.Join(s.Dir, "stages")))
	require.NoError(t, pipeline.Rebuild(t.Context(), b.store, about))
	assert.FileExists(t, filepath.Join(filepath.Dir(status[1]), "output.txt"))
}
