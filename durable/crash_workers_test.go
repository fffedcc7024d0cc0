package durable_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/command"
	"github.com/grapnel-go/grapnel/internal/parts"
	"github.com/grapnel-go/grapnel/toolexec"
)

// The crash test of workers: two worker processes share a store with jobs of all kinds, and are killed with SIGKILL at
// random moments, one after the other, until all runs have ended. "make crash" kills 300 of them.

// crashWorks is set in the environment of a process that is a worker.
const crashWorks = "GRAPNEL_CRASH_WORKS"

const (
	crashAgents   = 12 // jobs of agents
	crashCommands = 12 // jobs of commands that may be repeated
	crashOnce1    = 6  // jobs of commands that may not
	agentSteps    = 4
)

func TestCrashWorkersSQLite(t *testing.T) {
	t.Parallel()
	crashWorkers(t, workerKills(16), func(_ *testing.T, dir string) string { return filepath.Join(dir, "runs.db") })
}

func TestCrashWorkersPostgres(t *testing.T) {
	t.Parallel()
	crashWorkers(t, workerKills(16)/2, func(t *testing.T, _ string) string { return parts.Postgres(t) })
}

// workerKills returns how many workers are killed: 200 with "make crash".
func workerKills(usual int) int {
	if os.Getenv(crashRuns) != "" {
		return 200
	}
	if testing.Short() {
		return usual / 4
	}
	return usual
}

