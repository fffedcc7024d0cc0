package pipeline_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/pipeline"
)

// stagesOf returns what each stage is doing, with the parts of blocks after their block.
func stagesOf(stages []pipeline.StageProgress) (all []string) {
	for _, s := range stages {
		all = append(all, s.Name+" "+string(s.State)+" "+s.Note)
		all = append(all, stagesOf(s.Parts)...)
	}
	return all
}

func (b *bench) tracker(about durable.Run) *pipeline.Tracker {
	b.t.Helper()
	t, err := pipeline.NewTracker(b.t.Context(), b.store, about)
	require.NoError(b.t, err)
	return t
}

func (b *bench) progress(t *pipeline.Tracker) pipeline.SessionProgress {
	b.t.Helper()
	p, err := t.Refresh(b.t.Context())
	require.NoError(b.t, err)
	return p
}

// A tracker follows a session over a gate, and a new one finds the same.
func TestProgress(t *testing.T) {
	b := newBench(t)
	id, _ := b.park(gated("{type: gate, by: person, reason: Go on?, await: true, when: '${STAGE} == \"plan\"'}"))
	about, err := b.store.Run(t.Context(), id)
	require.NoError(t, err)
	tracker := b.tracker(about)
	p := b.progress(tracker)
	assert.Equal(t, []string{"plan running 1 iteration", "work pending 1 iteration"}, stagesOf(p.Stages))
	assert.Equal(t, 1, p.Stages[0].Iteration)
	assert.True(t, p.Stages[0].IterationBegan.IsZero(), "no iteration runs")
	assert.True(t, p.Idle)
	assert.Zero(t, p.Ended)
	require.Len(t, p.WaitsFor, 1)
	require.NotEmpty(t, p.Actions)
	assert.Equal(t, hooks.StageComplete, p.Actions[0].Point)
	assert.Equal(t, "plan", p.Actions[0].Stage)
	assert.False(t, p.Actions[0].Ended.IsZero())

	require.NoError(t, durabletest.Approve(t.Context(), b.store, id, p.WaitsFor[0].Wait, agent.Approval{Verdict: agent.Approve, By: "me"}))
	require.NoError(t, b.parking().ExecuteReady(t.Context()))
	p = b.progress(tracker)
	assert.Equal(t, []string{"plan complete 1 iteration", "work complete 1 iteration"}, stagesOf(p.Stages))
	assert.Equal(t, pipeline.Completed, p.Reason)
	assert.False(t, p.Ended.IsZero())
	assert.Empty(t, p.WaitsFor)
	assert.Equal(t, p, b.progress(b.tracker(about)))
}

// The stages of a parallel block, and actions that fail, are part of the progress.
func TestProgressOfFailures(t *testing.T) {
	b := newBench(t)
	run := b.submit(`
name: p
stages:
  - name: both
    parallel:
      - {name: a, command: {argv: [sh, -c, 'exit 3']}, termination: {type: fixed, iterations: 1}}
      - {name: b, command: {argv: ["true"]}, termination: {type: fixed, iterations: 2}}
  - {name: last, command: {argv: ["true"]}, termination: {type: fixed, iterations: 1}}
hooks: {on_error: {id: tell, type: shell, command: exit 4, await: true}}
`)
	assert.Equal(t, []string{"both pending when all of its stages have ended", "a pending 1 iteration", "b pending 2 iterations", "last pending 1 iteration"},
		stagesOf(b.progress(b.tracker(run)).Stages))
	require.NoError(t, b.worker().ExecuteReady(t.Context()))
	p := b.progress(b.tracker(run))
	assert.Equal(t, pipeline.StageFailed, p.Stages[0].State)
	assert.Equal(t, pipeline.StageFailed, p.Stages[0].Parts[0].State)
	assert.Equal(t, pipeline.StageComplete, p.Stages[0].Parts[1].State)
	assert.Equal(t, 2, p.Stages[0].Parts[1].Iteration)
	assert.Equal(t, pipeline.StagePending, p.Stages[1].State)
	require.Len(t, p.Actions, 1)
	assert.Equal(t, "pipeline.p/tell", p.Actions[0].Hook[len(p.Actions[0].Hook)-len("pipeline.p/tell"):])
	assert.Contains(t, p.Actions[0].Error, "exit code 4")
}
