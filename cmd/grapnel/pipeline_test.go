//go:build unix

package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A session whose process was killed continues when it is started again: nothing that was done is done again.
func TestAKilledPipeline(t *testing.T) {
	t.Parallel()
	s := modelOf(t, `{"text": "not asked"}`)
	p := command(t, s, "pipeline", "start", "pipeline.yaml", "--store", "runs.db")
	p.write("pipeline.yaml", `
name: p
stages:
  - name: work
    command: {argv: [sh, -c, 'echo "$GRAPNEL_IDEMPOTENCY_KEY" >> keys.txt; [ $ITERATION != 2 ] || test -e begun || { echo $$ > begun; sleep 60; }; echo "work $ITERATION" >> made.txt']}
    termination: {type: fixed, iterations: 3}
hooks:
  on_iteration_complete: {type: shell, await: true, command: 'echo "complete $ITERATION" >> made.txt'}
`)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	require.NoError(t, p.cmd.Start())
	killAtWork(t, p)
	q := p.next("pipeline", "start", "pipeline.yaml", "--store", "runs.db")
	require.Equal(t, 0, q.run(), q.written())
	assert.Equal(t, "work 1\ncomplete 1\nwork 2\ncomplete 2\nwork 3\ncomplete 3\n", p.read("made.txt"))
	keys := strings.Fields(p.read("keys.txt"))
	require.Len(t, keys, 4)
	assert.Equal(t, keys[1], keys[2], "the iteration that was cut off has one key")
	q = p.next("pipeline", "status", "p", "--store", "runs.db")
	require.Equal(t, 0, q.run(), q.written())
	assert.Contains(t, q.written(), "completed (completed)")
}

// AP-69: at a terminal, a gate of a person is asked there; without one, the session waits for an answer from elsewhere.
func TestAGateAtATerminal(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]struct {
		code int
		says string
	}{"y": {0, "session ended: completed"}, "n": {3, "session ended: aborted"}} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			p := command(t, modelOf(t, `{"text": "not asked"}`), "pipeline", "start", "pipeline.yaml", "--store", "runs.db")
			p.write("pipeline.yaml", `
name: p
stages: [{name: a, command: {argv: ["true"]}, termination: {type: fixed, iterations: 1}}]
hooks: {on_stage_complete: {type: gate, by: person, reason: Is it good?, await: true}}
`)
			p.atTerminal()
			p.expect("Is it good? [y/n] ")
			assert.Contains(t, p.written(), "waiting after iteration 1 of 1")
			assert.Regexp(t, `grapnel pipeline approve p [0-9a-f]{12} --store=runs\.db`, p.written())
			p.press("perhaps\r")
			p.press(answer + "\r")
			p.expect(want.says)
			assert.Equal(t, want.code, p.code(), p.written())
		})
	}
}

// The gates of parallel stages, and of pipelines that hooks start, are asked at the terminal, too, one after the other. The events say
// where they are.
func TestGatesBelowASession(t *testing.T) {
	t.Parallel()
	p := command(t, modelOf(t, `{"text": "not asked"}`), "pipeline", "start", "pipeline.yaml", "--store", "runs.db")
	p.write("pipeline.yaml", `
name: p
stages:
  - name: both
    parallel:
      - name: lint
        command: {argv: ["true"]}
        termination: {type: fixed, iterations: 1}
        hooks: {on_stage_complete: {type: gate, by: person, reason: Is lint good?, await: true}}
      - name: test
        command: {argv: ["true"]}
        termination: {type: fixed, iterations: 1}
        hooks: {on_iteration_complete: {type: spawn, pipeline: review}}
`)
	p.write("review.yaml", `
name: review
stages: [{name: r, command: {argv: ["true"]}, termination: {type: fixed, iterations: 1}}]
hooks: {on_stage_complete: {type: gate, by: person, reason: Is the review good?, await: true}}
`)
	q := p.next("pipeline", "start", "pipeline.yaml", "--store", "runs.db", "--no-wait")
	require.Equal(t, 6, q.run(), q.written())
	for _, line := range []string{"lint 1: waits for a gate: approval: Is lint good?", "review/r 1: waits for a gate: approval: Is the review good?"} {
		assert.Contains(t, q.written(), line)
	}
	q = p.next("pipeline", "list", "--store", "runs.db")
	require.Equal(t, 0, q.run(), q.written())
	assert.Regexp(t, `p +p +waiting +both`, q.written())
	q = p.next("pipeline", "status", "p", "--store", "runs.db")
	require.Equal(t, 0, q.run(), q.written())
	assert.Contains(t, q.written(), "no process runs it: grapnel pipeline resume p --store=runs.db")

	p.atTerminal()
	p.expect("good? [y/n] ")
	first, second := "Is lint good?", "Is the review good?"
	if strings.Contains(p.written(), second+" [y/n]") {
		first, second = second, first
	}
	p.expect(first + " [y/n] ")
	q = p.next("pipeline", "list", "--store", "runs.db")
	require.Equal(t, 0, q.run(), q.written())
	assert.Regexp(t, `p +p +waiting +both`, q.written())
	p.press("y\r")
	p.expect(second + " [y/n] ")
	p.press("y\r")
	p.expect("session ended: completed")
	assert.Equal(t, 0, p.code(), p.written())

	q = p.next("pipeline", "logs", "p", "--store", "runs.db")
	require.Equal(t, 0, q.run(), q.written())
	for _, line := range []string{"lint 1: complete", "review/r 1: complete", "review: session ended: completed"} {
		assert.Contains(t, q.written(), line)
	}
}

