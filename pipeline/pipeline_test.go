package pipeline_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/pipeline"
)

var points = []string{"on_session_start", "on_iteration_start", "on_iteration_complete", "on_stage_complete", "on_session_complete", "on_error"}

// noting returns hooks that write a line at each point, in the words of a shell.
func noting(words string) string {
	out := "hooks:\n"
	for _, point := range points {
		out += fmt.Sprintf("  %s: {type: shell, await: true, command: 'echo \"%s %s\" >> log'}\n", point, point, words)
	}
	return out
}

// counted is a stage whose command notes its iterations.
func counted(name string, iterations int) string {
	return fmt.Sprintf("  - name: %s\n    command: {argv: [sh, -c, 'echo \"%s $ITERATION\" >> log; echo made $ITERATION']}\n"+
		"    termination: {type: fixed, iterations: %d}\n", name, name, iterations)
}

// AP-01, AP-02, AP-03, AP-05, AP-06: the points fire in their order.
func TestPoints(t *testing.T) {
	b := newBench(t)
	s := b.run("name: p\nstages:\n" + counted("plan", 2) + counted("work", 1) + noting("$SESSION $STAGE/$ITERATION of $MAX_ITERATIONS next=$NEXT_STAGE"))
	assert.Equal(t, durable.StatusCompleted, s.Status, s.Error)
	assert.Equal(t, pipeline.Completed, s.Reason)
	assert.Equal(t, []string{
		"on_session_start demo plan/ of 2 next=work",
		"on_iteration_start demo plan/1 of 2 next=work",
		"plan 1",
		"on_iteration_complete demo plan/1 of 2 next=work",
		"on_iteration_start demo plan/2 of 2 next=work",
		"plan 2",
		"on_iteration_complete demo plan/2 of 2 next=work",
		"on_stage_complete demo plan/2 of 2 next=work",
		"on_iteration_start demo work/1 of 1 next=",
		"work 1",
		"on_iteration_complete demo work/1 of 1 next=",
		"on_stage_complete demo work/1 of 1 next=",
		"on_session_complete demo work/1 of 1 next=",
	}, b.lines("log"))
	output, err := os.ReadFile(b.path("sessions", "demo", "stages", "01-plan", "iterations", "0002", "output.txt"))
	require.NoError(t, err)
	assert.Equal(t, "made 2\n", string(output))
	runs := b.iterations(s.Run)
	require.Len(t, runs, 3)
	assert.Equal(t, map[string]string{"pipeline": "p", "pipeline.session": "demo", "pipeline.stage": "work", "pipeline.iteration": "1"}, runs[0].Labels)
	assert.Equal(t, []agent.RunID{s.Run, s.Run}, []agent.RunID{runs[0].Parent, runs[0].Root})
}

// AP-03, AP-04: a failed iteration fires on_error, with ERROR, and nothing else does.
func TestFailedIterations(t *testing.T) {
	const stage = "  - name: work\n    command: {argv: [sh, -c, 'echo \"work $ITERATION\" >> log; [ $ITERATION != 1 ] || { echo oops >&2; exit 3; }']}\n" +
		"    termination: {type: fixed, iterations: 2}\n"
	hooks := noting("${ERROR:+with }$ITERATION $STAGE_OUTPUTS")
	for name, tc := range map[string]struct {
		more   string
		status durable.Status
		want   []string
	}{
		"abort": {"", durable.StatusFailed, []string{
			"on_session_start  ", "on_iteration_start 1 ", "work 1", "on_error with 1 ", "on_session_complete 1 ",
		}},
		"continue": {"    on_failure: continue\n", durable.StatusCompleted, []string{
			"on_session_start  ", "on_iteration_start 1 ", "work 1", "on_error with 1 ", "on_iteration_start 2 ", "work 2",
			"on_iteration_complete 2 OUT", "on_stage_complete 2 OUT", "on_session_complete 2 OUT",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			s := b.run("name: p\nstages:\n" + stage + tc.more + hooks)
			assert.Equal(t, tc.status, s.Status)
			if tc.status == durable.StatusFailed {
				assert.Equal(t, pipeline.Failed, s.Reason)
				assert.Contains(t, s.Error, `iteration 1 of stage "work" failed: the command exited with code 3: oops`)
			}
			out := b.path("sessions", "demo", "stages", "01-work", "iterations", "0002", "output.txt")
			assert.Equal(t, tc.want, strings.Split(strings.ReplaceAll(strings.Join(b.lines("log"), "\n"), out, "OUT"), "\n"))
		})
	}
}

