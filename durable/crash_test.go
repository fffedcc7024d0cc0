package durable_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/postgres"
	"github.com/grapnel-go/grapnel/durable/sqlite"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/parts"
	"github.com/grapnel-go/grapnel/toolexec"
)

// The crash test: a process runs 50 steps and is killed with SIGKILL at a random moment,
// others continue the run until it has ended. "make crash" does it 200 times on SQLite
// and 50 times on PostgreSQL; a plain test a few times.
const (
	crashDir   = "GRAPNEL_CRASH_DIR"   // in which a process that is going to be killed works
	crashStore = "GRAPNEL_CRASH_STORE" // where it keeps its run: a URL, or a file
	crashRuns  = "GRAPNEL_CRASH_RUNS"  // how often it is done, for SQLite; a quarter of it for PostgreSQL
	crashSeed  = "GRAPNEL_CRASH_SEED"
	crashBelow = "GRAPNEL_CRASH_BELOW" // when set, it is a sub-agent that does the work
	crashKey   = "GRAPNEL_CRASH_KEY"   // when set, the store is encrypted

	crashSteps = 50
	crashRun   = agent.RunID("run_crash")
)

func TestCrashSQLite(t *testing.T) {
	t.Parallel()
	crash(t, crashCount(4), func(t *testing.T, dir string) string { return filepath.Join(dir, "runs.db") })
}

func TestCrashPostgres(t *testing.T) {
	t.Parallel()
	crash(t, max(crashCount(4)/2, 2), func(t *testing.T, _ string) string { return parts.Postgres(t) })
}

// The same with encrypted stores.
func TestCrashEncrypted(t *testing.T) {
	t.Setenv(crashKey, "yes")
	crash(t, max(crashCount(4)/2, 2), func(t *testing.T, dir string) string { return filepath.Join(dir, "runs.db") })
	if !testing.Short() {
		crash(t, max(crashCount(4)/4, 1), func(t *testing.T, _ string) string { return parts.Postgres(t) })
	}
}

// The same with the steps in a sub-agent of the durable run.
func TestCrashSubagentSQLite(t *testing.T) {
	t.Setenv(crashBelow, "yes")
	crash(t, max(crashCount(4)/2, 2), func(t *testing.T, dir string) string { return filepath.Join(dir, "runs.db") })
}

func crashCount(usual int) int {
	if n, err := strconv.Atoi(os.Getenv(crashRuns)); err == nil {
		return n
	}
	if testing.Short() {
		return usual / 4
	}
	return usual
}

func openAt(ctx context.Context, where string) (durable.Store, error) {
	var e *durable.Encryption
	if os.Getenv(crashKey) != "" {
		e = &durable.Encryption{Key: bytes.Repeat([]byte("k"), 32)}
	}
	if strings.Contains(where, "://") || strings.Contains(where, "host=") {
		return postgres.Open(ctx, where, postgres.Options{Encryption: e})
	}
	return sqlite.Open(ctx, where, sqlite.Options{Sync: sqlite.SyncNormal, Encryption: e}) // a process is killed here, not the power cut off
}