// A question that is answered elsewhere is not asked any longer. A session that is killed is suspended.
func TestAGateAnsweredElsewhere(t *testing.T) {
	t.Parallel()
	p := command(t, modelOf(t, `{"text": "not asked"}`), "pipeline", "start", "pipeline.yaml", "--store", "runs.db")
	p.write("pipeline.yaml", `
name: p
stages:
  - {name: a, command: {argv: ["true"]}, termination: {type: fixed, iterations: 1}}
  - {name: b, command: {argv: [sh, -c, 'echo b >> began; exec sleep 600']}, termination: {type: fixed, iterations: 1}}
hooks: {on_stage_complete: {type: gate, by: person, reason: Is it good?, await: true, when: "${STAGE} == 'a'"}}
`)
	p.atTerminal()
	p.expect("Is it good? [y/n] ")
	q := p.next("pipeline", "approve", "p", p.card("", "--store", "runs.db"), "--store", "runs.db")
	require.Equal(t, 0, q.run(), q.written())
	p.waitUntil("began", func(text string) bool { return text == "b\n" })
	state := func() string {
		q := p.next("pipeline", "list", "--store", "runs.db")
		require.Equal(t, 0, q.run(), q.written())
		return strings.Fields(strings.Split(q.written(), "\n")[1])[2]
	}
	assert.Equal(t, "running", state())
	p.signal(syscall.SIGKILL)
	p.code()
	assert.Equal(t, "suspended", state())
	q = p.next("pipeline", "pause", "p", "--store", "runs.db")
	require.Equal(t, 0, q.run(), q.written())
	assert.Contains(t, q.written(), "Session p is paused.")
	assert.Equal(t, "paused", state())
	q = p.next("pipeline", "abort", "p", "--store", "runs.db")
	require.Equal(t, 0, q.run(), q.written())
	assert.Contains(t, q.written(), "Session p has ended as cancelled.")
	assert.Equal(t, "b\n", p.read("began"), "the iteration does not begin again to be cancelled")
	assert.Equal(t, "cancelled", state())
}

// At a terminal, a view shows the session. Ctrl-C suspends the session; the view stays, and the cursor is visible again.
func TestAPipelineAtATerminal(t *testing.T) {
	t.Parallel()
	const hide, show = "\x1b[?25l", "\x1b[?25h"
	for _, kind := range []string{"xterm", "dumb"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := command(t, modelOf(t, `{"text": "not asked"}`), "pipeline", "start", "pipeline.yaml", "--store", "runs.db")
			p.cmd.Env = append(p.cmd.Env, "TERM="+kind)
			p.write("pipeline.yaml", `
name: p
stages:
  - {name: first, command: {argv: ["true"]}, termination: {type: fixed, iterations: 2}}
  - {name: second, command: {argv: [sleep, "600"]}, termination: {type: fixed, iterations: 1}}
`)
			p.atTerminal()
			if kind == "dumb" {
				p.expect("second 1: started")
				assert.NotContains(t, p.written(), "\x1b")
				p.signal(syscall.SIGKILL)
				p.code()
				return
			}
			p.expect("running iteration 1 of 1")
			assert.Contains(t, p.written(), "done after 2 iterations")
			p.press("\x03")
			p.expect("suspended in iteration 1 of 1")
			assert.Equal(t, 7, p.code(), p.written())
			assert.Contains(t, p.written(), "Suspending")
			assert.Greater(t, strings.LastIndex(p.written(), show), strings.LastIndex(p.written(), hide))

			q := p.next("pipeline", "status", "p", "--watch", "--store", "runs.db")
			q.atTerminal()
			q.expect("suspended in iteration 1 of 1")
			q.press("\x03")
			assert.Equal(t, 130, q.code(), q.written())
			assert.Greater(t, strings.LastIndex(q.written(), show), strings.LastIndex(q.written(), hide))
		})
	}
}