// AP-07, AP-08, AP-09: actions run top to bottom; one that is not awaited blocks neither the others nor the iterations, and the
// session ends after it.
func TestAwaiting(t *testing.T) {
	b := newBench(t)
	run := b.submit("name: p\nstages:\n" + counted("work", 3) + `
hooks:
  on_iteration_start:
    - {type: shell, command: '[ "$ITERATION" != 3 ] || touch go', await: true}
  on_iteration_complete:
    - {type: shell, command: 'until [ -e go ]; do sleep 0.01; done; echo detached >> log', when: '${ITERATION} == 1'}
    - {type: shell, command: 'sleep 0.1; echo first >> log', await: true, when: '${ITERATION} == 1'}
    - {type: shell, command: 'echo second >> log', await: true, when: '${ITERATION} == 1'}
`)
	s := b.serve(run.ID)
	require.Equal(t, durable.StatusCompleted, s.Status, s.Error)
	lines := b.lines("log")
	assert.Equal(t, []string{"work 1", "first", "second", "work 2", "work 3"}, slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return l == "detached" }))
	assert.Greater(t, slices.Index(lines, "detached"), slices.Index(lines, "work 2"))
	b.readOnly(s)
}

// readOnly checks the files that show a session.
func (b *bench) readOnly(s pipeline.Status) {
	b.t.Helper()
	text, err := os.ReadFile(b.path("sessions", "demo", "status.json"))
	require.NoError(b.t, err)
	var shown pipeline.Status
	require.NoError(b.t, json.Unmarshal(text, &shown))
	shown.Updated, s.Updated = time.Time{}, time.Time{}
	assert.Equal(b.t, s, shown)
	text, err = os.ReadFile(b.path("sessions", "demo", "events.jsonl"))
	require.NoError(b.t, err)
	events, err := b.store.Events(b.t.Context(), s.Run, 0, 1000)
	require.NoError(b.t, err)
	var names, stored []string
	for line := range strings.Lines(string(text)) {
		var e struct {
			Seq  int64  `json:"seq"`
			Name string `json:"name"`
		}
		require.NoError(b.t, json.Unmarshal([]byte(line), &e))
		names = append(names, fmt.Sprint(e.Seq, e.Name))
	}
	for _, e := range events {
		stored = append(stored, fmt.Sprint(e.Seq, e.Name))
	}
	assert.Equal(b.t, stored, names)
	assert.Contains(b.t, names[len(names)-1], "pipeline.session_complete")
}

