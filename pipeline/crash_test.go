package pipeline_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
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

// The crash test: two worker processes execute a session, and are killed with SIGKILL at random moments until it has ended.
// "make crash" kills 200 of them, while sessions with 20 iterations a stage run; a plain test kills a few.
const (
	crashDir       = "GRAPNEL_PIPELINE_CRASH"           // set in a process that is a worker: the directory of the test
	crashCallbacks = "GRAPNEL_PIPELINE_CRASH_CALLBACKS" // where a worker lets gates be answered
	crashRuns      = "GRAPNEL_CRASH_RUNS"               // set by "make crash"
	crashSeed      = "GRAPNEL_CRASH_SEED"
)

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
	watcher, err := gate.NewWatcher(store, gate.Options{Callbacks: os.Getenv(crashCallbacks), Claim: lease, Poll: 50 * time.Millisecond})
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

// TestKills kills workers until sessions have ended: nothing is lost, and what is done twice has the same key. AP-60, AP-61, AP-63.
func TestKills(t *testing.T) {
	t.Parallel()
	parts.Command(t, "sh", "install a shell") // before the loop: a session that skips kills nothing
	most, form := 4, crashForm{iterations: 4, inBlock: 2}
	every := 12 // actions between two kills, on average
	switch {
	case os.Getenv(crashRuns) != "": // "make crash"
		most, form, every = 200, crashForm{iterations: 20, inBlock: 10}, 4
	case testing.Short():
		most = 2
	}
	seed := uint64(time.Now().UnixNano())
	if given, err := strconv.ParseUint(os.Getenv(crashSeed), 10, 64); err == nil {
		seed = given
	}
	t.Logf("%s=%d chooses the same kills", crashSeed, seed)
	random := rand.New(rand.NewPCG(seed, 1))
	began := time.Now()
	var all crashFigures
	for all.kills < most {
		t.Run(strconv.Itoa(all.sessions), func(t *testing.T) { all.add(killSession(t, random, form, most-all.kills, every)) })
		if t.Failed() {
			return
		}
	}
	t.Logf("%d sessions, %d kills, %d of them of a worker that had a run; %d starts without an end, after which %d actions were seen again, "+
		"%d gates announced again; %s",
		all.sessions, all.kills, all.effective, all.open, all.again, all.announced, time.Since(began).Round(time.Second))
}

// crashFigures are what happened while workers were killed.
type crashFigures struct {
	sessions, kills int
	// effective counts the kills of workers that had a run at that moment.
	effective int
	// open counts the starts in the journals without an end, again the actions that were seen more than once, and announced
	// the gates that were announced more than once.
	open, again, announced int
}

func (f *crashFigures) add(g crashFigures) {
	*f = crashFigures{
		f.sessions + g.sessions, f.kills + g.kills, f.effective + g.effective, f.open + g.open, f.again + g.again, f.announced + g.announced,
	}
}

// crashWorker is a process that executes runs.
type crashWorker struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
}

func startWorker(t *testing.T, c *crashBench) *crashWorker {
	t.Helper()
	w := &crashWorker{cmd: exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")}
	w.cmd.Env = append(os.Environ(), crashDir+"="+c.dir, crashCallbacks+"="+c.answers.URL)
	w.cmd.Stderr = &w.stderr
	require.NoError(t, w.cmd.Start())
	return w
}

// kill kills the worker, which must not have ended by itself, and reports whether it had a run.
func (w *crashWorker) kill(t *testing.T, c *crashBench) (effective bool) {
	t.Helper()
	require.NoError(t, w.cmd.Process.Kill())
	assert.Error(t, w.cmd.Wait())
	assert.Empty(t, w.stderr.String())
	for _, run := range c.runs() {
		if strings.Contains(run.Owner, fmt.Sprintf("/%d/", w.cmd.Process.Pid)) {
			return true
		}
	}
	return false
}

// killSession runs a session while at most so many workers are killed, one for about every so many actions, and checks what was done.
func killSession(t *testing.T, random *rand.Rand, form crashForm, most, every int) crashFigures {
	t.Helper()
	f := crashFigures{sessions: 1}
	c := newCrashBench(t, newBench(t), form)
	run := c.submit(c.text())
	workers := []*crashWorker{startWorker(t, c), startWorker(t, c)}
	var late sync.WaitGroup
	defer late.Wait()
	kill := func() {
		late.Go(func() { c.receiver.repeat(t) })
		i := random.IntN(len(workers))
		if workers[i].kill(t, c) {
			f.effective++
		}
		workers[i] = startWorker(t, c)
		f.kills++
	}
	next, last, changed := random.IntN(2*every), 0, time.Now()
	for !c.status(run.ID).Status.Ended() {
		actions, waiting := c.receiver.count()+len(c.lines("log")), c.receiver.waiting()
		if actions > last {
			last, changed = actions, time.Now()
		}
		require.Less(t, time.Since(changed), 3*time.Minute, "the session does not go on: %+v", c.status(run.ID))
		if f.kills < most && (waiting != "" && random.IntN(2) == 0 || waiting == "" && actions >= next) {
			time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond) // not only just after an action
			kill()
			next = actions + 1 + random.IntN(2*every)
		}
		if waiting != "" {
			time.Sleep(time.Duration(random.IntN(2500)) * time.Millisecond) // sometimes until another watcher has announced the gate
			c.receiver.answer(t, waiting)
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, w := range workers {
		w.kill(t, c)
	}
	late.Wait()
	c.receiver.repeat(t)
	f.add(c.check(run))
	return f
}

// A session runs on PostgreSQL as on SQLite.
func TestOnPostgres(t *testing.T) {
	b := newBench(t)
	store, err := postgres.Open(t.Context(), parts.Postgres(t), postgres.Options{})
	require.NoError(t, err)
	defer store.Close()
	b.store, b.host = store, parkingHost
	c := newCrashBench(t, b, crashForm{iterations: 2, inBlock: 1})
	run := c.submit(c.text())
	go func() {
		for t.Context().Err() == nil {
			if waiting := c.receiver.waiting(); waiting != "" {
				c.receiver.answer(t, waiting)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	c.finish(run.ID, gate.Options{Callbacks: c.answers.URL})
	assert.Equal(t, crashFigures{open: 3}, c.check(run), "the gates and the pipeline that was spawned wait, and begin again")
}
