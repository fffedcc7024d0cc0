package policy_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/policy"
)

// scopeRules has four actions at one firing, each of which depends on the earlier ones, and a detached action.
const scopeRules = `
hooks:
  on_iteration_complete:
    - {id: background, type: func, func: background}
    - {id: tests, type: func, func: tests, await: true}
    - {id: notify, type: http, url: "${HOOK_URL}", await: true, when: "LAST_HOOK_STATUS == 'failed'"}
    - {id: child, type: spawn, pipeline: child, inputs: {said: "${HOOK_RESPONSE}"}}
    - {id: last, type: func, func: last, await: true, when: "SPAWN_OUTPUT == 'spawned' && HOOK_RESPONSE == 'heard' && actions.tests.status == 'failed'"}
`

// engine is the program that runs a pipeline, in all its processes.
type engine struct {
	mu        sync.Mutex
	done      []string
	last      []action.Variables
	keys      []string
	interrupt context.CancelCauseFunc // ends the process in the last action; nil: the action ends well
}

func (e *engine) add(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.done = append(e.done, what)
}

// Spawn runs a pipeline.
func (e *engine) Spawn(_ context.Context, s action.SpawnStart) (string, error) {
	e.add("spawn " + string(s.Inputs))
	return "spawned", nil
}

// ServeHTTP is the web service of the http action.
func (e *engine) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	e.add("notify")
	_, _ = w.Write([]byte("heard"))
}

// compile returns the pipeline's hooks as each process compiles them.
func (e *engine) compile(t *testing.T) *hooks.Compiled {
	t.Helper()
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	t.Setenv("HOOK_URL", server.URL)
	host := action.Host{Spawner: e, Funcs: map[string]action.Body{
		"background": func(context.Context, *action.Request) (*action.Decision, error) {
			e.add("background")
			return nil, nil
		},
		"tests": func(context.Context, *action.Request) (*action.Decision, error) {
			e.add("tests")
			return nil, errors.New("2 tests failed")
		},
		"last": func(ctx context.Context, r *action.Request) (*action.Decision, error) {
			e.add("last")
			e.mu.Lock()
			e.last, e.keys = append(e.last, r.Variables), append(e.keys, r.IdempotencyKey)
			e.mu.Unlock()
			if e.interrupt == nil {
				return nil, nil
			}
			e.interrupt(agent.ErrSuspended)
			<-ctx.Done()
			return nil, ctx.Err()
		},
	}}
	p, err := policy.ParseKind(policy.Pipelines, "pipeline.yaml", []byte(scopeRules), policy.Options{Host: host})
	require.NoError(t, err)
	return lo.Must(set(t, p).Compile())
}

// fired is the firing of these tests.
var fired = hooks.Firing{Point: hooks.IterationComplete, Stage: "work", Iteration: 2}

// Outside of an agent's run, an action that is not waited for runs and Drain waits for it, each
// action knows what the ones before it came to, and observers get the events.
func TestActionsOfAScope(t *testing.T) {
	e := &engine{}
	seen := agenttest.Record()
	scope := e.compile(t).OpenScope(t.Context(), hooks.ScopeOptions{Observer: seen})
	for range 2 { // a second firing begins with no status
		_, stop, err := scope.Pipeline(t.Context(), agent.NewState(), fired, hooks.Pipeline{ChangedFiles: []string{"a", "b"}})
		require.NoError(t, err)
		assert.Nil(t, stop)
		require.NoError(t, scope.Drain(t.Context()))
	}
	each := []string{"background", "tests", "notify", `spawn {"said":"heard"}`, "last"}
	assert.ElementsMatch(t, append(each, each...), e.done)
	require.Len(t, e.last, 2)
	assert.Equal(t, []string{"work", "a\nb", "success", "heard", "spawned"},
		[]string{e.last[0].Stage, e.last[0].ChangedFiles, e.last[0].LastHookStatus, e.last[0].HookResponse, e.last[0].SpawnOutput})
	kinds := map[string][]hooks.EventKind{}
	for _, ev := range agenttest.Of[hooks.Event](seen)[:12] {
		assert.Equal(t, scope.Run().ID, ev.Run.ID)
		if !ev.Detached {
			kinds[ev.Hook] = append(kinds[ev.Hook], ev.Kind)
		}
	}
	assert.Equal(t, []hooks.EventKind{hooks.HookStart, hooks.HookFailed}, kinds["run.pipeline/tests"], "%v", kinds)
	assert.Equal(t, []hooks.EventKind{hooks.HookStart, hooks.HookComplete}, kinds["run.pipeline/last"], "%v", kinds)
}