// crashing executes the process that is going to be killed, and returns its exit code: it begins the run, or
// continues it. It writes a line into a file for each effect outside of the journal.
func crashing(dir string) int {
	ctx := context.Background()
	err := func() error {
		store, err := openAt(ctx, os.Getenv(crashStore))
		if err != nil {
			return err
		}
		defer store.Close()
		if os.Getenv(crashPays) != "" {
			return paying(ctx, store, dir)
		}
		if os.Getenv(crashWorks) != "" {
			return working(ctx, store, dir)
		}
		k := durable.Keep(store, durable.Options{})
		a, err := crashAgent(k, dir)
		if err != nil {
			return err
		}
		_, err = k.Resume(ctx, a, crashRun, durable.TakeFree).Get() // who had it is gone, and known to be
		if errors.Is(err, durable.ErrNotFound) || errors.Is(err, durable.ErrNotBegun) {
			if errors.Is(err, durable.ErrNotBegun) {
				if err := store.Delete(ctx, crashRun); err != nil {
					return err
				}
			}
			_, err = a.RunWith(ctx, agent.RunSettings{ID: crashRun}, agent.NewState(), agent.UserText("go")).Get()
		}
		return err
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func noteIn(dir, file, line string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line)
	return errors.Join(err, f.Close())
}

func crashAgent(k *durable.Keeper, dir string) (*agent.Agent, error) {
	tool := toolexec.CallFunc(agent.ToolSpec{Name: "append"}, func(_ context.Context, c toolexec.Call, in struct{ N int }) (string, error) {
		return fmt.Sprint("appended ", in.N), noteIn(dir, "effects", c.IdempotencyKey())
	})
	driver := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
		n := s.RunStepCount()
		if err := noteIn(dir, "replies", strconv.Itoa(n)); err != nil {
			return agent.Step{}, err
		}
		if n == crashSteps {
			return agent.Step{Message: agent.Assistant("Done.")}, nil
		}
		return agent.Step{Message: agent.Assistant("", agent.ToolCall{ID: fmt.Sprint("call_", n), Name: "append", Arguments: fmt.Sprintf(`{"N":%d}`, n)})}, nil
	})
	mail := hooks.On(hooks.AtStepEnd, "mail", func(ctx context.Context, c hooks.StepEndContext) hooks.Result {
		if c.StepIndex()%10 != 0 {
			return c.Pass()
		}
		_, err := k.Once(ctx, c.State(), fmt.Sprint("mail ", c.StepIndex()), true, func(_ context.Context, key string) ([]byte, error) {
			return nil, noteIn(dir, "mails", key)
		})
		if err != nil {
			return c.Fail(err)
		}
		return c.Pass()
	})
	works := builder.New().WithName("crash").WithDriver(driver).
		With(capability.UseTools(toolexec.WithPolicy(tool, toolexec.Policy{Doubt: toolexec.DoubtRepeat})))
	kept := []capability.Capability{capability.UseHooks(mail), capability.UseDurability{Keeper: k}}
	if os.Getenv(crashBelow) == "" {
		return works.With(kept...).Build().Get()
	}
	above := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
		if s.RunStepCount() == 1 {
			return agent.Step{Message: agent.Assistant("Done, too.")}, nil
		}
		if err := noteIn(dir, "replies", "above"); err != nil {
			return agent.Step{}, err
		}
		return agent.Step{Message: agent.Assistant("", agent.ToolCall{ID: crashTask, Name: "task", Arguments: `{"agent":"crash","instruction":"go"}`})}, nil
	})
	return builder.New().WithName("above").WithDriver(above).
		With(capability.UseSubagents{Agents: []capability.Subagent{{Agent: works}}}).With(kept...).Build().Get()
}

// crashTask is the call that starts the sub-agent.
const crashTask = "task"

// crashMails returns how often a mail is sent: by the sub-agent, and by the run above it.
func crashMails() int {
	if os.Getenv(crashBelow) == "" {
		return crashSteps/10 + 1
	}
	return crashSteps/10 + 2
}

// counted returns the lines of a file with the number of their occurrences.
func counted(t *testing.T, dir, file string) map[string]int {
	t.Helper()
	out := map[string]int{}
	f, err := os.Open(filepath.Join(dir, file))
	if errors.Is(err, os.ErrNotExist) {
		return out
	}
	require.NoError(t, err)
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		out[lines.Text()]++
	}
	return out
}

// crashRandom determines when processes are killed.
func crashRandom(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if given, err := strconv.ParseUint(os.Getenv(crashSeed), 10, 64); err == nil {
		seed = given
	}
	t.Logf("%s=%d brings the same moments", crashSeed, seed)
	return rand.New(rand.NewPCG(seed, 1))
}

func crash(t *testing.T, runs int, where func(t *testing.T, dir string) string) {
	random := crashRandom(t)
	kills, deliveries, asked := 0, 0, 0
	dir := t.TempDir()
	at := where(t, dir) // it may start a server
	started := time.Now()
	require.True(t, process(t, dir, at, nil))
	step := time.Since(started) / crashSteps
	for run := range runs {
		t.Run(strconv.Itoa(run), func(t *testing.T) {
			k, again, twice := crashOnce(t, random, step, where)
			kills, deliveries, asked = kills+k, deliveries+again, asked+twice
		})
	}
	assert.GreaterOrEqual(t, kills, runs, "too few processes were killed")
	t.Logf("%d runs, %d kills, %d calls delivered again, %d replies asked for again", runs, kills, deliveries, asked)
}

