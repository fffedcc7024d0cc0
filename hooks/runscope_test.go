package hooks_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/hooks"
)

// All firings of a scope share the identity of its run, its observer and its scratch values. The position in the
// pipeline is the firing's own.
func TestAScopeIsARun(t *testing.T) {
	counter := agent.NewScratch[int](nil)
	type call struct {
		run   agent.Run
		count int
	}
	var calls []call
	at := []hooks.PointName{hooks.IterationStart, hooks.IterationComplete, hooks.RunFinish}
	observer := hooks.ObserveAll("see", func(_ context.Context, c hooks.Context) error {
		n := counter.Get(c.State())
		*n++
		calls = append(calls, call{c.Run(), *n})
		assert.Zero(t, c.StepIndex())
		return nil
	}, at...)
	recorder := agenttest.Record()
	scope := lo.Must(hooks.NewSet(observer).Compile()).OpenScope(t.Context(), hooks.ScopeOptions{
		Run: agent.Run{ID: "run_p", Agent: "builder"}, Observer: recorder,
	})
	s := agent.NewState(agent.UserText("go"))
	for i := range 2 {
		after, _, err := scope.Pipeline(t.Context(), s, hooks.Firing{Point: at[i], Stage: "work", Iteration: 3}, hooks.Pipeline{})
		require.NoError(t, err)
		session := scope.Run().Session
		assert.Equal(t, session, after.Session())
		assert.Empty(t, after.Run().ID, "the state is in no run")
	}
	_, after, _, err := scope.Blueprint(t.Context(), s, hooks.Firing{Point: at[2]}, hooks.BlueprintRun{})
	require.NoError(t, err)
	run := scope.Run()
	assert.Equal(t, after.Session(), run.Session)
	assert.Equal(t, agent.RunID("run_p"), run.ID)
	assert.Equal(t, run.ID, run.Root)
	assert.NotEmpty(t, run.Session)
	placed := run
	placed.Stage, placed.Iteration = "work", 3
	assert.Equal(t, []call{{placed, 1}, {placed, 2}, {run, 3}}, calls)
	events := agenttest.Of[hooks.Event](recorder)
	require.Len(t, events, 6, "start and complete, three times")
	assert.Equal(t, placed, events[0].Run)
}

// A detached hook is started and not waited for; Drain waits for it, and its error is an event.
func TestDetachedHooksOfAScope(t *testing.T) {
	release, ran := make(chan struct{}), make(chan struct{})
	slow := hooks.Observe(hooks.AtSessionComplete, "slow", func(context.Context, hooks.PipelineEndContext) error {
		<-release
		close(ran)
		return errors.New("boom")
	}).Detach()
	recorder := agenttest.Record()
	scope := lo.Must(hooks.NewSet(slow).Compile()).OpenScope(t.Context(), hooks.ScopeOptions{Observer: recorder})
	_, _, err := scope.Pipeline(t.Context(), agent.NewState(), hooks.Firing{Point: hooks.SessionComplete}, hooks.Pipeline{})
	require.NoError(t, err)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorContains(t, scope.Drain(over), "1 not done")
	close(release)
	require.NoError(t, scope.Drain(t.Context()))
	<-ran
	failed := lo.Filter(agenttest.Of[hooks.Event](recorder), func(e hooks.Event, _ int) bool { return e.Kind == hooks.HookFailed })
	require.Len(t, failed, 1)
	assert.True(t, failed[0].Detached)
}

// Two scopes of one set do not wait for each other's detached hooks, and share nothing else.
func TestScopesAreApart(t *testing.T) {
	release := make(chan struct{})
	detach := hooks.On(hooks.AtSessionStart, "starts", func(ctx context.Context, c hooks.PipelineContext) hooks.Result {
		if c.Pipeline().Name == "slow" {
			assert.True(t, c.Detach(ctx, "work", 0, func(context.Context) error { <-release; return nil }))
		}
		return c.Allow()
	})
	set := lo.Must(hooks.NewSet(detach).Compile())
	slow, quick := set.OpenScope(t.Context(), hooks.ScopeOptions{}), set.OpenScope(t.Context(), hooks.ScopeOptions{})
	for scope, name := range map[*hooks.RunScope]string{slow: "slow", quick: "quick"} {
		_, _, err := scope.Pipeline(t.Context(), agent.NewState(), hooks.Firing{Point: hooks.SessionStart}, hooks.Pipeline{Name: name})
		require.NoError(t, err)
	}
	require.NoError(t, quick.Drain(t.Context()))
	close(release)
	require.NoError(t, slow.Drain(t.Context()))
}

// memory is a journal in memory.
type memory map[string][]byte

func (m memory) Once(
	ctx context.Context, _ agent.State, name string, _ bool, do func(ctx context.Context, key string) ([]byte, error),
) ([]byte, error) {
	if data, ok := m[name]; ok {
		return data, nil
	}
	data, err := do(ctx, name)
	if err == nil {
		m[name] = data
	}
	return data, err
}

