package pipeline

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/sqlite"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/pipeline"
)

var viewTime = time.Date(2026, 11, 26, 12, 0, 0, 0, time.Local)

// ago returns the time some seconds before viewTime.
func ago(seconds float64) time.Time {
	return viewTime.Add(-time.Duration(seconds * float64(time.Second)))
}

// runningSession is a session in a parallel block.
func runningSession() *sessionFrame {
	return &sessionFrame{now: viewTime, SessionProgress: pipeline.SessionProgress{
		Status: pipeline.Status{
			Session: "friday", Pipeline: "release", Status: durable.StatusWaiting, Stage: "checks", Steps: 12, Tokens: 34512, Cost: 0.25,
			Parts: []pipeline.Status{{Session: "friday", Stage: "lint", Steps: 1, Tokens: 100, Cost: 0.01}, {Session: "friday", Stage: "test"}},
		},
		Began: ago(75), Limits: agent.Limits{Steps: 200, Cost: 5},
		Stages: []pipeline.StageProgress{
			{Name: "plan", State: pipeline.StageComplete, Iteration: 2, MaxIterations: 25, Note: "decided: the plan is complete"},
			{Name: "work", State: pipeline.StageComplete, Iteration: 1, MaxIterations: 1, Note: "1 iteration"},
			{Name: "checks", State: pipeline.StageRunning, Note: "when all of its stages have ended", Parts: []pipeline.StageProgress{
				{Name: "lint", State: pipeline.StageComplete, Iteration: 2, MaxIterations: 2, Note: "2 iterations"},
				{Name: "test", State: pipeline.StageRunning, Iteration: 3, MaxIterations: 25, IterationBegan: ago(4.5), Steps: 6},
			}},
			{Name: "publish", State: pipeline.StagePending, MaxIterations: 1, Note: "1 iteration"},
			{Name: "announce", State: pipeline.StagePending, MaxIterations: 25, Note: "until it decides to stop, at most 25 iterations"},
		},
		Actions: []pipeline.ActionProgress{
			{Hook: "pipeline.release/SessionStart-1", Point: hooks.SessionStart, Stage: "plan", Began: ago(75), Ended: ago(74.75)},
			{Hook: "pipeline.release/metrics", Point: hooks.IterationComplete, Stage: "work", Iteration: 1, Began: ago(20), Ended: ago(19), Error: "bash ended with exit code 7; stderr: \"no route\nto host\""},
			{Hook: "stage.release/run-tests", Point: hooks.IterationComplete, Stage: "test", Iteration: 2, Began: ago(5), Ended: ago(4.8)},
			{Hook: "pipeline.release/notify", Point: hooks.IterationComplete, Stage: "test", Iteration: 2, Began: ago(5)},
		},
	}}
}

// waitingSession is a session that waits for a person and for a file.
func waitingSession() *sessionFrame {
	return &sessionFrame{now: viewTime, flags: " --store=runs.db", SessionProgress: pipeline.SessionProgress{
		Status: pipeline.Status{
			Session: "first", Pipeline: "first", Status: durable.StatusWaiting, Stage: "collect",
			WaitsFor: []pipeline.WaitingGate{
				{Wait: "gate-1", For: durable.WaitApproval, Hook: "pipeline.first/ok", Reason: "Shall the work on ideas.txt begin?", Deadline: viewTime.Add(90 * time.Minute)},
				{Wait: "gate-2", For: durable.WaitFile, Hook: "pipeline.first/file"},
			},
		},
		Began: ago(7200), Idle: true,
		Stages: []pipeline.StageProgress{
			{Name: "collect", State: pipeline.StageRunning, Iteration: 3, MaxIterations: 25},
			{Name: "work", State: pipeline.StagePending, MaxIterations: 25, Note: "until cat lists nothing, at most 25 iterations"},
		},
		Actions: []pipeline.ActionProgress{{Hook: "pipeline.first/ok", Point: hooks.StageComplete, Stage: "collect", Iteration: 3, Began: ago(60)}},
	}}
}

// endedSession is a session that a hook has aborted.
func endedSession() *sessionFrame {
	return &sessionFrame{now: viewTime, last: true, SessionProgress: pipeline.SessionProgress{
		Status: pipeline.Status{
			Session: "p", Pipeline: "p", Status: durable.StatusStopped, Stage: "a", Reason: pipeline.Aborted,
			Error: "pipeline.p/ok at StageComplete: rejected: not before the release of the library",
		},
		Began: ago(90), Ended: ago(30), Idle: true,
		Stages: []pipeline.StageProgress{{Name: "a", State: pipeline.StageFailed, Iteration: 1, MaxIterations: 2}, {Name: "b", MaxIterations: 3, Note: "3 iterations", State: pipeline.StagePending}},
	}}
}

