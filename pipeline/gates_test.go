package pipeline_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
	"github.com/grapnel-go/grapnel/durable/gate"
	"github.com/grapnel-go/grapnel/pipeline"
)

// gated returns a pipeline with a gate between two stages, an action before it and one after it.
func gated(gate string) string {
	return "name: p\nstages:\n" + counted("plan", 1) + counted("work", 1) + `
hooks:
  on_stage_complete:
    - {type: shell, await: true, command: 'echo before >> log', when: '${STAGE} == "plan"'}
    - ` + gate + `
    - {type: shell, await: true, command: 'echo "after $LAST_HOOK_STATUS $HOOK_RESPONSE" >> log', when: '${STAGE} == "plan"'}
`
}

// parking returns a worker whose gates wait in the store.
func (b *bench) parking() *durable.Worker {
	b.t.Helper()
	keeper := durable.Keep(b.store, durable.Options{})
	o := b.options(keeper)
	o.Host = parkingHost
	w, err := durable.NewWorker(b.store, durable.WorkerOptions{Runners: pipeline.Runners(b.store, keeper, o)})
	require.NoError(b.t, err)
	return w
}

var parkingHost = action.Host{Parks: true, Approver: agent.ApproverFunc(func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) {
	return agent.Approval{}, io.ErrUnexpectedEOF // no person is asked here
})}

// park runs a pipeline until it waits for its gate.
func (b *bench) park(text string) (id agent.RunID, waiting pipeline.WaitingGate) {
	b.t.Helper()
	p, err := pipeline.Load(b.write("pipeline.yaml", text), pipeline.LoadOptions{Host: parkingHost})
	require.NoError(b.t, err)
	job, err := p.Job(pipeline.SessionOptions{Name: "demo", Dir: b.path("sessions", "demo"), Workspace: b.path("work")})
	require.NoError(b.t, err)
	runs, err := b.store.Submit(b.t.Context(), job)
	require.NoError(b.t, err)
	require.NoError(b.t, b.parking().ExecuteReady(b.t.Context()))
	s := b.status(runs[0].ID)
	require.Equal(b.t, durable.StatusWaiting, s.Status, s.Error)
	require.Len(b.t, s.WaitsFor, 1)
	assert.Equal(b.t, []string{"plan 1", "before"}, b.lines("log"))
	return s.Run, s.WaitsFor[0]
}

// finish lets another worker continue until the session has ended, with a watcher of gates.
func (b *bench) finish(id agent.RunID, o gate.Options) pipeline.Status {
	b.t.Helper()
	o.Poll = 10 * time.Millisecond
	watcher, err := gate.NewWatcher(b.store, o)
	require.NoError(b.t, err)
	ctx, stop := context.WithCancel(b.t.Context())
	var watching sync.WaitGroup
	watching.Go(func() { watcher.Run(ctx) })
	defer watching.Wait()
	defer stop()
	w := b.parking()
	late := time.Now().Add(5 * time.Minute)
	for !b.status(id).Status.Ended() {
		require.True(b.t, time.Now().Before(late), "the session does not end: %+v", b.status(id))
		require.NoError(b.t, w.ExecuteReady(b.t.Context()))
		time.Sleep(5 * time.Millisecond)
	}
	return b.status(id)
}

const filed = `{type: gate, by: file, file: answer, await: true, every: 10ms, when: '${STAGE} == "plan"'}`

// AP-38, AP-64, AP-65: gates by file and command wait in the store, and what was done before them is not done again.
func TestGatesWait(t *testing.T) {
	const commanded = `{type: gate, by: command, argv: [sh, -c, 'test -e answer || exit 1; cat answer'], await: true, every: 10ms, when: '${STAGE} == "plan"'}`
	for name, tc := range map[string]struct {
		gate, answer string
		reason       pipeline.Reason
		want         string
	}{
		"a file that approves":    {filed, "approve", pipeline.Completed, `after success {"action":"approve"`},
		"a file that rejects":     {filed, "reject", pipeline.Aborted, ""},
		"a command that approves": {commanded, "approve", pipeline.Completed, "after success"},
		"a command that fails":    {strings.Replace(commanded, "cat answer", "exit 7", 1), "", pipeline.Aborted, ""},
		"a failure that goes on":  {strings.Replace(strings.Replace(commanded, "cat answer", "exit 7", 1), "await: true", "await: true, on_failure: continue", 1), "", pipeline.Completed, "after failed"},
		"a failure that aborts":   {strings.Replace(strings.Replace(commanded, "cat answer", "exit 7", 1), "await: true", "await: true, on_failure: abort", 1), "", pipeline.Aborted, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			id, waiting := b.park(gated(tc.gate))
			assert.WithinDuration(t, time.Now().Add(time.Hour), waiting.Deadline, 5*time.Minute)
			require.NoError(t, os.WriteFile(b.path("work", "answer"), []byte(tc.answer), 0o600))
			s := b.finish(id, gate.Options{})
			assert.Equal(t, tc.reason, s.Reason, s.Error)
			lines := b.lines("log")
			require.Len(t, lines, map[bool]int{true: 4, false: 2}[tc.want != ""], "%q", lines)
			if tc.want != "" {
				assert.Contains(t, lines[2], tc.want)
				assert.Equal(t, "work 1", lines[3])
			}
			b.readOnly(s)
		})
	}
}

// AP-60, AP-62: what was done before a gate is done again only if a worker is told so, once.
func TestDoneAgain(t *testing.T) {
	b := newBench(t)
	id, _ := b.park(gated(filed))
	b.again = action.Kept
	require.NoError(t, os.WriteFile(b.path("work", "answer"), []byte("approve"), 0o600))
	s := b.finish(id, gate.Options{})
	assert.Equal(t, pipeline.Completed, s.Reason, s.Error)
	lines := b.lines("log")
	require.Len(t, lines, 5, "%q", lines)
	assert.Equal(t, []string{"plan 1", "before", "before"}, lines[:3])
}