// AP-10, AP-11, AP-12, AP-13: abort ends the session, continue and nothing go on, and a false condition skips.
func TestActionsThatFail(t *testing.T) {
	for name, tc := range map[string]struct {
		actions string
		reason  pipeline.Reason
		want    []string
	}{
		"abort": {"{type: shell, await: true, on_failure: abort, command: 'exit 1'}", pipeline.Aborted,
			[]string{"work 1", "end aborted"}},
		"continue": {"{type: shell, await: true, on_failure: continue, command: 'exit 1'}", pipeline.Completed,
			[]string{"work 1", "later failed", "work 2", "later failed", "end completed"}},
		"nothing said": {"{type: shell, await: true, command: 'exit 1'}", pipeline.Completed,
			[]string{"work 1", "later failed", "work 2", "later failed", "end completed"}},
		"a false condition": {"{type: shell, await: true, on_failure: abort, command: 'exit 1', when: '${ITERATION} > 5'}", pipeline.Completed,
			[]string{"work 1", "later ", "work 2", "later ", "end completed"}},
		"a decision": {"{id: enough, decision: stop, reason: enough, when: '${ITERATION} == 2'}", pipeline.Aborted,
			[]string{"work 1", "later ", "work 2", "end aborted"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			s := b.run("name: p\nstages:\n" + counted("work", 2) + `
hooks:
  on_iteration_complete:
    - ` + tc.actions + `
    - {type: shell, await: true, command: 'echo "later $LAST_HOOK_STATUS" >> log'}
  on_session_complete:
    - {type: shell, await: true, command: 'echo end completed >> log', when: 'pipeline.reason == "completed"'}
    - {type: shell, await: true, command: 'echo end aborted >> log', when: 'pipeline.reason == "aborted"'}
`)
			assert.Equal(t, tc.reason, s.Reason, s.Error)
			assert.Equal(t, tc.want, b.lines("log"))
		})
	}
}

// Each type of termination ends its stage, and so does the maximum.
func TestTermination(t *testing.T) {
	const decides = `echo "{\"decision\":\"$([ $ITERATION -ge 2 ] && echo stop || echo continue)\",\"reason\":\"seen\"}" > "$STATUS"`
	for name, tc := range map[string]struct {
		command, termination string
		iterations           int
		reason               pipeline.Reason
		failure              string
	}{
		"a queue":                     {"sed -i 1d ../todo", "{type: queue, command: [cat, ../todo]}", 3, pipeline.Completed, ""},
		"a queue after white space":   {"true", "{type: queue, command: [cat, ../late]}", 4, pipeline.MaxIterations, ""},
		"a queue that is empty":       {"true", "{type: queue, command: ['true']}", 0, pipeline.Completed, ""},
		"a queue that fails":          {"true", "{type: queue, command: [sh, -c, 'echo no queue >&2; exit 2']}", 0, pipeline.Failed, "sh ended with exit code 2: no queue"},
		"a queue without a program":   {"true", "{type: queue, command: [./todo-list]}", 0, pipeline.Failed, "no such file"},
		"a queue in a file":           {"sed -i 1d ../todo", "{type: queue, file: ../todo}", 3, pipeline.Completed, ""},
		"a queue in an empty file":    {"true", "{type: queue, file: ../blank}", 0, pipeline.Completed, ""},
		"a queue without its file":    {"true", "{type: queue, file: todo.txt}", 0, pipeline.Failed, "todo.txt: no such file"},
		"a maximum of time":           {"sleep 60", "{type: judgment}\n    max_time: 1ms", 1, pipeline.MaxIterations, ""},
		"a judgment":                  {decides, "{type: judgment}", 3, pipeline.Completed, ""},
		"a judgment, confirmed once":  {decides, "{type: judgment, confirmations: 1}", 2, pipeline.Completed, ""},
		"a judgment that never comes": {"true", "{type: judgment}", 4, pipeline.MaxIterations, ""},
		"an unknown decision":         {`echo '{"decision":"perhaps"}' > "$STATUS"`, "{type: judgment}", 1, pipeline.Failed, `unknown decision "perhaps": expected continue or stop`},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.write("todo", "a\nb\nc\n")
			b.write("blank", strings.Repeat(" \n", 50_000))
			b.write("late", strings.Repeat(" \n", 50_000)+"item")
			command, err := json.Marshal([]string{"sh", "-c", tc.command})
			require.NoError(t, err)
			s := b.run("name: p\nstages:\n  - name: work\n    command: {argv: " + string(command) + "}\n    max_iterations: 4\n    termination: " + tc.termination)
			assert.Equal(t, tc.reason, s.Reason, s.Error)
			assert.Contains(t, s.Error, tc.failure)
			assert.Len(t, b.iterations(s.Run), tc.iterations)
		})
	}
}

