package pipeline_test

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/gate"
	"github.com/grapnel-go/grapnel/pipeline"
)

// The stages of a parallel block run at the same time, each with its own hooks, and the next stage waits for all.
func TestParallel(t *testing.T) {
	b := newBench(t)
	meet := func(name, other string) string {
		return "      - name: " + name + "\n        command: {argv: [sh, -c, 'touch " + name + "; until [ -e " + other + " ]; do sleep 0.01; done; echo " + name + " $ITERATION >> log']}\n" +
			"        termination: {type: fixed, iterations: 2}\n"
	}
	run := b.submit("name: p\nstages:\n" + counted("plan", 1) + "  - name: both\n    parallel:\n" + meet("a", "b") + meet("b", "a") +
		"        hooks: {on_stage_complete: {type: shell, await: true, command: 'echo hook of b, then $NEXT_STAGE >> log'}}\n" + counted("last", 1) +
		"hooks:\n  on_session_start: {type: shell, await: true, command: 'echo start >> log'}\n" +
		"  on_stage_complete: {type: shell, await: true, command: 'echo complete $STAGE >> log'}\n" +
		"  on_session_complete: {type: shell, await: true, command: 'echo end of $SESSION >> log'}\n")
	s := b.serve(run.ID)
	require.Equal(t, pipeline.Completed, s.Reason, s.Error)
	lines := b.lines("log")
	assert.Equal(t, []string{"start", "plan 1", "complete plan"}, lines[:3])
	assert.Equal(t, []string{"last 1", "complete last", "end of demo"}, lines[len(lines)-3:])
	assert.ElementsMatch(t, []string{"a 1", "a 2", "complete a", "b 1", "b 2", "hook of b, then last", "complete b"}, lines[3:len(lines)-3])
	assert.Less(t, slices.Index(lines, "b 2"), slices.Index(lines, "hook of b, then last"))
	b.readOnly(s)
}

// A stage of a block that fails ends the session when the others have ended.
func TestParallelFailure(t *testing.T) {
	b := newBench(t)
	s := b.run(`
name: p
stages:
  - name: both
    parallel:
      - {name: a, command: {argv: [sh, -c, 'exit 3']}, termination: {type: fixed, iterations: 1}}
      - {name: b, command: {argv: [sh, -c, 'echo b >> log']}, termination: {type: fixed, iterations: 2}}
  - {name: last, command: {argv: [sh, -c, 'echo last >> log']}, termination: {type: fixed, iterations: 1}}
`)
	assert.Equal(t, pipeline.Failed, s.Reason)
	assert.Equal(t, durable.StatusFailed, s.Status)
	assert.Contains(t, s.Error, `stage "a": iteration 1 of stage "a" failed: the command exited with code 3`)
	assert.Equal(t, []string{"b", "b"}, b.lines("log"))
}

// The usage of a parallel block counts once, also when the next stage first waits for a gate.
func TestUsageBeforeAGateCountsOnce(t *testing.T) {
	b := newBench(t)
	b.driver = agent.DriverFunc(func(context.Context, agent.State) (agent.Step, error) {
		return agent.Step{Message: agent.Assistant("done"), Usage: agent.Usage{OutputTokens: 10}}, nil
	})
	b.host = parkingHost
	run := b.submit(`
name: p
stages:
  - name: both
    parallel:
      - {name: a, agent: worker, prompt: Work., termination: {type: fixed, iterations: 1}}
      - {name: b, agent: worker, prompt: Work., termination: {type: fixed, iterations: 1}}
  - name: last
    command: {argv: ["true"]}
    termination: {type: fixed, iterations: 1}
    hooks: {on_iteration_start: {type: gate, by: file, file: answer, await: true, every: 10ms}}
`)
	require.NoError(t, b.parking().ExecuteReady(t.Context()))
	require.Len(t, b.status(run.ID).WaitsFor, 1)
	require.NoError(t, os.WriteFile(b.path("work", "answer"), []byte("approve"), 0o600))
	s := b.finish(run.ID, gate.Options{})
	require.Equal(t, pipeline.Completed, s.Reason, s.Error)
	assert.Equal(t, []any{2, int64(20)}, []any{s.Steps, s.Tokens})
}

