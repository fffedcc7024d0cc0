package pipeline_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/pipeline"
)

// spawns returns a pipeline whose hook starts the pipeline child after its first iteration.
func spawns(more string) string {
	return `
name: p
stages:
  - name: work
    command: {argv: [sh, -c, 'echo "work $ITERATION" >> log'], env: {OF_PARENT: hunter2}}
    termination: {type: fixed, iterations: 2}
hooks:
  on_iteration_complete:
    - {id: review, type: spawn, pipeline: child, inputs: {files: "${CHANGED_FILES}", of: "${SESSION}"}, when: '${ITERATION} == 1'` + more + `}
    - {type: shell, await: true, command: 'echo "after $LAST_HOOK_STATUS $SPAWN_OUTPUT" >> log'}
`
}

// children returns the runs of pipelines that a session has started.
func (b *bench) children(id agent.RunID) []durable.Run {
	b.t.Helper()
	return slices.DeleteFunc(b.iterations(id), func(r durable.Run) bool { return r.Kind != durable.KindPipeline })
}

// AP-39, AP-40, AP-41, AP-42, AP-44: a spawned pipeline has a directory and a progress file of its own, gets its inputs and
// nothing else, and its output goes to the next action. Awaiting is the default.
func TestSpawn(t *testing.T) {
	b := newBench(t)
	b.write("child.yaml", `
name: child
stages:
  - name: review
    command: {argv: [sh, -c, 'cat > input; echo "$OF_PARENT:$SESSION" >> log; echo more >> "$PROGRESS"; echo reviewed']}
    termination: {type: fixed, iterations: 1}
`)
	s := b.run(spawns(""))
	require.Equal(t, pipeline.Completed, s.Reason, s.Error)
	assert.Equal(t, []string{"work 1", ":demo.work.on_iteration_complete-1-review", "after success reviewed", "", "work 2", "after  "}, b.lines("log"))
	dir := b.path("sessions", "demo", "children", "work", "on_iteration_complete-1-review")
	for name, want := range map[string]string{"inputs.json": `{"files":"log","of":"demo"}` + "\n", "stages/01-review/progress.md": "more\n"} {
		text, err := os.ReadFile(dir + "/" + name)
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
	}
	assert.Contains(t, b.lines("input")[0], `"inputs":{"files":"log","of":"demo"}`)
	children := b.children(s.Run)
	require.Len(t, children, 1)
	assert.Equal(t, s.Run, children[0].Root)
	b.readOnly(s)
}

// A stage's and a pipeline's hooks start pipelines in separate directories.
func TestSpawnDirectories(t *testing.T) {
	b := newBench(t)
	b.write("child.yaml", "name: child\nstages: [{name: a, command: {argv: ['true']}, termination: {type: fixed, iterations: 1}}]")
	s := b.run(`
name: p
stages:
  - name: work
    command: {argv: ["true"]}
    termination: {type: fixed, iterations: 1}
    hooks: {on_iteration_complete: {type: spawn, pipeline: child}}
hooks:
  on_iteration_complete:
    - {type: spawn, pipeline: child}
    - {id: again, type: spawn, pipeline: child}
`)
	require.Equal(t, pipeline.Completed, s.Reason, s.Error)
	require.Len(t, b.children(s.Run), 3)
	dirs, err := os.ReadDir(b.path("sessions", "demo", "children", "work"))
	require.NoError(t, err)
	assert.Len(t, dirs, 3, "%v", dirs)
}

// Pipelines that hooks start have sessions of different names: in other stages, and where names are long.
func TestSpawnedNames(t *testing.T) {
	for _, stage := range []string{"work", strings.Repeat("long", 24)} {
		b := newBench(t)
		b.write("child.yaml", "name: child\nstages: [{name: a, command: {argv: ['true']}, termination: {type: fixed, iterations: 1}}]")
		s := b.run("name: p\nstages:\n" + counted(stage+"1", 2) + counted(stage+"2", 2) + `
hooks:
  on_iteration_complete:
    - {id: review, type: spawn, pipeline: child}
    - {id: review-again, type: spawn, pipeline: child, await: false}
`)
		require.Equal(t, pipeline.Completed, s.Reason, s.Error)
		names := lo.Map(b.children(s.Run), func(r durable.Run, _ int) string { return r.Labels[pipeline.LabelSession] })
		require.Len(t, names, 8)
		assert.Len(t, lo.Uniq(names), 8, "%q", names)
	}
}