// Changes are seen also where the directory of the session is in the workspace.
func TestChangesBesideASession(t *testing.T) {
	b := newBench(t)
	job, err := b.load("name: p\nstages: [{name: a, command: {argv: [touch, new]}, termination: {type: fixed, iterations: 1}}]\n" +
		"hooks: {on_iteration_complete: {type: shell, await: true, command: 'echo \"$CHANGED_FILES\" > changed'}}").
		Job(pipeline.SessionOptions{Name: "demo", Dir: b.path("work", "demo"), Workspace: b.path("work")})
	require.NoError(t, err)
	_, err = b.store.Submit(t.Context(), job)
	require.NoError(t, err)
	require.NoError(t, b.worker().ExecuteReady(t.Context()))
	assert.Equal(t, []string{"new"}, b.lines("changed"))
}

// A session that cannot go on calls the hooks at its end, too.
func TestTheEndOfABrokenSession(t *testing.T) {
	b := newBench(t)
	s := b.run(`
name: p
stages: [{name: work, command: {argv: ["true"]}, termination: {type: queue, file: none.txt}}]
hooks: {on_session_complete: {type: shell, await: true, command: echo end >> log, when: 'pipeline.reason == "failed"'}}
`)
	assert.Equal(t, pipeline.Failed, s.Reason)
	assert.Contains(t, s.Error, "none.txt")
	assert.Equal(t, []string{"end"}, b.lines("log"))
}

// A prompt has the last outputs of stages in and around a parallel block.
func TestOutputsAroundABlock(t *testing.T) {
	b := newBench(t)
	b.driver = agent.DriverFunc(func(context.Context, agent.State) (agent.Step, error) {
		return agent.Step{Message: agent.Assistant("read")}, nil
	})
	s := b.run(`
name: p
stages:
  - {name: plan, command: {argv: [sh, -c, 'echo "plan $ITERATION"']}, termination: {type: fixed, iterations: 2}}
  - name: both
    parallel:
      - {name: left, command: {argv: [echo, "of left"]}, termination: {type: fixed, iterations: 1}}
      - {name: right, agent: reader, prompt: "Read ${outputs.plan}.", termination: {type: fixed, iterations: 1}}
  - {name: sum, agent: reader, prompt: "Sum ${outputs.left}, ${outputs.right}, ${outputs.sum}.", termination: {type: fixed, iterations: 1}}
`)
	require.Equal(t, pipeline.Completed, s.Reason, s.Error)
	assert.Equal(t, []string{"Read plan 2.", "Sum of left, read, ."}, b.asked)
}

// A stage is complete when its agents have used its maximum cost, and the next stage begins.
func TestMaximumCost(t *testing.T) {
	b := newBench(t)
	b.driver = agent.DriverFunc(func(context.Context, agent.State) (agent.Step, error) {
		return agent.Step{Message: agent.Assistant("done"), Usage: agent.Usage{OutputTokens: 10, Cost: mo.Some(0.4)}}, nil
	})
	s := b.run(`
name: p
stages:
  - {name: work, agent: worker, prompt: Work., termination: {type: judgment}, max_cost: 1}
  - {name: review, agent: reviewer, prompt: Review., termination: {type: fixed, iterations: 2}, max_cost: 10}
`)
	assert.Equal(t, pipeline.MaxIterations, s.Reason, s.Error)
	assert.Equal(t, []string{"Work.", "Work.", "Work.", "Review.", "Review."}, b.asked)
	assert.InDelta(t, 2.0, s.Cost, 1e-9)
}