// renderPlain returns a frame without colours.
func renderPlain(f *sessionFrame, width, height int) string {
	var lines []string
	for _, l := range f.render(width, height) {
		lines = append(lines, l.Paint(false))
	}
	return strings.Join(lines, "\n")
}

func TestPipelineView(t *testing.T) {
	suspended := runningSession()
	suspended.Idle, suspended.last = true, true
	between := waitingSession()
	between.WaitsFor, between.Idle = nil, false
	paused := waitingSession()
	paused.WaitsFor, paused.Paused = nil, true
	for name, tc := range map[string]struct {
		frame         *sessionFrame
		width, height int
		want          string
	}{
		"running": {runningSession(), 100, 30, `
release (friday): running, 1m15s
used: 13 of 200 steps, 34612 tokens, $0.26 of $5.00

✓ plan      done after 2 iterations, decided: the plan is complete
✓ work      done after 1 iteration
▶ checks    running, 1 of 2 stages have ended
  ✓ lint    done after 2 iterations
  ▶ test    running iteration 3 of 25, step 6, 4s
○ publish   not started, 1 iteration
○ announce  not started, until it decides to stop, at most 25 iterations

last hooks
✓ on_session_start #1  succeeded in 250ms  (plan)
✗ metrics              failed: bash ended with exit code 7; stderr: "no route to host"  (work 1)
✓ run-tests            succeeded in 200ms  (test 2)
▶ notify               running, 5s  (test 2)`},
		"small terminal": {runningSession(), 40, 11, `
release (friday): running, 1m15s
used: 13 of 200 steps, 34612 tokens, $0…
✓ plan      done after 2 iterations, de…
✓ work      done after 1 iteration
▶ checks    running, 1 of 2 stages have…
  ✓ lint    done after 2 iterations
  ▶ test    running iteration 3 of 25,…
○ publish   not started, 1 iteration
○ announce  not started, until it decid…
last hooks
▶ notify         running, 5s  (test 2)`},
		"very small terminal": {runningSession(), 30, 6, `
release (friday): running, 1m…
✓ 2 stages done
▶ checks    running, 1 of 2 s…
  ✓ lint    done after 2 iter…
  ▶ test    running iteration…
○ 2 stages not started`},
		"waiting": {waitingSession(), 100, 30, `
first: waiting for an answer, 2h00m

▶ collect  waiting after iteration 3 of 25
○ work     not started, until cat lists nothing, at most 25 iterations

waits for a person: Shall the work on ideas.txt begin?
  until 2026-11-26 13:30, 1h30m left
  grapnel pipeline approve first gate-1 --store=runs.db
  grapnel pipeline reject first gate-1 --store=runs.db
waits for a file
  grapnel pipeline reject first gate-2 --store=runs.db`},
		"waiting at a small terminal": {waitingSession(), 40, 12, `
first: waiting for an answer, 2h00m
○ work     not started, until cat lists…
waits for a person: Shall the work on
  ideas.txt begin?
  until 2026-11-26 13:30, 1h30m left
  grapnel pipeline approve first gate-1
    --store=runs.db
  grapnel pipeline reject first gate-1
    --store=runs.db
waits for a file
  grapnel pipeline reject first gate-2
    --store=runs.db`},
		"between iterations": {between, 60, 30, `
first: running, 2h00m

▶ collect  iteration 3 of 25 has ended, hooks run
○ work     not started, until cat lists nothing, at most 25…

last hooks
▶ ok  running, 1m00s  (collect 3)`},
		"paused": {paused, 60, 3, `
first: paused; grapnel pipeline resume first --store=runs.db
▶ collect  paused after iteration 3 of 25
○ work     not started, until cat lists nothing, at most 25…`},
		"suspended": {suspended, 60, 9, `
release (friday): suspended; start it again to continue it
used: 13 of 200 steps, 34612 tokens, $0.26 of $5.00
✓ 2 stages done
▶ checks    suspended, 1 of 2 stages have ended
  ✓ lint    done after 2 iterations
  ▶ test    suspended in iteration 3 of 25
○ 2 stages not started
last hooks
○ notify               has not ended  (test 2)`},
		"ended": {endedSession(), 60, 0, `
p: session ended: aborted after 1m00s
error: pipeline.p/ok at StageComplete: rejected: not before
  the release of the library

✗ a  aborted, ended in iteration 1 of 2
○ b  not started, 3 iterations`},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, strings.TrimPrefix(tc.want, "\n"), renderPlain(tc.frame, tc.width, tc.height))
		})
	}
}

// A frame fits into every terminal.
func TestPipelineViewFits(t *testing.T) {
	for _, f := range []*sessionFrame{runningSession(), waitingSession(), endedSession(), {now: viewTime}} {
		for width := 1; width < 130; width++ {
			for height := 1; height < 30; height++ {
				lines := f.render(width, height)
				assert.LessOrEqual(t, len(lines), height)
				for _, l := range lines {
					assert.LessOrEqual(t, timeline.Width(l.Paint(false)), width)
				}
			}
		}
	}
}