// AP-54: a firing begins with no status, also when one rule alone is asked.
func TestAFiringIsAnOccasion(t *testing.T) {
	ran := 0
	p, err := policy.ParseKind(policy.Pipelines, "pipeline.yaml", []byte(`
hooks: {on_iteration_start: {type: func, func: count, await: true, when: "LAST_HOOK_STATUS == ''"}}
`), policy.Options{Host: action.Host{Funcs: map[string]action.Body{"count": func(context.Context, *action.Request) (*action.Decision, error) {
		ran++
		return nil, nil
	}}}})
	require.NoError(t, err)
	scope := lo.Must(set(t, p).Compile()).OpenScope(t.Context(), hooks.ScopeOptions{})
	for i := range 3 {
		_, _, err := scope.Pipeline(t.Context(), agent.NewState(), hooks.Firing{Point: hooks.IterationStart, Iteration: i + 1}, hooks.Pipeline{})
		require.NoError(t, err)
	}
	assert.Equal(t, 3, ran)
}

// lastOnly checks that the second process repeated only the action that the first one had not ended, with the same request and key.
func (e *engine) lastOnly(t *testing.T) {
	t.Helper()
	assert.ElementsMatch(t, []string{"background", "tests", "notify", `spawn {"said":"heard"}`, "last", "last"}, e.done)
	require.Len(t, e.last, 2)
	assert.Equal(t, e.last[0], e.last[1], "also the time, the changed files and the status before it")
	assert.Equal(t, "a\nb", e.last[1].ChangedFiles)
	assert.Equal(t, e.keys[0], e.keys[1])
	assert.NotEmpty(t, e.keys[0])
}

// storeJournal is a run's journal on a store, without a keeper.
type storeJournal struct {
	mu    sync.Mutex
	store durable.Store
	lease durable.Lease
	seq   int64
	done  map[string][]byte
}

func openJournal(t *testing.T, store durable.Store, id agent.RunID) *storeJournal {
	t.Helper()
	lease, err := store.Begin(t.Context(), durable.Job{ID: id}, "engine", time.Minute)
	if errors.Is(err, durable.ErrExists) {
		lease, err = store.Acquire(t.Context(), id, "engine", time.Minute, durable.TakeOver)
	}
	require.NoError(t, err)
	entries, err := store.Entries(t.Context(), id, 0)
	require.NoError(t, err)
	j := &storeJournal{store: store, lease: lease, seq: int64(len(entries)), done: map[string][]byte{}}
	for _, entry := range entries {
		if entry.Kind == durable.EntryDone {
			j.done[entry.Key] = entry.Data
		}
	}
	return j
}

func (j *storeJournal) add(ctx context.Context, kind durable.EntryKind, name string, data []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.seq++
	return j.store.Commit(context.WithoutCancel(ctx), j.lease, durable.Commit{
		Entries: []durable.Entry{{Seq: j.seq, Kind: kind, Key: name, At: time.Now(), Data: data}},
	})
}

// Once does something once per run.
func (j *storeJournal) Once(
	ctx context.Context, s agent.State, name string, _ bool, do func(ctx context.Context, key string) ([]byte, error),
) ([]byte, error) {
	j.mu.Lock()
	data, done := j.done[name]
	j.mu.Unlock()
	if done {
		return data, nil
	}
	if err := j.add(ctx, durable.EntryOnce, name, nil); err != nil {
		return nil, err
	}
	data, err := do(ctx, string(s.Run().ID)+name)
	if err != nil {
		return nil, err
	}
	return data, j.add(ctx, durable.EntryDone, name, data)
}

// AP-60, AP-61: a process that ends between two actions of a firing leaves the rest to the next process,
// which repeats no action that has ended, successful or not.
func TestAScopeSurvivesACrash(t *testing.T) {
	e := &engine{}
	path := filepath.Join(t.TempDir(), "runs.db")
	for _, crash := range []bool{true, false} {
		store := openRuns(t, path)
		ctx, cancel := context.WithCancelCause(t.Context())
		e.interrupt = nil
		about := hooks.Pipeline{ChangedFiles: []string{"c", "and what the first process changed"}}
		if crash {
			e.interrupt, about = cancel, hooks.Pipeline{ChangedFiles: []string{"a", "b"}}
		}
		scope := e.compile(t).OpenScope(ctx, hooks.ScopeOptions{
			Run: agent.Run{ID: "run_p", Session: "ses_p"}, Journal: openJournal(t, store, "run_p"),
		})
		_, stop, err := scope.Pipeline(ctx, agent.NewState(), fired, about)
		assert.Equal(t, crash, errors.Is(err, agent.ErrSuspended), "%v", err)
		assert.Nil(t, stop)
		require.NoError(t, scope.Drain(t.Context()))
		cancel(nil)
	}
	e.lastOnly(t)
}

// keeperJournal is the journal of an agent's run, for a pipeline that runs within it.
type keeperJournal struct {
	keeper *durable.Keeper
	above  agent.State
}

// Once does something once per run above.
func (j keeperJournal) Once(
	ctx context.Context, _ agent.State, name string, repeat bool, do func(ctx context.Context, key string) ([]byte, error),
) ([]byte, error) {
	return j.keeper.Once(ctx, j.above, "pipeline "+name, repeat, do)
}