// An iteration that fails because the maximum cost of its stage is used up fails neither the session nor completes the stage as planned.
func TestAnIterationThatUsesUpItsStage(t *testing.T) {
	b := newBench(t)
	b.driver = agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
		usage := agent.Usage{OutputTokens: 10, Cost: mo.Some(0.4)}
		if s.Run().Stage == "review" {
			return agent.Step{Message: agent.Assistant("done"), Usage: usage}, nil
		}
		call := agent.ToolCall{ID: fmt.Sprint("call_", s.RunStepCount()), Name: "decide", Arguments: `{"decision":"stop","reason":"because"}`}
		return agent.Step{Message: agent.Assistant("", call), Usage: usage}, nil
	})
	for _, termination := range []string{"{type: fixed, iterations: 1}", "{type: judgment, confirmations: 1}"} {
		s := b.run("name: p\nstages:\n  - {name: work, agent: worker, prompt: Work., max_cost: 1, termination: " + termination + "}\n" +
			"  - {name: review, agent: reviewer, prompt: Review., termination: {type: fixed, iterations: 1}}\n" +
			"hooks: {on_error: {type: shell, await: true, command: 'echo \"$STAGE\" >> log'}}")
		assert.Equal(t, pipeline.MaxIterations, s.Reason, s.Error)
		assert.Equal(t, "review", s.Stage, "the next stage ran")
	}
	assert.Equal(t, []string{"work", "work"}, b.lines("log"), "the iterations have failed")
}

// AP-75: if the time limits of a hook and its stage pass together, the error names both.
func TestTwoTimeLimits(t *testing.T) {
	b := newBench(t)
	s := b.run(`
name: p
stages:
  - name: work
    command: {argv: [sleep, "60"]}
    termination: {type: judgment}
    max_time: 1ms
hooks:
  on_error: {id: notify, type: shell, await: true, command: sleep 60, timeout: 20ms, on_failure: abort}
`)
	assert.Equal(t, pipeline.Aborted, s.Reason)
	assert.Contains(t, s.Error, "notify")
	assert.Contains(t, s.Error, "20ms")
	assert.Contains(t, s.Error, "; the stage has used its maximum time of 1ms")
}

// An agent gets its prompt with variables, what hooks add, and a tool to decide with.
func TestAgents(t *testing.T) {
	b := newBench(t)
	b.driver = agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
		if s.RunStepCount() > 0 {
			return agent.Step{Message: agent.Assistant([]string{"one", "two"}[s.Run().Iteration-1])}, nil
		}
		decision := []string{"continue", "stop"}[s.Run().Iteration-1]
		return agent.Step{Message: agent.Assistant("", agent.ToolCall{ID: "call_1", Name: "decide", Arguments: `{"decision":"` + decision + `","reason":"because"}`})}, nil
	})
	s := b.run(`
name: p
stages:
  - name: review
    agent: reviewer
    prompt: "Iteration ${ITERATION} of ${SESSION}, last: ${LAST_DECISION}, ${UNKNOWN} ${args.x}"
    termination: {type: judgment, confirmations: 1}
hooks:
  on_iteration_start: {id: hint, decision: add_context, context: Be brief., when: '${ITERATION} == 2'}
  on_iteration_complete: {type: shell, await: true, command: 'echo "$ITERATION $LAST_DECISION $(cat "$STAGE_OUTPUTS")" >> log', when: '${ITERATION} == 1'}
`)
	state, err := durable.Load(t.Context(), b.store, s.IterationRun)
	require.NoError(t, err)
	require.Equal(t, pipeline.Completed, s.Reason, "%s %q\n%s", s.Error, b.asked, agenttest.Transcript(state))
	assert.Equal(t, []string{"Iteration 1 of demo, last: , ${UNKNOWN} ${args.x}", "Iteration 2 of demo, last: continue, ${UNKNOWN} ${args.x} + Be brief."}, b.asked)
	assert.Equal(t, []string{"stop", "because"}, []string{s.Decision, s.Why})
	assert.Equal(t, []string{"1 continue one"}, b.lines("log"))
	assert.Equal(t, 4, s.Steps)
	assert.Equal(t, []any{"review", 2, agent.SessionID("demo")}, []any{state.Run().Stage, state.Run().Iteration, state.Session()})
}

