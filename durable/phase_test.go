package durable_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// passRunner is a runner of a phase: it passes runs on with another input.
type passRunner struct {
	durable.Runner

	store durable.Store
	input []byte
	// before, unless nil, is called before the run is passed on.
	before func(r durable.Run)
	passed atomic.Int32
}

func (*passRunner) Has(name string) bool { return name == "" }

func (p *passRunner) Execute(ctx context.Context, r durable.Run) error {
	if p.before != nil {
		p.before(r)
	}
	p.passed.Add(1)
	return p.store.Commit(ctx, r.Lease(), durable.Commit{Update: durable.Update{Pass: &durable.Pass{Input: p.input}}})
}

// textJob returns a job for the clerk with a text and limits, as a store keeps it.
func textJob(t *testing.T, text string) durable.Job {
	t.Helper()
	j, err := durable.AgentJob("clerk", agent.NewState(), agent.UserText(text))
	require.NoError(t, err)
	j.Limits = agent.Limits{Steps: 9}
	j, err = j.Prepare()
	require.NoError(t, err)
	return j
}

// phaseRunners returns a runner of agents and one of the phase "hooks", which passes runs on with the text "changed".
func phaseRunners(t *testing.T, store durable.Store) (clerk durable.Runner, hooks *passRunner) {
	t.Helper()
	keeper, w := durable.Keep(store, durable.Options{}), newWorld()
	clerk = durable.AgentRunner(keeper, durable.AgentMap{"clerk": w.agent(t, keeper)})
	return clerk, &passRunner{Runner: clerk, store: store, input: textJob(t, "changed").Input}
}

func executeReady(t *testing.T, store durable.Store, runners map[durable.Kind]durable.Runner) (released []durable.WorkerEvent) {
	t.Helper()
	events := make(chan durable.WorkerEvent, 100)
	w, err := durable.NewWorker(store, durable.WorkerOptions{Runners: runners, Observe: func(e durable.WorkerEvent) { events <- e }})
	require.NoError(t, err)
	require.NoError(t, w.ExecuteReady(t.Context()))
	for len(events) > 0 {
		if e := <-events; e.Kind == durable.WorkerReleased {
			require.NoError(t, e.Err)
			released = append(released, e)
		}
	}
	return released
}

// A run in a phase is executed by the runner of the phase, and then by that of its kind, with the input that the first passed on.
func TestAPhasePassesARunOn(t *testing.T) {
	store := openStore(t)
	j := textJob(t, "go")
	j.Phase = "hooks"
	_, err := store.Submit(t.Context(), j)
	require.NoError(t, err)
	clerk, hooks := phaseRunners(t, store)
	assert.Empty(t, executeReady(t, store, map[durable.Kind]durable.Runner{durable.KindAgent: clerk}), "no runner of the phase")

	released := executeReady(t, store, map[durable.Kind]durable.Runner{"hooks": hooks})
	require.Len(t, released, 1)
	assert.Equal(t, durable.Needs{Kind: "hooks"}, released[0].Needs)
	assert.Equal(t, []any{durable.StatusReady, durable.Kind(""), 0}, []any{released[0].Run.Status, released[0].Run.Phase, released[0].Run.Attempts})

	released = executeReady(t, store, map[durable.Kind]durable.Runner{durable.KindAgent: clerk})
	require.Len(t, released, 1)
	assert.Equal(t, []any{durable.StatusCompleted, 1}, []any{released[0].Run.Status, released[0].Run.Attempts})
	state, err := durable.Load(t.Context(), store, j.ID)
	require.NoError(t, err)
	for _, first := range state.Messages() {
		assert.Equal(t, "changed", first.Text())
		break
	}
	_, limits, err := durable.InputOf(t.Context(), store, j.ID)
	require.NoError(t, err)
	assert.Equal(t, 9, limits.Steps)
	submitted, err := store.SubmittedInput(t.Context(), j.ID)
	require.NoError(t, err)
	assert.Equal(t, j.Input, submitted)
}

// One worker has the runners of both phases. A run whose cancellation is requested in the first phase ends in the second one.
func TestACancelledRunIsPassedOn(t *testing.T) {
	store := openStore(t)
	j := textJob(t, "go")
	j.Phase = "hooks"
	_, err := store.Submit(t.Context(), j)
	require.NoError(t, err)
	clerk, hooks := phaseRunners(t, store)
	hooks.before = func(r durable.Run) {
		assert.NoError(t, store.Signal(t.Context(), r.ID, durable.Signal{Kind: durable.SignalCancel, Text: "enough"}))
		assert.NoError(t, store.Signal(t.Context(), r.ID, durable.Signal{Kind: durable.SignalPause}))
	}
	released := executeReady(t, store, map[durable.Kind]durable.Runner{durable.KindAgent: clerk, "hooks": hooks})
	require.Len(t, released, 2)
	assert.Equal(t, []any{durable.StatusCancelled, "enough"}, []any{released[1].Run.Status, released[1].Run.CancelReason})
	assert.Equal(t, int32(1), hooks.passed.Load())
}

// An agent resumes neither a run that a phase has not passed on, nor one that must start later.
func TestResumeDoesNotStartARunEarly(t *testing.T) {
	store, w := openStore(t), newWorld()
	keeper := durable.Keep(store, durable.Options{})
	phase, first, after := textJob(t, "go"), textJob(t, "go"), textJob(t, "go")
	phase.Phase, after.After = "hooks", first.ID
	_, err := store.Submit(t.Context(), phase, first, after)
	require.NoError(t, err)
	a := w.agent(t, keeper)
	require.ErrorContains(t, keeper.Resume(t.Context(), a, phase.ID, durable.TakeFree).Error(), `it is in phase "hooks"`)
	require.ErrorContains(t, keeper.Resume(t.Context(), a, after.ID, durable.TakeFree).Error(), "waits for another run")
	for id, want := range map[agent.RunID]durable.Status{phase.ID: durable.StatusReady, after.ID: durable.StatusWaiting} {
		r, err := store.Run(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, []any{want, ""}, []any{r.Status, r.Owner})
	}
	require.NoError(t, keeper.Resume(t.Context(), a, first.ID, durable.TakeFree).Error())
	require.NoError(t, keeper.Resume(t.Context(), a, after.ID, durable.TakeFree).Error())
}

// A worker executes runs in the order that After says.
func TestAWorkerStartsARunAfterAnother(t *testing.T) {
	store, w := openStore(t), newWorld()
	c := employ(t, store, func(k *durable.Keeper) *agent.Agent { return w.agent(t, k) }, durable.WorkerOptions{Capacity: 3, Poll: time.Hour}, durable.Options{})
	jobs := []durable.Job{textJob(t, "1"), textJob(t, "2"), textJob(t, "3")}
	jobs[1].After, jobs[2].After = jobs[0].ID, jobs[1].ID
	_, err := store.Submit(t.Context(), jobs...)
	require.NoError(t, err)
	for _, j := range jobs { // a run may be released before the one that it waited for: both have ended in the store
		assert.Equal(t, j.ID, c.next(t, durable.WorkerClaimed).Run.ID)
	}
	last := c.next(t, durable.WorkerReleased)
	for last.Run.ID != jobs[2].ID {
		last = c.next(t, durable.WorkerReleased)
	}
	assert.Equal(t, durable.StatusCompleted, last.Run.Status)
}
