package pipeline_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/pipeline"
)

// openAt is a position's data about firings whose detached actions have not ended.
type openAt struct {
	Phase     string
	Iteration int
	Open      []struct {
		Point     string
		Iteration int
		After     int64
	}
}

// positions returns the positions of a session, by the numbers of their entries.
func (b *bench) positions(s pipeline.Status) (seqs []int64, all []openAt) {
	b.t.Helper()
	entries, err := b.store.Entries(b.t.Context(), s.Run, 0)
	require.NoError(b.t, err)
	for _, e := range entries {
		if e.Kind != "position" {
			continue
		}
		var at openAt
		require.NoError(b.t, json.Unmarshal(e.Data, &at))
		seqs, all = append(seqs, e.Seq), append(all, at)
	}
	return seqs, all
}

// A session whose detached actions overlap records only the firings whose own actions have not ended, and needs only the entries since then.
func TestOpenFirings(t *testing.T) {
	b := newBench(t)
	// An iteration's action ends after the next iteration's action has begun. An iteration begins after the action has ended that began
	// two iterations before.
	run := b.submit("name: p\nstages:\n" + counted("work", 12) + `
hooks:
  on_iteration_start: {type: shell, await: true, command: 'until [ $ITERATION -lt 3 ] || [ -e "ended.$((ITERATION-2))" ]; do sleep 0.01; done'}
  on_iteration_complete: {type: shell, command: 'touch "begun.$ITERATION"; until [ $ITERATION = 12 ] || [ -e "begun.$((ITERATION+1))" ]; do sleep 0.01; done; touch "ended.$ITERATION"'}
`)
	s := b.serve(run.ID)
	require.Equal(t, pipeline.Completed, s.Reason, s.Error)
	seqs, positions := b.positions(s)
	overlapped := 0
	for i, at := range positions {
		assert.LessOrEqual(t, len(at.Open), 4, "open firings in iteration %d", at.Iteration)
		for _, o := range at.Open {
			overlapped++
			assert.LessOrEqual(t, seqs[i]-o.After, int64(45), "entries that are needed in iteration %d for iteration %d", at.Iteration, o.Iteration)
		}
	}
	assert.GreaterOrEqual(t, overlapped, 11, "each action but the last is open when the next iteration starts")
}

// AP-60, AP-62: when a worker does actions again, it also repeats detached ones: once each action that had ended since the last
// position, and each action that had not ended. It repeats nothing else.
func TestDetachedActionsAreDoneAgain(t *testing.T) {
	b := newBench(t)
	run := b.submit(`
name: p
stages:
  - name: work
    command: {argv: [sh, -c, '[ $ITERATION != 2 ] || until [ -e go ]; do sleep 0.01; done']}
    termination: {type: fixed, iterations: 3}
hooks:
  on_iteration_complete:
    - {type: shell, await: true, command: 'echo "awaited $ITERATION" >> log'}
    - {id: quick, type: shell, command: 'until [ -e second ]; do sleep 0.01; done; echo "quick $ITERATION" >> log', when: '${ITERATION} == 1'}
    - {id: slow, type: shell, command: 'echo $$ >> slow; until [ -e go ]; do sleep 0.01; done; echo "slow $ITERATION" >> log', when: '${ITERATION} == 1'}
`)
	keeper := durable.Keep(b.store, durable.Options{})
	w, err := durable.NewWorker(b.store, durable.WorkerOptions{
		Runners: pipeline.Runners(b.store, keeper, b.options(keeper)), Grace: 100 * time.Millisecond, // then the second iteration is cut off
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var working sync.WaitGroup
	working.Go(func() { assert.NoError(t, w.Run(ctx)) })
	require.Eventually(t, func() bool {
		s := b.status(run.ID)
		return s.Iteration == 2 && s.IterationRun != "" && len(b.iterations(run.ID)) == 2
	}, time.Minute, 10*time.Millisecond)
	b.write("work/second", "")
	ended := func(name string) bool {
		entries, err := b.store.Entries(t.Context(), run.ID, 0)
		require.NoError(t, err)
		for _, e := range entries {
			if e.Kind == durable.EntryDone && strings.Contains(e.Key, name) {
				return true
			}
		}
		return false
	}
	require.Eventually(t, func() bool { return ended("/quick ") && len(b.lines("slow")) == 1 }, time.Minute, 10*time.Millisecond)
	stop()
	working.Wait()
	slow := b.lines("slow")[0]
	require.Eventually(t, func() bool { return exec.CommandContext(t.Context(), "kill", "-0", slow).Run() != nil }, time.Minute, 10*time.Millisecond, "the program ends with its worker")
	require.False(t, ended("/slow "))
	_, positions := b.positions(b.status(run.ID))
	last := positions[len(positions)-1]
	require.Equal(t, "run", last.Phase)
	require.Len(t, last.Open, 1)
	require.Equal(t, []string{"awaited 1", "quick 1"}, b.lines("log"))

	b.again = action.Kept
	require.NoError(t, os.WriteFile(b.path("work", "go"), nil, 0o600))
	s := b.serve(run.ID)
	assert.Equal(t, pipeline.Completed, s.Reason, s.Error)
	assert.ElementsMatch(t, []string{"awaited 1", "quick 1", "quick 1", "slow 1", "awaited 2", "awaited 3"}, b.lines("log"))
}

// A stage that begins again does not drop actions that are not awaited and had not ended.
func TestDetachedActionsOfARestartedStage(t *testing.T) {
	b := newBench(t)
	run := b.submit(`
name: p
stages:
  - name: work
    command: {argv: [sh, -c, '[ $ITERATION != 2 ] || until [ -e go ]; do sleep 0.01; done']}
    termination: {type: fixed, iterations: 2}
hooks:
  on_iteration_complete: {id: slow, type: shell, command: 'until [ -e go ]; do sleep 0.01; done; echo "slow $ITERATION $GRAPNEL_IDEMPOTENCY_KEY" >> log'}
`)
	keeper := durable.Keep(b.store, durable.Options{})
	w, err := durable.NewWorker(b.store, durable.WorkerOptions{
		Runners: pipeline.Runners(b.store, keeper, b.options(keeper)), Grace: 100 * time.Millisecond,
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var working sync.WaitGroup
	working.Go(func() { assert.NoError(t, w.Run(ctx)) })
	require.Eventually(t, func() bool { s := b.status(run.ID); return s.Iteration == 2 && s.IterationRun != "" }, time.Minute, 10*time.Millisecond)
	stop()
	working.Wait()
	about, err := b.store.Run(t.Context(), run.ID)
	require.NoError(t, err)
	require.NoError(t, pipeline.RestartStage(t.Context(), b.store, durable.Keep(b.store, durable.Options{}), about))
	require.Empty(t, b.lines("log"))
	b.write("work/go", "")
	s := b.serve(run.ID)
	assert.Equal(t, pipeline.Completed, s.Reason, s.Error)
	lines := lo.Uniq(b.lines("log")) // the program of the worker that has stopped may still end
	names := lo.Map(lines, func(line string, _ int) string { return line[:len("slow 1")] })
	assert.ElementsMatch(t, []string{"slow 1", "slow 1", "slow 2"}, names, "one of the abandoned attempt, two of the new one")
}