// AP-53, AP-54: actions get all variables, and the status of the action before them at the same point.
func TestVariables(t *testing.T) {
	b := newBench(t)
	b.write("work/old", "x")
	s := b.run(`
name: p
stages:
  - name: work
    command: {argv: [sh, -c, 'echo x > new; rm -f old; echo more >> "$PROGRESS"; test -e "$CTX"; echo "{\"decision\":\"stop\"}" > "$STATUS"']}
    termination: {type: judgment, confirmations: 2}
  - name: last
    command: {argv: ["true"]}
    termination: {type: fixed, iterations: 1}
hooks:
  on_iteration_start: {type: shell, await: true, command: 'echo "start $LAST_HOOK_STATUS" >> log'}
  on_iteration_complete:
    - {type: shell, await: true, command: 'exit 1'}
    - {type: shell, await: true, command: 'env | grep -E "^(SESSION|STAGE|NEXT_STAGE|ITERATION|MAX_ITERATIONS|LAST_DECISION|LAST_HOOK_STATUS|CHANGED_FILES|ERROR|HOOK_RESPONSE|SPAWN_OUTPUT|CALLBACK_URL)=" | sort >> log; echo "$CHANGED_FILES" | tail -1 >> log', when: '${STAGE} == "work" && ${ITERATION} == 1'}
    - {type: shell, await: true, command: 'ls "$PROGRESS" "$STATUS" "$CTX" "$STAGE_OUTPUTS" > /dev/null && echo "$TIMESTAMP" | grep -Eq "^[0-9]{4}-[0-9]{2}-[0-9]{2}T" && echo files >> log', when: '${STAGE} == "work" && ${ITERATION} == 1'}
    - {type: shell, await: true, command: 'echo listed >> log', when: '"new" in pipeline.changed_files && ${STAGE} == "work" && ${ITERATION} == 1'}
`)
	require.Equal(t, pipeline.Completed, s.Reason, s.Error)
	assert.Equal(t, []string{
		"start ", "CALLBACK_URL=", "CHANGED_FILES=log", "ERROR=", "HOOK_RESPONSE=", "ITERATION=1", "LAST_DECISION=stop", "LAST_HOOK_STATUS=failed",
		"MAX_ITERATIONS=25", "NEXT_STAGE=last", "SESSION=demo", "SPAWN_OUTPUT=", "STAGE=work", "old", "files", "listed", "start ", "start ",
	}, b.lines("log"))
}

// AP-56, AP-57: the stage's hooks come first, then the pipeline's, then the user's. A stage and a pipeline can switch outer hooks
// off.
func TestLayers(t *testing.T) {
	at := func(who, more string) string {
		return more + "hooks: {on_iteration_complete: {type: shell, await: true, command: 'echo " + who + " >> log'}}\n"
	}
	for name, tc := range map[string]struct {
		stage, pipeline string
		want            []string
	}{
		"all":                 {"", "", []string{"stage", "pipeline", "global", "pipeline", "global"}},
		"no global: stage":    {"disable_global_hooks: true\n", "", []string{"stage", "pipeline", "pipeline", "global"}},
		"no global: pipeline": {"", "disable_global_hooks: true\n", []string{"stage", "pipeline", "pipeline"}},
		"no pipeline":         {"disable_pipeline_hooks: true\n", "", []string{"stage", "global", "pipeline", "global"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.global = b.write("hooks.yaml", at("global", ""))
			stage := "    " + strings.ReplaceAll(strings.TrimSpace(at("stage", tc.stage)), "\n", "\n    ") + "\n"
			quiet := "    command: {argv: ['true']}\n    termination: {type: fixed, iterations: 1}\n"
			s := b.run(at("pipeline", tc.pipeline) + "name: p\nstages:\n  - name: a\n" + quiet + stage + "  - name: b\n" + quiet)
			require.Equal(t, pipeline.Completed, s.Reason, s.Error)
			assert.Equal(t, tc.want, b.lines("log"))
		})
	}
}

