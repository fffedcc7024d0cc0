package engine_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
	"github.com/grapnel-go/grapnel/internal/parts"
	"github.com/grapnel-go/grapnel/pipeline"
)

// gatesPark lets gates wait in the store; no person is asked here.
var gatesPark = action.Host{Parks: true, Approver: agent.ParkApprover}

// sessions runs sessions of pipelines on a store.
type sessions struct {
	m      *measuring
	store  durable.Store
	dir    string
	worker *durable.Worker
}

func newSessions(m *measuring, store durable.Store) *sessions {
	m.Helper()
	parts.Command(m.T, "sh", "install a shell")
	keeper := durable.Keep(store, durable.Options{})
	w, err := durable.NewWorker(store, durable.WorkerOptions{
		Runners:  pipeline.Runners(store, keeper, pipeline.Options{Pipelines: []string{"p"}, Host: gatesPark}),
		Capacity: 4,
	})
	require.NoError(m, err)
	return &sessions{m, store, m.TempDir(), w}
}

// submit submits sessions of a pipeline.
func (s *sessions) submit(n int, text string) (ids []durable.Run) {
	s.m.Helper()
	path := filepath.Join(s.dir, "pipeline.yaml")
	require.NoError(s.m, os.WriteFile(path, []byte(text), 0o600))
	p, err := pipeline.Load(path, pipeline.LoadOptions{Host: gatesPark})
	require.NoError(s.m, err)
	for i := range n {
		job, err := p.Job(pipeline.SessionOptions{Name: fmt.Sprintf("s%d", i+1), Dir: filepath.Join(s.dir, fmt.Sprint(i+1)), Workspace: s.dir})
		require.NoError(s.m, err)
		runs, err := s.store.Submit(s.m.Context(), job)
		require.NoError(s.m, err)
		ids = append(ids, runs...)
	}
	return ids
}

// work executes all runs that are ready, until none is.
func (s *sessions) work() {
	s.m.Helper()
	require.NoError(s.m, s.worker.ExecuteReady(s.m.Context()))
}

// status returns the status of a session.
func (s *sessions) status(about durable.Run) pipeline.Status {
	s.m.Helper()
	r, err := s.store.Run(s.m.Context(), about.ID)
	require.NoError(s.m, err)
	status, err := pipeline.StatusOf(s.m.Context(), s.store, r)
	require.NoError(s.m, err)
	return status
}

// fixed returns a pipeline with iterations of a small program.
func fixed(iterations int) string {
	return fmt.Sprintf("name: p\nstages: [{name: a, command: {argv: ['true']}, termination: {type: fixed, iterations: %d}}]\n", iterations)
}

// measurePipeline measures an iteration of a command beside the loop of a shell that runs the same program and writes its output
// to a file, and counts the commits.
func measurePipeline(m *measuring) {
	p := m.backend.open(m.T)
	recorded := &recorder{Store: p.Store}
	s := newSessions(m, recorded)
	session := func(text string) time.Duration {
		id := s.submit(1, text)[0]
		took := timed(s.work)
		require.Equal(m, pipeline.Completed, s.status(id).Reason)
		require.NoError(m, os.RemoveAll(filepath.Join(s.dir, "1")))
		return took
	}
	loop := fmt.Sprintf("i=0; while [ $i -lt %d ]; do i=$((i+1)); mkdir -p loop/$i; /usr/bin/env true > loop/$i/output.txt || exit 1; done; rm -r loop", m.iterations)
	c := compare(m.rounds, 1,
		side{"pipeline", func() time.Duration { return session(fixed(m.iterations)) }},
		side{"shell", func() time.Duration {
			return timed(func() {
				cmd := exec.CommandContext(m.Context(), "sh", "-c", loop)
				cmd.Dir = s.dir
				out, err := cmd.CombinedOutput()
				require.NoError(m, err, "%s", out)
			})
		}},
	)
	count := func(text string) int {
		recorded.take()
		session(text)
		return len(recorded.take())
	}
	const action = "hooks: {on_iteration_complete: {type: shell, command: 'true', await: true}}"
	commits := func(more string) float64 { return float64(count(fixed(12)+more)-count(fixed(2)+more)) / 10 }
	plain := commits("")
	more := commits(action) - plain

	m.report.rounds(m, "pipeline", c)
	each := func(side string) time.Duration { return quantile(c[side], 50) / time.Duration(m.iterations) }
	m.row("an iteration of a command", "≤ 12 commits, ≤ 3 more", plain <= 12 && more <= 3,
		"%.1f commits, %.1f more; **%s**, %s in a shell loop", plain, more, milliseconds(each("pipeline")), milliseconds(each("shell")))
}