// What was typed while the view was drawn is no answer to a gate.
func TestTypedBeforeAGate(t *testing.T) {
	t.Parallel()
	p := command(t, modelOf(t, `{"text": "not asked"}`), "pipeline", "start", "pipeline.yaml", "--store", "runs.db")
	p.write("pipeline.yaml", `
name: p
stages: [{name: a, command: {argv: [sh, -c, 'until test -e typed; do sleep 0.01; done']}, termination: {type: fixed, iterations: 1}}]
hooks: {on_stage_complete: {type: gate, by: person, reason: Is it good?, await: true}}
`)
	p.atTerminal()
	p.expect("running iteration 1 of 1")
	p.press("y\r")
	p.expect("y\r\n") // it waits in the terminal
	p.write("typed", "")
	p.expect("Is it good? [y/n] ")
	p.press("n\r")
	p.expect("session ended: aborted")
	assert.Equal(t, 3, p.code(), p.written())
}

// A pipeline that a hook has started without awaiting it, and whose session has ended, is in lists, and goes on in the next process of the
// folder. Starting the session again names it.
func TestAPipelineLeftBehind(t *testing.T) {
	t.Parallel()
	for name, next := range map[string][]string{
		"another session": {"start", "other.yaml"}, "by its name": {"resume", "p.work.on_stage_complete-1-left"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := modelOf(t, `{"text": "not asked"}`)
			p := command(t, s, "pipeline", "start", "p.yaml", "--store", "runs.db")
			const stage = "stages: [{name: work, command: {argv: [sh, -c, '%s']}, termination: {type: fixed, iterations: 1}}]\n"
			p.write("p.yaml", "name: p\n"+fmt.Sprintf(stage, "true")+"hooks: {on_stage_complete: {id: left, type: spawn, pipeline: slow, await: false}}\n")
			p.write("other.yaml", "name: other\n"+fmt.Sprintf(stage, "true"))
			p.write("slow.yaml", "name: slow\n"+fmt.Sprintf(stage, `test -e begun || { until grep -q completed .grapnel/pipelines/p/status.json; do sleep 0.05; done; `+
				`echo $$ > begun; sleep 60; }; echo made >> made.txt`))
			p.cmd.Stdout, p.cmd.Stderr = p, p
			require.NoError(t, p.cmd.Start())
			killAtWork(t, p)

			q := p.next("pipeline", "list", "--store", "runs.db")
			require.Equal(t, 0, q.run(), q.written())
			assert.Regexp(t, `(?m)^p\.work\.on_stage_complete-1-left +slow +suspended`, q.written())
			assert.Regexp(t, `(?m)^p +p +completed`, q.written())
			q = p.next("pipeline", "start", "p.yaml", "--store", "runs.db")
			require.Equal(t, 2, q.run(), q.written())
			assert.Contains(t, q.written(), `grapnel pipeline resume p.work.on_stage_complete-1-left --store=runs.db`)

			q = p.next(append([]string{"pipeline"}, append(next, "--store", "runs.db")...)...)
			require.Equal(t, 0, q.run(), q.written())
			assert.Equal(t, "made\n", p.read("made.txt"))
			q = p.next("pipeline", "list", "--store", "runs.db")
			require.Equal(t, 0, q.run(), q.written())
			assert.Regexp(t, `(?m)^p\.work\.on_stage_complete-1-left +slow +completed`, q.written())
		})
	}
}

// Warnings of a check are on standard error, and do not change the exit code.
func TestPipelineCheckWarns(t *testing.T) {
	t.Parallel()
	s := modelOf(t, `{"text": "not asked"}`)
	p := command(t, s, "pipeline", "check", "p.yaml")
	p.write("p.yaml", "name: p\nstages: [{name: work, command: {argv: [x]}, termination: {type: fixed, iterations: 1}}]\n"+
		"hooks:\n  on_session_complete: {type: shell, command: echo completed}\n")
	require.Equal(t, 0, p.run(), p.written())
	assert.Contains(t, p.written(), "grapnel: warning: ")
	assert.Contains(t, p.written(), "p.yaml:4:")
	assert.Contains(t, p.written(), "pipeline.reason")
}