// A cancelled session ends as cancelled, and so does its iteration.
func TestCancel(t *testing.T) {
	b := newBench(t)
	run := b.submit("name: p\nstages:\n  - name: work\n    command: {argv: [sh, -c, 'echo began >> log; sleep 600']}\n    termination: {type: fixed, iterations: 1}\n" + noting(""))
	ran := make(chan error, 1)
	w := b.worker()
	go func() { ran <- w.ExecuteReady(t.Context()) }()
	require.Eventually(t, func() bool { return slices.Contains(b.lines("log"), "began") }, time.Minute, 10*time.Millisecond)
	require.NoError(t, b.store.Signal(t.Context(), run.ID, durable.Signal{Kind: durable.SignalCancel, Text: "not needed"}))
	require.NoError(t, b.worker().ExecuteReady(t.Context())) // the session waits: it is ready now
	require.NoError(t, <-ran)
	s := b.status(run.ID)
	assert.Equal(t, durable.StatusCancelled, s.Status)
	assert.Equal(t, pipeline.Cancelled, s.Reason)
	assert.Equal(t, durable.StatusCancelled, b.iterations(run.ID)[0].Status)
	assert.Equal(t, []string{"on_session_start ", "on_iteration_start ", "began"}, b.lines("log"))
}

// The limits of a pipeline hold for its sessions, and a prompt can have the inputs of the session and the outputs of stages.
func TestInputsOutputsAndLimits(t *testing.T) {
	b := newBench(t)
	b.driver = agenttest.Script(agenttest.Say("done"))
	p := b.load("name: p\nlimits: {steps: 5, time: 1h}\nstages:\n" + counted("plan", 2) +
		"  - {name: a, agent: a, prompt: '${inputs.what}: ${outputs.plan}, ${outputs.a}', termination: {type: fixed, iterations: 9}}\n")
	job, err := p.Job(pipeline.SessionOptions{
		Name: "demo", Dir: b.path("sessions", "demo"), Workspace: b.path("work"), Inputs: json.RawMessage(`{"what": "Now do", "n": 3}`),
	})
	require.NoError(t, err)
	runs, err := b.store.Submit(t.Context(), job)
	require.NoError(t, err)
	require.NoError(t, b.worker().ExecuteReady(t.Context()))
	assert.Equal(t, pipeline.LimitReached, b.status(runs[0].ID).Reason)
	assert.Equal(t, 5, b.status(runs[0].ID).Steps)
	assert.Equal(t, "Now do: made 2, ", b.asked[0])
	assert.Len(t, b.asked, 5)
}

// The limits of a session count what its iterations have used.
func TestLimits(t *testing.T) {
	b := newBench(t)
	b.driver = agenttest.Script(agenttest.Say("one"), agenttest.Say("two"), agenttest.Say("three"))
	job, err := b.load("name: p\nstages:\n  - {name: a, agent: a, prompt: go, termination: {type: fixed, iterations: 9}}").Job(pipeline.SessionOptions{
		Name: "demo", Dir: b.path("sessions", "demo"), Workspace: b.path("work"), Limits: agent.Limits{Steps: 2},
	})
	require.NoError(t, err)
	runs, err := b.store.Submit(t.Context(), job)
	require.NoError(t, err)
	require.NoError(t, b.worker().ExecuteReady(t.Context()))
	s := b.status(runs[0].ID)
	assert.Equal(t, pipeline.LimitReached, s.Reason, s.Error)
	assert.Equal(t, 2, s.Steps)
	assert.Len(t, b.iterations(s.Run), 2)
}