// A firing's argument is recorded before its first hook. A repeated firing gets the recorded argument. Another Cursor
// makes another firing.
func TestFiringsAreRecorded(t *testing.T) {
	var pipelines []hooks.Pipeline
	var runs []hooks.BlueprintRun
	var times []string
	journal := memory{}
	fire := func(t *testing.T, cursor string, about hooks.Pipeline, run hooks.BlueprintRun) {
		t.Helper()
		set := lo.Must(hooks.NewSet(
			hooks.Observe(hooks.AtIterationFailed, "p", func(_ context.Context, c hooks.PipelineContext) error {
				assert.NotEmpty(t, journal)
				pipelines, times = append(pipelines, c.Pipeline()), append(times, c.Time().UTC().String())
				return nil
			}),
			hooks.Observe(hooks.AtRunFailed, "b", func(_ context.Context, c hooks.RunFailedContext) error {
				runs = append(runs, c.BlueprintRun())
				return nil
			}),
		).Compile())
		scope := set.OpenScope(t.Context(), hooks.ScopeOptions{Journal: journal})
		_, _, err := scope.Pipeline(t.Context(), agent.NewState(), hooks.Firing{Point: hooks.IterationFailed, Iteration: 1, Cursor: cursor}, about)
		require.NoError(t, err)
		left, _, _, err := scope.Blueprint(t.Context(), agent.NewState(), hooks.Firing{Point: hooks.RunFailed, Cursor: cursor}, run)
		require.NoError(t, err)
		assert.Equal(t, runs[len(runs)-1], left)
	}
	first := hooks.Pipeline{Name: "p", ChangedFiles: []string{"a", "b"}, StageOutputs: []string{"o"}, LastDecision: "continue", Err: errPaper}
	run := hooks.BlueprintRun{Parameters: json.RawMessage(`{"n":12345678901234567890}`), Status: agent.StatusFailed, Err: errPaper}
	later := hooks.Pipeline{ChangedFiles: []string{"c"}}
	fire(t, "", first, run)
	fire(t, "", later, hooks.BlueprintRun{})
	fire(t, "again", later, hooks.BlueprintRun{})
	require.Len(t, pipelines, 3)
	assert.Equal(t, first, pipelines[0])
	assert.Equal(t, run, runs[0])
	require.EqualError(t, pipelines[1].Err, errPaper.Error())
	require.EqualError(t, runs[1].Err, errPaper.Error())
	pipelines[1].Err, runs[1].Err = errPaper, errPaper
	assert.Equal(t, first, pipelines[1])
	assert.Equal(t, run, runs[1])
	assert.Equal(t, times[0], times[1], "the point fired once")
	assert.Equal(t, later, pipelines[2])
	assert.Equal(t, hooks.BlueprintRun{}, runs[2])

	fire(t, "empty", hooks.Pipeline{}, hooks.BlueprintRun{})
	fire(t, "empty", first, run)
	assert.Equal(t, hooks.Pipeline{}, pipelines[4], "what was missing stays missing")
	assert.Equal(t, hooks.BlueprintRun{}, runs[4])

	for name := range journal {
		journal[name] = []byte("{")
	}
	scope := lo.Must(hooks.NewSet(hooks.ObserveAll("never", func(context.Context, hooks.Context) error {
		t.Error("the hook was called")
		return nil
	})).Compile()).OpenScope(t.Context(), hooks.ScopeOptions{Journal: journal})
	_, _, err := scope.Pipeline(t.Context(), agent.NewState(), hooks.Firing{Point: hooks.IterationFailed, Iteration: 1}, later)
	require.ErrorContains(t, err, "firing IterationFailed iteration 1: recording what it is about")
}

// A scope knows which firing a detached hook belongs to.
func TestDetachedHooksOfAFiring(t *testing.T) {
	release := make(chan struct{})
	var begun sync.WaitGroup
	begun.Add(2)
	wait := func(context.Context) error {
		begun.Done()
		<-release
		return nil
	}
	observer := hooks.Observe(hooks.AtIterationComplete, "wait", func(ctx context.Context, c hooks.PipelineContext) error {
		if c.Firing().Iteration == 1 {
			return wait(ctx)
		}
		return nil
	}).Detach()
	starts := hooks.On(hooks.AtStageComplete, "start", func(ctx context.Context, c hooks.PipelineContext) hooks.Result {
		assert.True(t, c.Detach(ctx, "started", 0, wait))
		return c.Pass()
	})
	scope := lo.Must(hooks.NewSet(observer, starts).Compile()).OpenScope(t.Context(), hooks.ScopeOptions{})
	first := hooks.Firing{Point: hooks.IterationComplete, Stage: "work", Iteration: 1}
	second, complete := first, first
	second.Iteration, complete.Point = 2, hooks.StageComplete
	assert.False(t, scope.HasDetached(first))
	for _, f := range []hooks.Firing{first, second, complete} {
		_, _, err := scope.Pipeline(t.Context(), agent.NewState(), f, hooks.Pipeline{})
		require.NoError(t, err)
	}
	begun.Wait()
	again := first
	again.Cursor = "round 1"
	assert.Eventually(t, func() bool { return !scope.HasDetached(second) }, time.Minute, time.Millisecond)
	assert.Equal(t, []bool{true, true, false}, []bool{scope.HasDetached(first), scope.HasDetached(complete), scope.HasDetached(again)})
	close(release)
	require.NoError(t, scope.Drain(t.Context()))
	assert.False(t, scope.HasDetached(first) || scope.HasDetached(complete))
}
