package coordinator_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
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

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/sqlite"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// The crash test of hooks that are Go functions, which no "grapnel serve" has: two programs that embed the coordinator call them, and are
// killed with SIGKILL at random moments. cmd/grapnel kills coordinators and runners with hooks of the other types.
const (
	crashDir  = "GRAPNEL_COORDINATOR_CRASH" // set in a process that embeds the coordinator: the directory of the test
	crashRuns = "GRAPNEL_CRASH_RUNS"        // set by "make crash"
	crashSeed = "GRAPNEL_CRASH_SEED"
)

// embed executes runs with their hooks until the process is killed.
func embed(dir string) error {
	ctx := context.Background()
	store, err := sqlite.Open(ctx, filepath.Join(dir, "runs.db"), sqlite.Options{Sync: sqlite.SyncNormal})
	if err != nil {
		return err
	}
	defer store.Close()
	c, err := coordinator.New(coordinator.Options{Store: store, Host: action.Host{Funcs: crashFuncs(dir)}})
	if err != nil {
		return err
	}
	const lease = 2 * time.Second
	keeper := durable.Keep(c.RunnerStore(), durable.Options{Lease: lease})
	o := coordinator.RunnerOptions{}
	runners := c.Runners(keeper, o)
	maps.Copy(runners, c.HookRunners(keeper))
	w, err := durable.NewWorker(store, durable.WorkerOptions{Runners: runners, Labels: c.Labels(o, nil), Lease: lease, Poll: 50 * time.Millisecond})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// crashFuncs returns the hooks of the crash test, which write what they are called for to a file.
func crashFuncs(dir string) map[string]action.Body {
	note := func(r *action.Request) error {
		f, err := os.OpenFile(filepath.Join(dir, "calls.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = fmt.Fprintln(f, r.RunID, r.Point, r.IdempotencyKey)
		time.Sleep(20 * time.Millisecond)
		return err
	}
	return map[string]action.Body{
		"check": func(_ context.Context, r *action.Request) (*action.Decision, error) {
			if err := note(r); err != nil || string(r.Parameters) != `{"n":1}` {
				return &action.Decision{Decision: hooks.Allow}, err
			}
			return &action.Decision{Decision: hooks.Rewrite, Arguments: json.RawMessage(`{"n":1,"checked":true}`)}, nil
		},
		"seal": func(_ context.Context, r *action.Request) (*action.Decision, error) {
			sealed := "sealed: " + strings.TrimPrefix(cmp.Or(r.ResultText, string(r.ResultData)), "sealed: ")
			return &action.Decision{Decision: hooks.Replace, Result: &sealed}, note(r)
		},
		"tell": func(_ context.Context, r *action.Request) (*action.Decision, error) { return nil, note(r) },
	}
}

// Programs with hooks that are Go functions may be killed at any time: each run ends once, with what its hooks have decided once.
func TestKillsWithFuncs(t *testing.T) {
	t.Parallel()
	parts.Command(t, "cat", "install a POSIX system")
	kills, atOnce := 6, 8
	if os.Getenv(crashRuns) != "" { // "make crash"
		kills = 60
	}
	seed := uint64(time.Now().UnixNano())
	if given, err := strconv.ParseUint(os.Getenv(crashSeed), 10, 64); err == nil {
		seed = given
	}
	t.Logf("%s=%d chooses the same moments", crashSeed, seed)
	random := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	store, err := sqlite.Open(t.Context(), filepath.Join(dir, "runs.db"), sqlite.Options{Sync: sqlite.SyncNormal})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	c, err := coordinator.New(coordinator.Options{Store: store, Host: action.Host{Funcs: crashFuncs(dir)}})
	require.NoError(t, err)
	b := &bench{t: t, store: store, c: c}
	hook := func(name string) string { return `{"type": "func", "func": "` + name + `", "on_error": "block"}` }
	b.create(`{"name": "job", "type": "procedural", "command": {"argv": ["cat"], "repeat": true, "env": {"PATH": "` + os.Getenv("PATH") + `"}}, "hooks": {
		"on_run_start": ` + hook("check") + `, "on_result": ` + hook("seal") + `, "on_run_finish": ` + hook("tell") + `}}`)

	programs := []*embedded{startEmbedded(t, dir), startEmbedded(t, dir)}
	var ids []agent.RunID
	for range kills {
		for range max(0, atOnce-openRuns(t, store)) {
			ids = append(ids, b.submit("job", `{"n":1}`))
		}
		time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
		i := random.IntN(len(programs))
		programs[i].kill(t)
		programs[i] = startEmbedded(t, dir)
	}
	for until := time.Now().Add(3 * time.Minute); openRuns(t, store) > 0; time.Sleep(20 * time.Millisecond) {
		require.Less(t, time.Now(), until, "runs have not ended")
	}
	for _, p := range programs {
		p.kill(t)
	}

	keys := map[string]map[string]bool{} // by run and point
	text, err := os.ReadFile(filepath.Join(dir, "calls.log"))
	require.NoError(t, err)
	calls := 0
	for line := range strings.Lines(string(text)) {
		calls++
		at, key, _ := strings.Cut(strings.TrimSpace(line), " ")
		point, key, _ := strings.Cut(key, " ")
		at += " " + point
		if keys[at] == nil {
			keys[at] = map[string]bool{}
		}
		keys[at][key] = true
	}
	for _, id := range ids {
		d, err := c.Run(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, wire.Completed, d.Status, "%+v", d)
		assert.JSONEq(t, `{"n":1,"checked":true}`, string(d.Parameters))
		require.NotNil(t, d.ResultText)
		assert.Equal(t, `sealed: {"n":1,"checked":true}`, *d.ResultText)
		outcomes := map[string]int{}
		for _, e := range d.Hooks {
			if e.EventType != wire.EventHookStart {
				outcomes[e.HookType+" "+e.EventType]++
			}
		}
		assert.Equal(t, 1, outcomes["on_run_finish hook_complete"], "%v", outcomes)
		for _, of := range []string{"on_run_start hook_failed", "on_result hook_failed", "on_run_finish hook_failed"} {
			assert.Zero(t, outcomes[of])
		}
		assert.Len(t, keys[string(id)+" "+string(hooks.RunFinish)], 1, "the call that is repeated has the key of the first")
	}
	assert.Len(t, listAll(t, store, coordinator.KindHooks), len(ids), "one run calls the hooks after each")
	t.Logf("%d kills, %d runs, %d calls of hooks", kills, len(ids), calls)
}

// openRuns returns how many runs have not ended.
func openRuns(t *testing.T, s durable.Store) int {
	t.Helper()
	open, err := s.List(t.Context(), durable.Filter{Status: []durable.Status{
		durable.StatusPending, durable.StatusReady, durable.StatusRunning, durable.StatusWaiting,
	}, Limit: 1000})
	require.NoError(t, err)
	return len(open)
}

// listAll returns all runs of a kind.
func listAll(t *testing.T, s durable.Store, kind durable.Kind) []durable.Run {
	t.Helper()
	all, err := s.List(t.Context(), durable.Filter{Kind: kind, Limit: 10_000})
	require.NoError(t, err)
	return all
}

// embedded is a process that embeds the coordinator.
type embedded struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
}

func startEmbedded(t *testing.T, dir string) *embedded {
	t.Helper()
	p := &embedded{cmd: exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")}
	p.cmd.Env, p.cmd.Stderr = append(os.Environ(), crashDir+"="+dir), &p.stderr
	require.NoError(t, p.cmd.Start())
	return p
}

// kill kills the process, which must not have ended by itself.
func (p *embedded) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Kill())
	require.Error(t, p.cmd.Wait())
	assert.Empty(t, p.stderr.String())
}