// Texts of the session cannot control the terminal, and colours are sequences of this program alone.
func TestPipelineViewIsClean(t *testing.T) {
	f := endedSession()
	f.Error = "red \x1b[31mtext\x07"
	assert.NotContains(t, renderPlain(f, 100, 0), "\x1b")
	coloured := f.render(100, 0)[1].Paint(true)
	assert.True(t, strings.HasPrefix(coloured, "\x1b[31m"), "%q", coloured)
	assert.NotContains(t, coloured, "red \x1b")
}

// A screen erases what it has drawn, also when the terminal has become narrower, and writes nothing for the same lines.
func TestScreen(t *testing.T) {
	var out bytes.Buffer
	width, height := 40, 10
	s := screen{out: &out, size: func() (int, int) { return width, height }}
	written := func() string { defer out.Reset(); return out.String() }
	first := []string{"one", strings.Repeat("x", 30)}
	s.draw(first, first)
	assert.Equal(t, hideCursor+"one\n"+first[1]+"\n", written())
	s.draw(first, first)
	assert.Empty(t, written())
	width = 20
	s.draw([]string{"two"}, []string{"two"})
	assert.Equal(t, hideCursor+"\x1b[3A"+clearBelow+"two\n", written(), "the second line takes two rows")
	s.leave()
	assert.Equal(t, showCursor, written())
	s.draw([]string{"three"}, []string{"three"})
	assert.Equal(t, hideCursor+"three\n", written(), "what was left stays")
	height = 1
	s.erase()
	assert.Equal(t, "\x1b[1A"+clearBelow, written())
}

// newTestView returns the view of a session that no process runs, and what it has written since the last call of written.
func newTestView(t *testing.T) (v *sessionView, written func() string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "p.yaml")
	const text = "name: p\nstages: [{name: a, command: {argv: ['true']}, termination: {type: fixed, iterations: 1}}]"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	p, err := pipeline.Load(path, pipeline.LoadOptions{})
	require.NoError(t, err)
	job, err := p.Job(pipeline.SessionOptions{Name: "p", Dir: t.TempDir()})
	require.NoError(t, err)
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "runs.db"), sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, store.Close()) })
	runs, err := store.Submit(t.Context(), job)
	require.NoError(t, err)
	tracker, err := pipeline.NewTracker(t.Context(), store, runs[0])
	require.NoError(t, err)
	var out bytes.Buffer
	v = &sessionView{
		updates: make(chan struct{}, 1), tracker: tracker,
		screen: screen{out: &out, size: func() (int, int) { return 80, 24 }},
	}
	return v, func() string {
		v.mu.Lock()
		defer v.mu.Unlock()
		defer out.Reset()
		return out.String()
	}
}

// While a question is asked, nothing is drawn, and the cursor is visible. Afterwards the view is drawn below the question.
func TestSessionViewHold(t *testing.T) {
	v, written := newTestView(t)
	refresh := func() {
		ended, err := v.refresh(t.Context())
		require.NoError(t, err)
		assert.False(t, ended)
	}
	refresh()
	assert.Contains(t, written(), "p: ")
	release := v.hold(t.Context())
	assert.True(t, strings.HasSuffix(written(), showCursor))
	refresh()
	v.above(func() { v.screen.out.Write([]byte("a note\n")) }) //nolint:errcheck // a buffer
	assert.Equal(t, "a note\n", written(), "a note is all that is written")
	release()
	assert.True(t, strings.HasPrefix(written(), hideCursor+"p: "), "what was written before stays")
	v.above(func() { v.screen.out.Write([]byte("a note\n")) }) //nolint:errcheck // a buffer
	assert.Regexp(t, `^\x1b\[3A\r\x1b\[Ja note\n\x1b\[\?25lp: `, written(), "the note is above the view")
	v.close(t.Context())
	assert.True(t, strings.HasSuffix(written(), showCursor))
	refresh()
	v.close(t.Context())
	assert.Empty(t, written())
}

// The view can be used while it is drawn.
func TestSessionViewConcurrently(t *testing.T) {
	v, written := newTestView(t)
	ctx, cancel := context.WithCancel(t.Context())
	var drawing sync.WaitGroup
	drawing.Go(func() { assert.ErrorIs(t, v.run(ctx), context.Canceled) })
	for range 50 {
		signal(v.updates)
		v.above(func() {})
		v.hold(ctx)()
	}
	cancel()
	drawing.Wait()
	v.close(t.Context())
	text := written()
	assert.Greater(t, strings.LastIndex(text, showCursor), strings.LastIndex(text, hideCursor))
}