// measureGates measures sessions that wait for a person: they hold no goroutine, and go on when they are answered.
func measureGates(m *measuring) {
	p := m.backend.open(m.T)
	s := newSessions(m, p.Store)
	before := runtime.NumGoroutine()
	ids := s.submit(m.gates, fixed(1)+"hooks: {on_stage_complete: {type: gate, by: person, reason: good?, await: true, on_failure: abort}}")
	parking := timed(s.work)
	rowsOnly := assert.Eventually(m, func() bool { return runtime.NumGoroutine() <= before+2 }, time.Minute, 5*time.Millisecond)
	for _, id := range ids {
		gates := s.status(id).WaitsFor
		require.Len(m, gates, 1)
		require.NoError(m, durabletest.Approve(m.Context(), p.Store, id.ID, gates[0].Wait, agent.Approval{Verdict: agent.Approve}))
	}
	going := timed(s.work)
	for _, id := range ids {
		require.Equal(m, pipeline.Completed, s.status(id).Reason)
	}
	n := time.Duration(m.gates)
	m.row(thousands(m.gates)+" sessions at a gate", "no goroutine", rowsOnly, "no goroutines; %s to the gate, %s to the end",
		milliseconds(parking/n), milliseconds(going/n))
}

// measureRebuild measures the rebuilding of the files of a session with many events.
func measureRebuild(m *measuring) {
	p := m.backend.open(m.T)
	s := newSessions(m, p.Store)
	about := s.submit(1, fixed(2))[0]
	keeper := durable.Keep(p.Store, durable.Options{})
	lease, err := p.Acquire(m.Context(), about.ID, keeper.Owner(), time.Hour, durable.TakeFree)
	require.NoError(m, err)
	for done := 0; done < m.history; {
		var c durable.Commit
		for ; done < m.history && len(c.Events) < 1000; done++ {
			c.Events = append(c.Events, durable.Event{
				At: time.Now(), Name: "hook.ran", Data: fmt.Appendf(nil, `{"hook":"pipeline/notify","point":"IterationComplete","iteration":%d}`, done),
			})
		}
		require.NoError(m, p.Commit(m.Context(), lease, c))
	}
	require.NoError(m, p.Release(m.Context(), lease, 0))
	about, err = p.Run(m.Context(), about.ID)
	require.NoError(m, err)
	took := timed(func() { require.NoError(m, pipeline.Rebuild(m.Context(), p.Store, about)) })
	info, err := os.Stat(filepath.Join(s.dir, "1", "events.jsonl"))
	require.NoError(m, err)
	going := timed(s.work) // two iterations: they only read the end of the file
	require.Equal(m, pipeline.Completed, s.status(about).Reason)
	m.row(fmt.Sprintf("a session with %s events", thousands(m.history)), "none", true, "rebuilt in **%s** (%d MB); its next iteration takes %s",
		milliseconds(took), info.Size()/1e6, milliseconds(going/2))
}

// measureGraph measures the reading and drawing of a pipeline with many stages.
func measureGraph(m *measuring) {
	dir := m.TempDir()
	program := filepath.Join(dir, "grapnel")
	build := exec.CommandContext(m.Context(), "go", "build", "-o", program, "./cmd/grapnel")
	build.Dir = filepath.Join("..", "..")
	out, err := build.CombinedOutput()
	require.NoError(m, err, "%s", out)
	text := new(strings.Builder)
	text.WriteString("name: p\nhooks: {on_iteration_complete: {type: shell, command: 'true', await: true}}\nstages:\n")
	for i := range m.stages {
		fmt.Fprintf(text, "  - {name: s%d, command: {argv: ['true']}, termination: {type: fixed, iterations: 1}}\n", i+1)
	}
	path := filepath.Join(dir, "pipeline.yaml")
	require.NoError(m, os.WriteFile(path, []byte(text.String()), 0o600))
	draw := func(args ...string) time.Duration {
		return timed(func() {
			cmd := exec.CommandContext(m.Context(), program, append([]string{"pipeline"}, args...)...)
			out, err := cmd.CombinedOutput()
			require.NoError(m, err, "%s", out)
		})
	}
	check, svg := draw("check", path), draw("graph", "--format", "svg", path)
	m.row(fmt.Sprintf("a pipeline of %d stages", m.stages), "none", true, "checked in %s, drawn as SVG in **%s**", milliseconds(check), milliseconds(svg))
}