// A stage can be described in a file of its own, with its hooks.
func TestLoops(t *testing.T) {
	b := newBench(t)
	b.write("improve.yaml", `
name: improve
description: Improves
command: {argv: [sh, -c, 'echo "$STAGE $ITERATION of $MAX_ITERATIONS" >> log']}
termination: {type: judgment}
max_iterations: 7
hooks: {on_iteration_complete: {type: shell, await: true, command: 'echo hook of $STAGE >> log'}}
`)
	s := b.run("name: p\nstages: [{name: plan, loop: improve, max_iterations: 2}, {name: improve, loop: ./improve.yaml, max_iterations: 1}]")
	assert.Equal(t, pipeline.MaxIterations, s.Reason, s.Error)
	assert.Equal(t, []string{"plan 1 of 2", "hook of plan", "plan 2 of 2", "hook of plan", "improve 1 of 1", "hook of improve"}, b.lines("log"))
}

// A mistake in a loop names its file.
func TestMistakesInLoops(t *testing.T) {
	b := newBench(t)
	for text, want := range map[string]string{
		"name: x\ncommand: {argv: ['true']}":                                                                 "improve.yaml:1:1: the key \"termination\" is missing",
		"name: x\nagent: none.yaml\nprompt: go\ntermination: {type: judgment}":                               "none.yaml: no such file",
		"name: x\ncommand: {argv: ['true']}\ntermination: {type: judgment}\nhooks: {on_error: {type: shel}}": "improve.yaml:4:",
		"name: x\nloop: y": "a loop has an agent or a command",
		"":                 "improve.yaml:1:1: the file is empty",
	} {
		b.write("improve.yaml", text)
		_, err := pipeline.Load(b.write("pipeline.yaml", "name: p\nstages: [{name: a, loop: improve}]"), pipeline.LoadOptions{})
		assert.ErrorContains(t, err, want)
	}
}

// AP-71: a pause in a parallel block waits for all of its stages.
func TestPauseInAParallelBlock(t *testing.T) {
	b := newBench(t)
	run := b.submit(`
name: p
stages:
  - name: both
    parallel:
      - {name: a, command: {argv: [sh, -c, 'echo "a $ITERATION" >> log']}, termination: {type: fixed, iterations: 2}}
      - {name: b, command: {argv: [sh, -c, 'until [ -e go ]; do sleep 0.01; done; echo "b $ITERATION" >> log']}, termination: {type: fixed, iterations: 2}}
  - {name: last, command: {argv: [sh, -c, 'echo last >> log']}, termination: {type: fixed, iterations: 1}}
`)
	ran := make(chan error, 1)
	w := b.worker()
	go func() { ran <- w.ExecuteReady(t.Context()) }()
	require.Eventually(t, func() bool { return len(b.lines("log")) > 0 }, time.Minute, 10*time.Millisecond)
	require.NoError(t, b.store.Signal(t.Context(), run.ID, durable.Signal{Kind: durable.SignalPause}))
	b.write("work/go", "")
	require.NoError(t, <-ran)
	assert.ElementsMatch(t, []string{"a 1", "a 2", "b 1", "b 2"}, b.lines("log"))
	assert.True(t, b.status(run.ID).Paused)
	require.NoError(t, b.store.Signal(t.Context(), run.ID, durable.Signal{Kind: durable.SignalResume}))
	require.NoError(t, b.worker().ExecuteReady(t.Context()))
	assert.Equal(t, pipeline.Completed, b.status(run.ID).Reason)
	assert.Equal(t, "last", b.lines("log")[4])
}