// AP-66, AP-67: a paused session stops after its iteration, and added context goes to the next one.
func TestPause(t *testing.T) {
	b := newBench(t)
	run := b.submit("name: p\nstages:\n  - name: work\n    command: {argv: [sh, -c, 'echo \"$ITERATION $(grep -o \"be brief\")\" >> log; [ $ITERATION != 1 ] || until [ -e go ]; do sleep 0.01; done']}\n    termination: {type: fixed, iterations: 3}\n")
	ran := make(chan error, 1)
	w := b.worker()
	go func() { ran <- w.ExecuteReady(t.Context()) }()
	require.Eventually(t, func() bool { return len(b.lines("log")) == 1 }, time.Minute, 10*time.Millisecond)
	require.NoError(t, b.store.Signal(t.Context(), run.ID, durable.Signal{Kind: durable.SignalPause}))
	b.write("work/go", "")
	require.NoError(t, <-ran)
	s := b.status(run.ID)
	assert.Equal(t, durable.StatusWaiting, s.Status)
	assert.True(t, s.Paused)
	assert.Len(t, b.lines("log"), 1)
	require.NoError(t, b.store.Signal(t.Context(), run.ID, durable.Signal{Kind: durable.SignalResume, Text: "be brief"}))
	require.NoError(t, b.worker().ExecuteReady(t.Context()))
	assert.Equal(t, pipeline.Completed, b.status(run.ID).Reason)
	assert.Equal(t, []string{"1 ", "2 be brief", "3 "}, b.lines("log"))
}

// AP-68, AP-72: an action that runs out of time adds no context, and one that panics has failed. The session continues.
func TestBrokenActions(t *testing.T) {
	b := newBench(t)
	b.host.Funcs = map[string]action.Body{
		"late": func(ctx context.Context, _ *action.Request) (*action.Decision, error) {
			<-ctx.Done()
			return &action.Decision{Decision: hooks.Allow, Context: "too late"}, nil
		},
		"panics": func(context.Context, *action.Request) (*action.Decision, error) { panic("broken") },
	}
	s := b.run("name: p\nstages:\n  - name: work\n    command: {argv: [sh, -c, 'grep -o \"too late\" >> log; echo \"work $ITERATION\" >> log']}\n    termination: {type: fixed, iterations: 2}\n" + `
hooks:
  on_iteration_start:
    - {type: func, func: late, await: true, timeout: 20ms}
    - {type: shell, await: true, command: 'echo "late $LAST_HOOK_STATUS" >> log'}
    - {type: func, func: panics, await: true}
    - {type: shell, await: true, command: 'echo "panics $LAST_HOOK_STATUS" >> log'}
`)
	require.Equal(t, pipeline.Completed, s.Reason, s.Error)
	assert.Equal(t, []string{"late failed", "panics failed", "work 1", "late failed", "panics failed", "work 2"}, b.lines("log"))
}

// AP-74: two sessions run at the same time in one worker.
func TestTwoSessions(t *testing.T) {
	b := newBench(t)
	p := b.load("name: p\nstages:\n  - name: meet\n    command: {argv: [sh, -c, 'echo $SESSION >> log; until [ $(wc -l < log) -ge 2 ]; do sleep 0.01; done; echo \"$SESSION $ITERATION\" >> \"$PROGRESS\"']}\n" +
		"    termination: {type: fixed, iterations: 2}\nhooks: {on_iteration_complete: {type: shell, await: true, command: 'echo \"after $SESSION $ITERATION\" >> \"$PROGRESS\"'}}\n")
	var jobs []durable.Job
	for _, name := range []string{"one", "two"} {
		job, err := p.Job(pipeline.SessionOptions{Name: name, Dir: b.path("sessions", name), Workspace: b.path("work")})
		require.NoError(t, err)
		jobs = append(jobs, job)
	}
	runs, err := b.store.Submit(t.Context(), jobs...)
	require.NoError(t, err)
	require.NoError(t, b.worker().ExecuteReady(t.Context()))
	for i, name := range []string{"one", "two"} {
		require.Equal(t, pipeline.Completed, b.status(runs[i].ID).Reason)
		text, err := os.ReadFile(b.path("sessions", name, "stages", "01-meet", "progress.md"))
		require.NoError(t, err)
		assert.Equal(t, strings.ReplaceAll("X 1\nafter X 1\nX 2\nafter X 2\n", "X", name), string(text))
	}
}
