package coordinator_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator"
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
	c, err := coordinator.New(crashOptions(store, dir))
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

// crashOptions returns the options of the coordinators of the crash test.
func crashOptions(store durable.Store, dir string) coordinator.Options {
	o := coordinator.Options{Store: store, Host: action.Host{Funcs: crashFuncs(dir), Parks: true}}
	o.Pipelines.Dir = filepath.Join(dir, "pipelines")
	return o
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

// Programs with hooks that are Go functions may be killed at any time: each run ends once, with what its hooks have decided once. Gates of
// pipelines are answered by a client that gives each answer three times at once, and again later: each counts once.
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
	c, err := coordinator.New(crashOptions(store, dir))
	require.NoError(t, err)
	b := &bench{t: t, store: store, c: c}
	hook := func(name string) string { return `{"type": "func", "func": "` + name + `", "on_error": "block"}` }
	b.create(`{"name": "job", "type": "procedural", "command": {"argv": ["cat"], "repeat": true, "env": {"PATH": "`+os.Getenv("PATH")+`"}}, "hooks": {
		"on_run_start": `+hook("check")+`, "on_result": `+hook("seal")+`, "on_run_finish": `+hook("tell")+`}}`,
		pipelineText(t, "gated", map[string]string{"pipeline.yaml": `
name: gated
stages:
  - name: work
    command: {argv: ["true"]}
    termination: {type: fixed, iterations: 3}
hooks: {on_iteration_start: [{type: gate, by: person, reason: "Iteration ${ITERATION}?", await: true}]}
`}, ""))
	people := &clerk{t: t, store: b.client(b.serve(), coordinator.Operator).OperatorStore()}
	t.Cleanup(func() { require.NoError(t, people.store.Close()) })
	ctx, stop := context.WithCancel(t.Context())
	var working sync.WaitGroup
	working.Go(func() { people.work(ctx) })
	defer working.Wait()
	defer stop()

	programs := []*embedded{startEmbedded(t, dir), startEmbedded(t, dir)}
	var ids, gated []agent.RunID
	for range kills {
		for range max(0, atOnce-openRuns(t, store)) {
			if ids = append(ids, b.submit("job", `{"n":1}`)); len(ids)%3 == 1 {
				gated = append(gated, b.submit("gated", `{}`))
			}
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
	stop()
	working.Wait()
	people.check(c, gated)

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
		require.Equal(t, coordinator.Completed, d.Status, "%+v", d)
		assert.JSONEq(t, `{"n":1,"checked":true}`, string(d.Parameters))
		require.NotNil(t, d.ResultText)
		assert.Equal(t, `sealed: {"n":1,"checked":true}`, *d.ResultText)
		outcomes := map[string]int{}
		for _, e := range d.Hooks {
			if e.EventType != coordinator.EventHookStart {
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
	t.Logf("%d kills, %d runs, %d calls of hooks, %d answers of which %d came again later", kills, len(ids)+len(gated), calls, len(people.given), people.late)
}

// clerk answers what runs ask, through the API. It gives each answer twice again, and once more when its run asks something else.
type clerk struct {
	t     *testing.T
	store durable.Store
	given []*givenAnswer
	late  int
}

// givenAnswer is an answer that was recorded.
type givenAnswer struct {
	wait     durable.Wait
	approval agent.Approval
	late     bool
}

// work answers until ctx is done.
func (c *clerk) work(ctx context.Context) {
	for tick := time.NewTicker(20 * time.Millisecond); ctx.Err() == nil; {
		waits, _ := c.store.OpenWaits(ctx, durable.WaitFilter{Kinds: []durable.WaitKind{durable.WaitApproval}}) // again, if it fails
		for _, w := range waits {
			for _, g := range c.given {
				if g.wait.Run == w.Run && g.wait.ID != w.ID && !g.late && c.isRefused(ctx, g) {
					g.late = true
					c.late++
				}
			}
			g := &givenAnswer{wait: w, approval: agent.Approval{Verdict: agent.Approve, Reason: "fine"}}
			if _, err := durable.Decide(ctx, c.store, w, g.approval); err != nil { // again, if the run still asks
				continue
			}
			c.given = append(c.given, g)
			for range 2 {
				c.isRefused(ctx, g)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// isRefused gives an answer again, and reports whether it was refused as used.
func (c *clerk) isRefused(ctx context.Context, g *givenAnswer) bool {
	_, err := durable.Decide(ctx, c.store, g.wait, g.approval)
	told, refused := errors.AsType[*durable.NotOpenError](err)
	if ctx.Err() != nil {
		return false
	}
	return assert.True(c.t, refused, "%s of run %s: %v", g.wait.ID, g.wait.Run, err) && assert.ErrorIs(c.t, told, durable.ErrAnswered) &&
		assert.Len(c.t, told.Answers, 1)
}

// check compares what was answered with what was recorded.
func (c *clerk) check(of *coordinator.Coordinator, runs []agent.RunID) {
	c.t.Helper()
	assert.Positive(c.t, c.late)
	for _, id := range runs {
		d, err := of.Run(c.t.Context(), id)
		require.NoError(c.t, err)
		assert.Equal(c.t, coordinator.Completed, d.Status, "%+v", d)
		records, err := c.store.AuditRecords(c.t.Context(), durable.AuditFilter{Kind: durable.AuditAnswer, Run: id})
		require.NoError(c.t, err)
		asked := lo.Uniq(lo.Map(records, func(r durable.AuditRecord, _ int) string { return r.Answer.Wait }))
		assert.Len(c.t, records, len(asked), "one answer to each question of run %s", id)
		assert.GreaterOrEqual(c.t, len(asked), 3, "each iteration of run %s was asked about", id)
		given := lo.FilterMap(c.given, func(g *givenAnswer, _ int) (string, bool) { return g.wait.ID, g.wait.Run == id })
		assert.ElementsMatch(c.t, given, asked)
	}
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