// A durable.Keeper is such a journal, in a run that it keeps.
func TestAKeptScope(t *testing.T) {
	e := &engine{}
	path := filepath.Join(t.TempDir(), "runs.db")
	for _, crash := range []bool{true, false} {
		k := durable.Keep(openRuns(t, path), durable.Options{})
		ctx, cancel := context.WithCancelCause(t.Context())
		e.interrupt = nil
		about := hooks.Pipeline{ChangedFiles: []string{"c"}}
		if crash {
			e.interrupt, about = cancel, hooks.Pipeline{ChangedFiles: []string{"a", "b"}}
		}
		compiled := e.compile(t)
		pipeline := hooks.On(hooks.AtStepStart, "pipeline", func(ctx context.Context, c hooks.StepContext) hooks.Result {
			scope := compiled.OpenScope(ctx, hooks.ScopeOptions{
				Run: agent.Run{ID: "run_p", Session: "ses_p", Parent: c.Run().ID}, Journal: keeperJournal{k, c.State()},
			})
			_, _, err := scope.Pipeline(ctx, c.State(), fired, about)
			if err = errors.Join(err, scope.Drain(context.WithoutCancel(ctx))); err != nil {
				return c.Fail(err)
			}
			return c.Allow()
		})
		a, err := builder.New().WithDriver(agenttest.Script(agenttest.Say("Done."))).
			With(capability.UseHooks(pipeline), capability.UseDurability{Keeper: k}).Build().Get()
		require.NoError(t, err)
		var s agent.State
		if crash {
			s, err = a.RunWith(ctx, agent.RunSettings{ID: keptRun}, agent.NewState(), agent.UserText("go")).Get()
			require.True(t, err != nil || s.Parked(), "%s", s.Status())
		} else {
			s, err = k.Resume(ctx, a, keptRun, durable.TakeOver).Get()
			require.NoError(t, err)
			assert.Equal(t, agent.StatusDone, s.Status())
		}
		cancel(nil)
	}
	e.lastOnly(t)
}

// A retry has its own journal entry: its failure differs from the failure before.
func TestRetriesOfAScope(t *testing.T) {
	journal := openJournal(t, openRuns(t, filepath.Join(t.TempDir(), "runs.db")), "run_p")
	left := 2
	for name, await := range map[string]string{"waited for": "true", "in the background": "false"} {
		t.Run(name, func(t *testing.T) {
			tries := 0
			left = 2
			host := action.Host{Funcs: map[string]action.Body{"fails": func(context.Context, *action.Request) (*action.Decision, error) {
				tries++
				if left--; left >= 0 {
					return nil, errors.New("not yet")
				}
				return nil, nil
			}}}
			p, err := policy.ParseKind(policy.Pipelines, "pipeline.yaml", []byte(`
hooks:
  on_stage_complete: {type: func, func: fails, await: `+await+`, on_failure: retry, retries: 5, retry_delay: 1ms}
`), policy.Options{Host: host})
			require.NoError(t, err)
			for range 2 {
				scope := lo.Must(set(t, p).Compile()).OpenScope(t.Context(), hooks.ScopeOptions{
					Run: agent.Run{ID: "run_p"}, Journal: journal,
				})
				_, _, err := scope.Pipeline(t.Context(), agent.NewState(), hooks.Firing{Point: hooks.StageComplete, Cursor: name}, hooks.Pipeline{})
				require.NoError(t, err)
				require.NoError(t, scope.Drain(t.Context()))
				journal.reload(t)
			}
			assert.Equal(t, 3, tries, "the second process repeats none of them")
		})
	}
}

func (j *storeJournal) reload(t *testing.T) {
	t.Helper()
	entries, err := j.store.Entries(t.Context(), j.lease.Run, 0)
	require.NoError(t, err)
	for _, entry := range entries {
		if entry.Kind == durable.EntryDone {
			j.done[entry.Key] = entry.Data
		}
	}
}

// The journal keeps hook results at coordinator points, too: an action's decision is repeated from it.
func TestADecisionOfAScopeIsKept(t *testing.T) {
	journal := openJournal(t, openRuns(t, filepath.Join(t.TempDir(), "runs.db")), "run_b")
	asked := 0
	p := load(t, `
policy: p
hooks: {RunStart: [{id: judge, type: func, func: judge}]}
`, policy.Options{Host: action.Host{Funcs: map[string]action.Body{"judge": func(context.Context, *action.Request) (*action.Decision, error) {
		asked++
		return &action.Decision{Decision: hooks.Deny, Reason: "not today"}, nil
	}}}})
	for range 2 {
		scope := lo.Must(set(t, p).Compile()).OpenScope(t.Context(), hooks.ScopeOptions{Run: agent.Run{ID: "run_b"}, Journal: journal})
		_, _, denied, err := scope.Blueprint(t.Context(), agent.NewState(), hooks.Firing{Point: hooks.RunStart},
			hooks.BlueprintRun{Parameters: json.RawMessage(`{}`)})
		require.NoError(t, err)
		require.ErrorContains(t, denied, "not today")
		journal.reload(t)
	}
	assert.Equal(t, 1, asked)
}