// crashOnce executes one run in several processes, and compares the effects with the journal
// after each. An undisturbed step takes about as long as the given time.
func crashOnce(t *testing.T, random *rand.Rand, step time.Duration, where func(t *testing.T, dir string) string) (kills, again, twice int) {
	dir := t.TempDir()
	at := where(t, dir)
	replied, done, doubted, mailed := map[string]int{}, map[string]int{}, map[string]bool{}, map[string]int{}
	for ended := false; !ended; {
		var kill *killing
		if kills < 3 {
			before := len(counted(t, dir, "replies"))
			kill = &killing{before + random.IntN((crashSteps-before)/2+1), time.Duration(random.Int64N(int64(step) + 1))}
		}
		if ended = process(t, dir, at, kill); ended {
			break
		}
		kills++
		journalAfter(t, dir, at, replied, done, doubted, mailed)
	}
	store, err := openAt(t.Context(), at)
	require.NoError(t, err)
	defer store.Close()
	about, err := store.Run(t.Context(), crashRun)
	require.NoError(t, err)
	assert.Equal(t, durable.StatusCompleted, about.Status)
	s, err := durable.Load(t.Context(), store, crashRun)
	require.NoError(t, err)
	assert.Equal(t, undisturbed(t), said(s))

	effects, replies, mails := counted(t, dir, "effects"), counted(t, dir, "replies"), counted(t, dir, "mails")
	assert.Len(t, effects, crashSteps, "every effect is there")
	for key := range done {
		assert.Contains(t, effects, key)
	}
	for key, n := range effects {
		if before, ok := done[key]; ok {
			assert.Equal(t, before, n, "%s was done", key)
		}
		if n > 1 {
			assert.True(t, doubted[key], "%s was delivered %d times and never in doubt", key, n)
			again++
		}
	}
	for step, n := range replies {
		if before, ok := replied[step]; ok {
			assert.Equal(t, before, n, "the reply of step %s was written down", step)
		}
		if n > 1 {
			twice++
		}
	}
	assert.Len(t, mails, crashMails())
	for key, n := range mails {
		if before, ok := mailed[key]; ok {
			assert.Equal(t, before, n, "%s was done", key)
		}
	}
	return kills, again, twice
}

// killing is when a process is killed: some time after the run has a number of replies, however fast the machine is.
type killing struct {
	replies int
	after   time.Duration
}

// process continues the run in a process of its own, and kills it with SIGKILL, unless kill is nil. It reports whether the process
// ended by itself.
func process(t *testing.T, dir, at string, kill *killing) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+dir, crashStore+"="+at)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for killed := false; ; {
		select {
		case err := <-ended:
			if killed && err != nil {
				return false
			}
			require.NoError(t, err, out.String())
			return true
		case <-look.C:
			if kill != nil && !killed && len(counted(t, dir, "replies")) >= kill.replies {
				time.Sleep(kill.after)
				killed = cmd.Process.Kill() == nil
			}
		}
	}
}

// journalAfter records what the journal contains after a kill: none of it may happen
// again.
func journalAfter(t *testing.T, dir, at string, replied, done map[string]int, doubted map[string]bool, mailed map[string]int) {
	t.Helper()
	store, err := openAt(t.Context(), at)
	require.NoError(t, err)
	defer store.Close()
	entries, err := store.Entries(t.Context(), crashRun, 0)
	if errors.Is(err, durable.ErrNotFound) {
		return
	}
	require.NoError(t, err)
	effects, replies, mails := counted(t, dir, "effects"), counted(t, dir, "replies"), counted(t, dir, "mails")
	run, below := crashRun, os.Getenv(crashBelow) != ""
	if below {
		s, err := durable.Load(t.Context(), store, crashRun)
		child, _, ok := agent.Checkpoint(s).Child(crashTask)
		if err != nil || !ok { // it has not begun, or ended
			return
		}
		run = child.Run().ID
	}
	step := 0
	for _, e := range entries {
		kind, nested := strings.CutPrefix(string(e.Kind), "child.")
		if below && e.Kind == durable.EntryReply && replied["above"] == 0 {
			replied["above"] = replies["above"]
		}
		if nested != below && e.Kind != durable.EntryDone {
			continue
		}
		key := fmt.Sprintf("%s/%d/%s", run, step, strings.TrimPrefix(e.Key, crashTask+"/"))
		switch durable.EntryKind(kind) {
		case durable.EntryReply:
			if n := strconv.Itoa(step); replied[n] == 0 {
				replied[n] = replies[n]
			}
		case durable.EntryCall:
			doubted[key] = true
		case durable.EntryResult:
			if done[key] == 0 {
				done[key] = effects[key]
			}
		case durable.EntryDone:
			name := string(crashRun) + "/once/" + e.Key
			if by, mail, ok := strings.Cut(e.Key, "/"); ok { // of the sub-agent
				name = by + "/once/" + mail
			}
			if mailed[name] == 0 {
				mailed[name] = mails[name]
			}
		case durable.EntryStep:
			step++
		}
	}
}

// undisturbed returns the transcript of a run without disturbances.
func undisturbed(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	k := durable.Keep(openStore(t), durable.Options{})
	a, err := crashAgent(k, dir)
	require.NoError(t, err)
	s, err := a.RunWith(t.Context(), agent.RunSettings{ID: crashRun}, agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	return said(s)
}