// AP-28, AP-30, AP-31, AP-32, AP-33, AP-37: a webhook is told where to answer; opening the link decides nothing.
func TestCallbacks(t *testing.T) {
	for action, want := range map[string]pipeline.Reason{"approve": pipeline.Completed, "reject": pipeline.Aborted} {
		t.Run(action, func(t *testing.T) {
			b := newBench(t)
			answers := httptest.NewServer(gate.Handler(b.store, gate.HandlerOptions{}))
			defer answers.Close()
			send := func(method, url string) int {
				request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
				require.NoError(t, err)
				response, err := http.DefaultClient.Do(request)
				require.NoError(t, err)
				require.NoError(t, response.Body.Close())
				return response.StatusCode
			}
			var statuses []int
			receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				url, err := io.ReadAll(r.Body)
				if assert.NoError(t, err) {
					link := strings.Trim(strings.TrimSpace(string(url)), `{}"`)
					_, link, _ = strings.Cut(link, `text":"`)
					statuses = append(statuses, send(http.MethodGet, link), send(http.MethodPost, link+"wrong?action="+action), send(http.MethodPost, link+"?action="+action))
				}
			}))
			defer receiver.Close()
			id, _ := b.park(gated(`{type: webhook, url: "` + receiver.URL + `", body: {text: "${CALLBACK_URL}"}, await: true, when: '${STAGE} == "plan"'}`))
			s := b.finish(id, gate.Options{Callbacks: answers.URL})
			assert.Equal(t, want, s.Reason, s.Error)
			assert.Equal(t, []int{http.StatusOK, http.StatusNotFound, http.StatusOK}, statuses)
		})
	}
}

// AP-34: the deadline of a gate passes without a process.
func TestDeadlinesOfGates(t *testing.T) {
	for onTimeout, want := range map[string]pipeline.Reason{
		", on_timeout: abort": pipeline.Aborted, ", on_timeout: continue": pipeline.Completed, ", on_failure: continue": pipeline.Completed,
		"": pipeline.Aborted, // a gate without an answer stays closed
	} {
		t.Run(onTimeout, func(t *testing.T) {
			b := newBench(t)
			b.host = parkingHost
			run := b.submit(gated(`{type: gate, by: file, file: answer, await: true, timeout: 50ms` + onTimeout + `, when: '${STAGE} == "plan"'}`))
			s := b.finish(run.ID, gate.Options{})
			assert.Equal(t, want, s.Reason, s.Error)
		})
	}
}

// A person answers a gate.
func TestPeopleAtGates(t *testing.T) {
	for verdict, want := range map[agent.ApprovalVerdict]pipeline.Reason{
		agent.Approve: pipeline.Completed, agent.RejectAndContinue: pipeline.Aborted, agent.RejectAndEnd: pipeline.Aborted,
	} {
		t.Run(verdict.String(), func(t *testing.T) {
			b := newBench(t)
			id, waiting := b.park(gated(`{type: gate, by: person, reason: "Is the plan of ${SESSION} good?", await: true, when: '${STAGE} == "plan"'}`))
			assert.Equal(t, durable.WaitApproval, waiting.For)
			assert.Equal(t, "Is the plan of demo good?", waiting.Reason)
			require.NoError(t, durabletest.Approve(t.Context(), b.store, id, waiting.Wait, agent.Approval{
				Verdict: verdict, By: "ann", Reason: `{"action": "approve"}`, // only an event's text is an answer
			}))
			s := b.finish(id, gate.Options{})
			assert.Equal(t, want, s.Reason, s.Error)
			if verdict == agent.Approve {
				assert.Contains(t, b.lines("log")[2], `"by":"ann"`)
			}
		})
	}
}

// Sessions that wait at a gate hold no goroutine.
func TestWaitingSessionsHoldNoGoroutine(t *testing.T) {
	const n = 100
	b := newBench(t)
	p, err := pipeline.Load(b.write("pipeline.yaml", gated(filed)), pipeline.LoadOptions{Host: parkingHost})
	require.NoError(t, err)
	var jobs []durable.Job
	for i := range n {
		job, err := p.Job(pipeline.SessionOptions{Name: fmt.Sprint("s", i), Dir: b.path("sessions", fmt.Sprint(i)), Workspace: b.path("work")})
		require.NoError(t, err)
		jobs = append(jobs, job)
	}
	for i := range jobs {
		jobs[i].ID = agent.NewRunID()
	}
	_, err = b.store.Submit(t.Context(), jobs...)
	require.NoError(t, err)
	before := runtime.NumGoroutine()
	worker := b.parking()
	var waits []durable.Wait
	for late := time.Now().Add(2 * time.Minute); len(waits) < n && time.Now().Before(late); { // a run whose execution failed is tried again
		require.NoError(t, worker.ExecuteReady(t.Context()))
		waits, err = b.store.OpenWaits(t.Context(), durable.WaitFilter{Kinds: []durable.WaitKind{durable.WaitFile}, Limit: 2 * n})
		require.NoError(t, err)
	}
	if len(waits) != n {
		for _, job := range jobs {
			s := b.status(job.ID)
			t.Logf("%s is %s in stage %s: %s %s", s.Session, s.Status, s.Stage, s.Reason, s.Error)
		}
	}
	assert.Equal(t, n, len(waits), "waiting sessions") //nolint:testifylint // the waits are long
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+5 }, time.Minute, 10*time.Millisecond)
}