// working is a worker process: it runs until it is killed.
func working(ctx context.Context, store durable.Store, dir string) error {
	keeper := durable.Keep(store, durable.Options{Lease: 2 * time.Second})
	note := toolexec.CallFunc(agent.ToolSpec{Name: "append"}, func(_ context.Context, c toolexec.Call, in struct{ N int }) (string, error) {
		return fmt.Sprint("appended ", in.N), noteIn(dir, "effects", c.IdempotencyKey())
	})
	driver := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
		n := s.RunStepCount()
		time.Sleep(time.Millisecond) // so that processes are killed inside of runs
		if n == agentSteps {
			return agent.Step{Message: agent.Assistant("Done.")}, nil
		}
		return agent.Step{Message: agent.Assistant("", agent.ToolCall{ID: fmt.Sprint("call_", n), Name: "append", Arguments: fmt.Sprintf(`{"N":%d}`, n)})}, nil
	})
	clerk, err := builder.New().WithName("clerk").WithDriver(driver).
		With(capability.UseTools(toolexec.WithPolicy(note, toolexec.Policy{Doubt: toolexec.DoubtRepeat})), capability.UseDurability{Keeper: keeper}).Build().Get()
	if err != nil {
		return err
	}
	script := func(file string, repeat bool) command.Command {
		return command.Command{
			Argv: []string{"sh", "-c", `echo "$GRAPNEL_IDEMPOTENCY_KEY" >> ` + file + `; sleep 0.01; echo done`}, Dir: dir,
			Env: map[string]string{"PATH": os.Getenv("PATH")}, Repeat: repeat,
		}
	}
	commands, err := command.Runner(keeper, map[string]command.Command{"repeated": script("repeated", true), "once": script("once", false)})
	if err != nil {
		return err
	}
	w, err := durable.NewWorker(store, durable.WorkerOptions{
		Runners: map[durable.Kind]durable.Runner{
			durable.KindAgent: durable.AgentRunner(keeper, durable.AgentMap{"clerk": clerk}), durable.KindCommand: commands,
		},
		Capacity: 4, Lease: 2 * time.Second, Poll: 50 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

func crashWorkers(t *testing.T, kills int, where func(t *testing.T, dir string) string) {
	parts.Command(t, "sh", "install a shell")
	dir, random := t.TempDir(), crashRandom(t)
	at := where(t, dir)
	store, err := openAt(t.Context(), at)
	require.NoError(t, err)
	defer store.Close()
	submitted, killed, agents, again := 0, 0, 0, 0
	for killed < kills { // a round of jobs, until as many workers were killed
		ids := submitRound(t, store)
		submitted += len(ids)
		killed += killUntilEnded(t, store, dir, at, len(ids), func() time.Duration { return time.Duration(random.IntN(600)) * time.Millisecond })
	}
	effects, repeated, once := counted(t, dir, "effects"), counted(t, dir, "repeated"), counted(t, dir, "once")
	runs := allRuns(t, store)
	require.Len(t, runs, submitted, "no job is lost, and none is doubled")
	doubts := 0
	for _, r := range runs {
		result, err := durable.ResultOf(t.Context(), store, r.ID)
		require.NoError(t, err)
		switch {
		case r.Kind == durable.KindAgent:
			agents++
			require.Equal(t, durable.StatusCompleted, r.Status, "%s", result.Error)
			s, err := durable.Load(t.Context(), store, r.ID)
			require.NoError(t, err)
			assert.Equal(t, agentSteps+1, s.RunStepCount())
			for step := range agentSteps {
				key := fmt.Sprintf("%s/%d/call_%d", r.ID, step, step)
				assert.Positive(t, effects[key], "%s has no effect", key)
				again += effects[key] - 1
			}
		case r.Name == "repeated":
			assert.Equal(t, durable.StatusCompleted, r.Status, "%s", result.Error)
			assert.Positive(t, repeated[string(r.ID)+"/command"])
		case r.Status == durable.StatusFailed: // in doubt: it may have run, once
			doubts++
			assert.Contains(t, result.Error, "it is unknown what the command did")
			assert.LessOrEqual(t, once[string(r.ID)+"/command"], 1)
		default:
			assert.Equal(t, durable.StatusCompleted, r.Status, "%s", result.Error)
			assert.Equal(t, 1, once[string(r.ID)+"/command"])
		}
	}
	assert.Len(t, effects, agents*agentSteps)
	t.Logf("%d kills, %d runs; %d calls delivered again, %d commands in doubt", killed, len(runs), again, doubts)
}

// submitRound submits jobs of all kinds.
func submitRound(t *testing.T, store durable.Store) []durable.Run {
	t.Helper()
	var jobs []durable.Job
	add := func(n int, job durable.Job, err error) {
		require.NoError(t, err)
		for range n {
			jobs = append(jobs, job)
		}
	}
	clerk, err := durable.AgentJob("clerk", agent.NewState(), agent.UserText("go"))
	add(crashAgents, clerk, err)
	repeated, err := command.Job("repeated", nil)
	add(crashCommands, repeated, err)
	once, err := command.Job("once", nil)
	add(crashOnce1, once, err)
	runs, err := store.Submit(t.Context(), jobs...)
	require.NoError(t, err)
	return runs
}

// killUntilEnded keeps two workers running and kills one after the other, until so many runs have ended that none is left.
// It kills at most as many as there are runs, so that the others can end.
func killUntilEnded(t *testing.T, store durable.Store, dir, at string, most int, after func() time.Duration) (kills int) {
	t.Helper()
	stop, cancel := context.WithCancel(t.Context())
	defer cancel()
	var workers sync.WaitGroup
	defer workers.Wait()
	defer cancel()
	start := func() (kill func()) {
		ctx, end := context.WithCancel(stop)
		cmd := exec.CommandContext(ctx, os.Args[0]) // killed with SIGKILL
		cmd.Env = append(os.Environ(), crashDir+"="+dir, crashStore+"="+at, crashWorks+"=yes")
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		require.NoError(t, cmd.Start())
		workers.Go(func() {
			err := cmd.Wait()
			assert.Error(t, ctx.Err(), "a worker ended by itself: %v: %s", err, &out)
		})
		return end
	}
	running := []func(){start(), start()}
	late := time.Now().Add(5 * time.Minute)
	for i := 0; ; i++ {
		left := 0
		for _, s := range []durable.Status{durable.StatusPending, durable.StatusReady, durable.StatusRunning, durable.StatusWaiting} {
			runs, err := store.List(t.Context(), durable.Filter{Status: []durable.Status{s}, Limit: 1000})
			require.NoError(t, err)
			left += len(runs)
		}
		if left == 0 {
			return kills
		}
		require.True(t, time.Now().Before(late), "%d runs have not ended", left)
		time.Sleep(after())
		if kills < most/2 {
			running[i%2]()
			kills++
			running[i%2] = start()
		}
	}
}

// allRuns returns all runs of a store.
func allRuns(t *testing.T, store durable.Store) (all []durable.Run) {
	t.Helper()
	for f := (durable.Filter{Limit: 500}); ; f.Before = all[len(all)-1].ID {
		page, err := store.List(t.Context(), f)
		require.NoError(t, err)
		all = append(all, page...)
		if len(page) < f.Limit {
			return all
		}
	}
}
