package pipeline_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/gate"
	"github.com/grapnel-go/grapnel/durable/postgres"
	"github.com/grapnel-go/grapnel/durable/sqlite"
	"github.com/grapnel-go/grapnel/internal/parts"
	"github.com/grapnel-go/grapnel/pipeline"
)

// crashDir is set in the environment of a process that is a worker, to the directory of the test.
const crashDir = "GRAPNEL_PIPELINE_CRASH"

// working executes runs until the process is killed.
func working(dir string) error {
	ctx := context.Background()
	store, err := sqlite.Open(ctx, dir+"/runs.db", sqlite.Options{Sync: sqlite.SyncNormal})
	if err != nil {
		return err
	}
	defer store.Close()
	const lease = 2 * time.Second
	keeper := durable.Keep(store, durable.Options{Lease: lease})
	watcher, err := gate.NewWatcher(store, gate.Options{Claim: lease, Poll: 50 * time.Millisecond})
	if err != nil {
		return err
	}
	w, err := durable.NewWorker(store, durable.WorkerOptions{
		Runners: pipeline.Runners(store, keeper, pipeline.Options{Pipelines: []string{"p", "child"}, Host: action.Host{Parks: true}}),
		Lease:   lease, Poll: 50 * time.Millisecond, Watch: watcher.Run,
	})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// crashing notes each action and each iteration with its idempotency key.
const crashing = `
name: p
stages:
  - name: plan
    command: {argv: [sh, -c, 'echo "$GRAPNEL_IDEMPOTENCY_KEY plan $ITERATION" >> log']}
    termination: {type: fixed, iterations: 4}
  - name: work
    command: {argv: [sh, -c, 'echo "$GRAPNEL_IDEMPOTENCY_KEY work $ITERATION" >> log; [ $ITERATION -lt 4 ] || echo "{\"decision\":\"stop\"}" > "$STATUS"']}
    termination: {type: judgment, confirmations: 2}
  - name: both
    parallel:
      - name: left
        command: {argv: [sh, -c, 'echo "$GRAPNEL_IDEMPOTENCY_KEY left $ITERATION" >> log']}
        termination: {type: fixed, iterations: 2}
      - name: right
        command: {argv: [sh, -c, 'echo "$GRAPNEL_IDEMPOTENCY_KEY right $ITERATION" >> log']}
        termination: {type: fixed, iterations: 2}
hooks:
  on_session_start: {type: shell, await: true, command: 'echo "$GRAPNEL_IDEMPOTENCY_KEY session_start" >> log'}
  on_iteration_start: {type: shell, await: true, command: 'echo "$GRAPNEL_IDEMPOTENCY_KEY start $STAGE $ITERATION" >> log'}
  on_iteration_complete:
    - {type: shell, await: true, command: 'echo "$GRAPNEL_IDEMPOTENCY_KEY complete $STAGE $ITERATION" >> log; sleep 0.02'}
    - {type: shell, command: 'sleep 0.05; echo "$GRAPNEL_IDEMPOTENCY_KEY detached $STAGE $ITERATION" >> log'}
  on_stage_complete:
    - {type: shell, await: true, command: 'echo "$GRAPNEL_IDEMPOTENCY_KEY stage $STAGE" >> log'}
    - {type: gate, by: file, file: go, existing: true, every: 20ms, await: true, on_failure: abort, when: '${STAGE} == "plan"'}
    - {type: spawn, pipeline: child, on_failure: abort, when: '${STAGE} == "plan"'}
    - {type: shell, await: true, command: 'echo "$GRAPNEL_IDEMPOTENCY_KEY spawned $(echo $SPAWN_OUTPUT)" >> log', when: '${STAGE} == "plan"'}
  on_session_complete: {type: shell, await: true, command: 'echo "$GRAPNEL_IDEMPOTENCY_KEY session_complete" >> log'}
`

// AP-60, AP-61, AP-63: two workers are killed at random moments until the session has ended: nothing is lost, and nothing happens twice under
// two keys.
func TestKills(t *testing.T) {
	t.Parallel()
	most := 8
	switch {
	case os.Getenv("GRAPNEL_CRASH_RUNS") != "": // "make crash"
		most = 200
	case testing.Short():
		most = 2
	}
	kills, again := 0, 0
	for kills < most {
		k, a := killSession(t, most-kills)
		kills, again = kills+k, again+a
	}
	t.Logf("%d kills, %d lines were written again", kills, again)
}

// killSession runs a session while at most so many workers are killed, and checks what it has done.
func killSession(t *testing.T, most int) (kills, again int) {
	t.Helper()
	b := newBench(t)
	b.write("child.yaml", "name: child\nstages: [{name: c, command: {argv: [sh, -c, 'echo \"$GRAPNEL_IDEMPOTENCY_KEY child $ITERATION\" >> log; echo spawned']}, termination: {type: fixed, iterations: 2}}]")
	b.write("work/go", "")
	run := b.submit(crashing)
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, seed))
	t.Logf("seed %d", seed)
	start := func() *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), crashDir+"="+b.dir)
		cmd.Stderr = os.Stderr
		require.NoError(t, cmd.Start())
		return cmd
	}
	workers := []*exec.Cmd{start(), start()}
	late := time.Now().Add(10 * time.Minute)
	for !b.status(run.ID).Status.Ended() {
		require.True(t, time.Now().Before(late), "the session does not end: %+v", b.status(run.ID))
		time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond)
		if kills < most {
			w := &workers[kills%2]
			require.NoError(t, (*w).Process.Kill())
			_ = (*w).Wait()
			*w = start()
			kills++
		}
	}
	for _, w := range workers {
		require.NoError(t, w.Process.Kill())
		_ = w.Wait()
	}
	s := b.status(run.ID)
	require.Equal(t, pipeline.Completed, s.Reason, s.Error)
	want := []string{"session_start", "session_complete", "stage plan", "stage work", "stage left", "stage right", "spawned spawned", "child 1", "child 2"}
	for stage, n := range map[string]int{"plan": 4, "work": 5, "left": 2, "right": 2} {
		for i := range n {
			want = append(want, fmt.Sprintf("%s %d", stage, i+1), fmt.Sprintf("start %s %d", stage, i+1),
				fmt.Sprintf("complete %s %d", stage, i+1), fmt.Sprintf("detached %s %d", stage, i+1))
		}
	}
	keys := map[string]string{} // by what was done
	for _, line := range b.lines("log") {
		key, what, _ := strings.Cut(line, " ")
		if key == "" { // the output of the child ends with a new line
			continue
		}
		if known, there := keys[what]; there {
			again++
			assert.Equal(t, known, key, "%q was done twice under two keys", what)
		}
		keys[what] = key
	}
	var done []string
	for what := range keys {
		done = append(done, what)
	}
	assert.ElementsMatch(t, want, done)
	assert.Len(t, b.iterations(run.ID), 9+3, "no iteration, part or child is lost or doubled")
	return kills, again
}

// A session runs on PostgreSQL as on SQLite.
func TestOnPostgres(t *testing.T) {
	b := newBench(t)
	b.write("child.yaml", "name: child\nstages: [{name: c, command: {argv: ['true']}, termination: {type: fixed, iterations: 2}}]")
	b.write("work/go", "")
	store, err := postgres.Open(t.Context(), parts.Postgres(t), postgres.Options{})
	require.NoError(t, err)
	defer store.Close()
	b.store, b.host = store, parkingHost
	s := b.finish(b.submit(crashing).ID, gate.Options{})
	assert.Equal(t, pipeline.Completed, s.Reason, s.Error)
	assert.Len(t, b.iterations(s.Run), 9+3)
}