// A pipeline that is not awaited can be left to other workers than its session.
func TestDetachedDemands(t *testing.T) {
	b := newBench(t)
	b.write("child.yaml", "name: child\nstages: [{name: a, command: {argv: ['true']}, termination: {type: fixed, iterations: 1}}]\n"+
		"hooks: {on_stage_complete: {type: spawn, pipeline: grandchild, await: false}}")
	b.write("grandchild.yaml", "name: grandchild\nstages: [{name: a, command: {argv: ['true']}, termination: {type: fixed, iterations: 1}}]")
	p := b.load("name: p\nstages:\n" + counted("work", 1) + `
hooks:
  on_iteration_complete:
    - {id: awaited, type: spawn, pipeline: child}
    - {id: detached, type: spawn, pipeline: child, await: false}
`)
	job, err := p.Job(pipeline.SessionOptions{
		Name: "demo", Dir: b.path("sessions", "demo"), Workspace: b.path("work"),
		Demands: map[string]string{"of": "session"}, DetachedDemands: map[string]string{"of": "folder"},
	})
	require.NoError(t, err)
	_, err = b.store.Submit(t.Context(), job)
	require.NoError(t, err)
	keeper := durable.Keep(b.store, durable.Options{})
	o := b.options(keeper)
	o.Pipelines = []string{"p", "child", "grandchild"}
	execute := func(label string) map[string]durable.Run {
		w, err := durable.NewWorker(b.store, durable.WorkerOptions{Runners: pipeline.Runners(b.store, keeper, o), Labels: map[string]string{"of": label}})
		require.NoError(t, err)
		require.NoError(t, w.ExecuteReady(t.Context()))
		all, err := b.store.List(t.Context(), durable.Filter{Kind: durable.KindPipeline, Limit: 100})
		require.NoError(t, err)
		return lo.KeyBy(all, func(r durable.Run) string { return r.Labels[pipeline.LabelSession] })
	}
	const awaited, detached, below = "demo.work.on_iteration_complete-1-awaited", "demo.work.on_iteration_complete-1-detached", ".a.on_stage_complete-1-StageComplete-1"
	runs := execute("session")
	assert.Equal(t, durable.StatusCompleted, runs["demo"].Status)
	assert.Equal(t, durable.StatusCompleted, runs[awaited].Status)
	assert.Empty(t, runs[awaited].Labels[pipeline.LabelDetached])
	assert.Equal(t, durable.StatusReady, runs[detached].Status)
	assert.Equal(t, "true", runs[detached].Labels[pipeline.LabelDetached])
	runs = execute("folder")
	for _, name := range []string{detached, awaited + below, detached + below} {
		assert.Equal(t, durable.StatusCompleted, runs[name].Status, "%s of %q", name, lo.Keys(runs))
	}
}

// AP-43: a child that fails is a failure of the action.
func TestSpawnFails(t *testing.T) {
	for name, tc := range map[string]struct {
		more     string
		reason   pipeline.Reason
		children int
	}{
		"continue": {"", pipeline.Completed, 1},
		"abort":    {", on_failure: abort", pipeline.Aborted, 1},
		"retry":    {", on_failure: retry, retries: 1, retry_delay: 1ms", pipeline.Completed, 2},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.write("child.yaml", "name: child\nstages: [{name: a, command: {argv: ['false']}, termination: {type: fixed, iterations: 1}}]")
			s := b.run(spawns(tc.more))
			assert.Equal(t, tc.reason, s.Reason, s.Error)
			assert.Len(t, b.children(s.Run), tc.children)
			if tc.reason == pipeline.Completed {
				assert.Equal(t, "after failed ", b.lines("log")[1])
			}
		})
	}
}

// What awaited children use counts for the limits of the session, and each gets what remains.
func TestSpawnedSpending(t *testing.T) {
	b := newBench(t)
	b.driver = agent.DriverFunc(func(context.Context, agent.State) (agent.Step, error) {
		return agent.Step{Message: agent.Assistant("done"), Usage: agent.Usage{OutputTokens: 10, Cost: mo.Some(0.4)}}, nil
	})
	b.write("child.yaml", "name: child\nstages: [{name: a, agent: helper, prompt: Help., termination: {type: fixed, iterations: 1}}]")
	s := b.run(`
name: p
limits: {cost: 1}
stages: [{name: work, command: {argv: ["true"]}, termination: {type: fixed, iterations: 9}}]
hooks: {on_iteration_complete: {type: spawn, pipeline: child}}
`)
	assert.Equal(t, pipeline.LimitReached, s.Reason, s.Error)
	assert.Len(t, b.asked, 3)
	assert.Equal(t, []any{3, int64(30)}, []any{s.Steps, s.Tokens})
	assert.InDelta(t, 1.2, s.Cost, 1e-9)
}

// AP-44: a child that is not awaited holds nothing up, and is a run of its own.
func TestSpawnWithoutAwaiting(t *testing.T) {
	b := newBench(t)
	b.write("child.yaml", "name: child\nstages: [{name: a, command: {argv: [sh, -c, 'echo child >> child-log']}, termination: {type: fixed, iterations: 1}}]")
	s := b.run(spawns(", await: false"))
	require.Equal(t, pipeline.Completed, s.Reason, s.Error)
	require.NoError(t, b.worker().ExecuteReady(t.Context()))
	assert.Equal(t, []string{"work 1", "after  ", "work 2", "after  "}, b.lines("log"))
	assert.Equal(t, []string{"child"}, b.lines("child-log"))
	children := b.children(s.Run)
	require.Len(t, children, 1)
	assert.Equal(t, durable.StatusCompleted, children[0].Status)
}

// AP-45: pipelines nest no deeper than the limit.
func TestSpawnDepth(t *testing.T) {
	b := newBench(t)
	b.write("child.yaml", `
name: child
stages: [{name: a, command: {argv: [sh, -c, 'echo child >> log']}, termination: {type: fixed, iterations: 1}}]
hooks: {on_stage_complete: {id: again, type: spawn, pipeline: child, on_failure: abort}}
`)
	s := b.run(spawns(""))
	require.Equal(t, pipeline.Completed, s.Reason, s.Error)
	assert.Equal(t, []string{"work 1", "child", "child", "child", "after failed ", "work 2", "after  "}, b.lines("log"))
}

// A pipeline that a hook names must have a file.
func TestSpawnOfAnUnknownPipeline(t *testing.T) {
	b := newBench(t)
	_, err := pipeline.Load(b.write("pipeline.yaml", spawns("")), pipeline.LoadOptions{})
	assert.ErrorContains(t, err, "pipeline.yaml:9: pipeline: no file child.yaml in ")
}
