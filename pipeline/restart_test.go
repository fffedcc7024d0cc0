package pipeline_test

import (
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
	run := b.submit("name: p\nstages: [{name: a, command: {argv: [sh, -c, 'echo began >> log; [ -e go ] || sleep 600']}, termination: {type: fixed, iterations: 1}}]")
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
