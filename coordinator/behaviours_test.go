package coordinator_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/registry"
)

// withNames gives a coordinator a registry with hooks of some names.
func withNames(names ...string) func(o *coordinator.Options) {
	known := registry.Registry{Hooks: map[string]registry.Maker[[]hooks.Hook]{}}
	for _, name := range names {
		known.Hooks[name] = registry.UseHooks()
	}
	return func(o *coordinator.Options) { o.Registry = &known }
}

// SW-20: the agent in a blueprint lists its hooks by name, and the lists are the same after the blueprint was stored, shown and changed.
func TestHookNamesRoundTrip(t *testing.T) {
	b := newBench(t, withNames("budget-check", "audit", "notify", "guard"))
	api := b.client(b.serve(), wire.Admin)
	definition := `{"preHooks": ["budget-check", "audit"], "hooks": ["guard"], "postHooks": ["notify"]}`
	names := func(p *wire.Blueprint) [][]registry.Part {
		var d registry.Definition
		if len(p.Agent) > 0 {
			require.NoError(t, json.Unmarshal(p.Agent, &d))
		}
		return [][]registry.Part{d.PreHooks, d.Hooks, d.PostHooks}
	}
	want := [][]registry.Part{{{Name: "budget-check"}, {Name: "audit"}}, {{Name: "guard"}}, {{Name: "notify"}}}
	_, err := api.CreateBlueprint(t.Context(), json.RawMessage(`{"name": "clerk", "type": "autonomous", "agent": `+definition+`}`))
	require.NoError(t, err)
	s, err := api.Blueprint(t.Context(), "clerk", 0)
	require.NoError(t, err)
	assert.JSONEq(t, definition, string(s.Agent))
	assert.Equal(t, want, names(&s.Blueprint))
	s, err = api.UpdateBlueprint(t.Context(), "clerk", json.RawMessage(`{"description": "d"}`), 0)
	require.NoError(t, err)
	assert.JSONEq(t, definition, string(s.Agent))
	text, err := json.Marshal(s.Blueprint)
	require.NoError(t, err)
	again, err := coordinator.ParseBlueprint(text)
	require.NoError(t, err)
	assert.Equal(t, want, names(again))

	s, err = api.CreateBlueprint(t.Context(), json.RawMessage(`{"name": "other", "type": "autonomous"}`))
	require.NoError(t, err)
	assert.Equal(t, [][]registry.Part{nil, nil, nil}, names(&s.Blueprint), "absent lists are empty")
}

// SW-21, SW-22: unknown and repeated names of hooks are refused when a blueprint is stored or changed, with the place and the nearest name.
func TestWrongHookNames(t *testing.T) {
	b := newBench(t, withNames("budget-check", "audit"))
	b.create(`{"name": "clerk", "type": "autonomous", "agent": {"preHooks": ["audit"]}}`)
	for text, want := range map[string]coordinator.FieldError{
		`{"preHooks": ["audit", "budget-chek"]}`: {Field: "agent.preHooks.1", Message: `unknown hook "budget-chek" (did you mean "budget-check"?)`},
		`{"postHooks": ["log"]}`:                 {Field: "agent.postHooks.0", Message: `unknown hook "log"; known: "audit", "budget-check"`},
		`{"postHooks": ["audit", "audit"]}`:      {Field: "agent.postHooks.1", Message: `the hook "audit" is listed twice`},
		`{"prehooks": ["audit"]}`:                {Field: "agent.prehooks", Message: `unknown key "prehooks"`},
	} {
		check := func(err error) {
			t.Helper()
			wrong, ok := errors.AsType[*coordinator.InvalidError](err)
			require.True(t, ok, "%s: %v", text, err)
			require.Len(t, wrong.Fields, 1, text)
			assert.Equal(t, want.Field, wrong.Fields[0].Field)
			assert.Contains(t, wrong.Fields[0].Message, want.Message)
		}
		_, err := b.c.CreateBlueprint(t.Context(), []byte(`{"name": "new", "type": "autonomous", "agent": `+text+`}`), "ann")
		check(err)
		_, err = b.c.UpdateBlueprint(t.Context(), "clerk", []byte(`{"agent": `+text+`}`), 0, "ann")
		check(err)
	}
}

// SW-23, SW-24: hooks after a run get its duration and its status, after a failure as well.
func TestDurationOfRuns(t *testing.T) {
	got := map[hooks.PointName]*action.Request{}
	b := newBench(t, withTell(func(r *action.Request) { got[r.Point] = r }))
	b.create(exampleAgent("audit"), `{"name": "job", "type": "procedural", "command": {"argv": ["sh", "-c", "sleep 0.01; exit 3"]}, "hooks": {
		"on_run_start": `+tellHook+`, "on_error": `+tellHook+`,
		"on_run_finish": [`+tellHook+`, {"type": "agent", "agent_name": "audit", "on_error": "continue", "request": "full"}]}}`)
	var full string
	b.answers["audit"] = func(input string) string { full = input; return "{}" }
	d := b.work(b.submit("job", `{}`))
	require.Equal(t, wire.Failed, d.Status)
	assert.Zero(t, got[hooks.RunStart].Duration)
	took := time.Duration(got[hooks.RunFinish].Duration)
	assert.GreaterOrEqual(t, took, 10*time.Millisecond)
	assert.LessOrEqual(t, took, d.UpdatedAt.Sub(d.CreatedAt))
	assert.Equal(t, got[hooks.RunFinish].Duration, got[hooks.RunFailed].Duration)
	assert.Equal(t, "failed", string(got[hooks.RunFinish].Status))
	var in struct {
		Duration int64  `json:"duration_ms"`
		Status   string `json:"status"`
	}
	require.NoError(t, json.Unmarshal([]byte(full), &in))
	assert.Equal(t, took.Milliseconds(), in.Duration)
	assert.Equal(t, "failed", in.Status)
}

// changedStore has other texts of blueprints than were stored.
type changedStore struct {
	durable.Store

	change func(text string) string
}

func (s changedStore) Document(ctx context.Context, kind, name string, version int64) (durable.Document, error) {
	d, err := s.Store.Document(ctx, kind, name, version)
	if kind == wire.KindBlueprint && name == "job" {
		d.Data = []byte(s.change(string(d.Data)))
	}
	return d, err
}

// LH-12: a worker that has started cold calls the hooks of a run with only what is in the store; when it cannot read them, it says so and
// executes nothing.
func TestColdWorker(t *testing.T) {
	hook := `{"type": "agent", "agent_name": "check", "on_error": "block", "timeout_seconds": 600}`
	for name, c := range map[string]struct{ old, new, want string }{
		"unknown member":   {`"hooks":`, `"hoks":`, `"hoks" is not known`},
		"unknown point":    {"on_run_start", "on_run_begin", `"on_run_begin"`},
		"unknown on_error": {`"block"`, `"blck"`, "blck"},
		"unknown type":     {`"type":"agent"`, `"type":"agnt"`, "agnt"},
		"unknown mode":     {`"on_error":"block"`, `"on_error":"block","mode":"enforc"`, "enforc"},
		"not an object":    {`"hooks":{`, `"hooks":"","definitions":{`, "hooks"},
		"unknown name":     {`{"type":"agent"`, `{"$ref":"a","type":"agent"`, "unknown definition"},
		"cut off":          {`}}}`, `}}`, "reading version 1 of blueprint"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // a worker waits before it tries again
			b := newBench(t)
			b.create(`{"name": "check", "type": "procedural", "command": {"argv": ["echo", "{\"action\": \"continue\", \"parameters\": {\"checked\": true}}"]}}`, startHook(hook))
			id := b.submit("job", `{}`)
			cold := func(change func(text string) string) {
				store := changedStore{b.store, change}
				c, err := coordinator.New(coordinator.Options{Store: store})
				require.NoError(t, err)
				b.c = c
			}
			changed := false
			cold(func(text string) string {
				after := strings.Replace(text, c.old, c.new, 1)
				changed = changed || after != text
				return after
			})
			k := durable.Keep(b.c.RunnerStore(), durable.Options{})
			o := b.runnerOptions(k)
			runners := b.c.Runners(k, o)
			maps.Copy(runners, b.c.HookRunners(k))
			var failed error
			w, err := durable.NewWorker(b.store, durable.WorkerOptions{Runners: runners, Labels: b.c.Labels(o, nil), Observe: func(e durable.WorkerEvent) {
				failed = errors.Join(failed, e.Err)
			}})
			require.NoError(t, err)
			for range 3 {
				require.NoError(t, w.ExecuteReady(t.Context()))
			}
			require.True(t, changed)
			require.ErrorContains(t, failed, c.want)
			require.ErrorContains(t, failed, `"job"`)
			r, err := b.store.Run(t.Context(), id)
			require.NoError(t, err)
			assert.False(t, r.Status.Ended())
			assert.Equal(t, coordinator.KindHooks, r.Phase, "no runner gets it")
			_, err = b.c.Submit(t.Context(), wire.RunRequest{AgentName: "job"}, "ann")
			require.ErrorContains(t, err, c.want)

			cold(func(text string) string { return text })
			defer b.run(b.worker())()
			assert.JSONEq(t, `{"checked": true}`, string(b.await(id).ResultData))
		})
	}
}

// LH-81: a run that waits for the run of its hook continues when that has ended, although the process that has called the hook is gone.
func TestRunOfAHookOutlivesItsProcess(t *testing.T) {
	b := newBench(t)
	b.create(`{"name": "check", "type": "procedural", "command": {"argv": ["echo", "{\"action\": \"continue\", \"parameters\": {\"checked\": true}}"]}}`,
		startHook(`{"type": "agent", "agent_name": "check", "on_error": "block"}`))
	id := b.submit("job", `{}`)
	parked := b.park(id)
	another, err := coordinator.New(coordinator.Options{Store: b.store})
	require.NoError(t, err)
	b.c = another
	b.executeOnly(t, durable.KindCommand)
	child, err := b.store.Run(t.Context(), parked.Child)
	require.NoError(t, err)
	require.Equal(t, durable.StatusCompleted, child.Status)
	d := b.work(id)
	assert.JSONEq(t, `{"checked": true}`, string(d.ResultData))
	assert.Equal(t, []string{"hook_start", "hook_complete"}, eventTypes(d))
}

// park calls the hooks of a run until it waits for the run of one, and returns the wait. The worker is gone then.
func (b *bench) park(id agent.RunID) durable.Wait {
	b.t.Helper()
	stop := b.run(b.hooksWorker())
	defer stop()
	var waits []durable.Wait
	require.Eventually(b.t, func() bool {
		var err error
		waits, err = b.store.Waits(b.t.Context(), id)
		return err == nil && len(waits) == 1
	}, time.Minute, 5*time.Millisecond)
	return waits[0]
}

// executeOnly executes what is ready of one kind.
func (b *bench) executeOnly(t *testing.T, kind durable.Kind) {
	t.Helper()
	k := durable.Keep(b.c.RunnerStore(), durable.Options{})
	o := b.runnerOptions(k)
	w, err := durable.NewWorker(b.store, durable.WorkerOptions{
		Runners: map[durable.Kind]durable.Runner{kind: b.c.Runners(k, o)[kind]}, Labels: b.c.Labels(o, nil),
	})
	require.NoError(t, err)
	require.NoError(t, w.ExecuteReady(t.Context()))
}

// when the time of a hook has passed, the end of its run is read first: a run that has ended is no timeout.
func TestEndIsReadBeforeTimeout(t *testing.T) {
	b := newBench(t)
	b.create(`{"name": "check", "type": "procedural", "command": {"argv": ["echo", "{\"action\": \"block\", \"block_reason\": \"read\"}"]}}`,
		startHook(`{"type": "agent", "agent_name": "check", "on_error": "continue", "timeout_seconds": 1}`))
	id := b.submit("job", `{}`)
	parked := b.park(id)
	b.executeOnly(t, durable.KindCommand)
	require.Eventually(t, func() bool { return time.Now().After(parked.Deadline.Add(time.Second)) }, time.Minute, 20*time.Millisecond)
	d := b.work(id)
	assert.Equal(t, "Blocked by on_run_start hook: read", lo.FromPtr(d.Error))
	assert.Equal(t, []string{"hook_start", "hook_blocked"}, eventTypes(d))
}

// AP-40: programs of blueprints, and those of hooks, get their own environment and parameters, and none of the secrets of the service or
// of the run that they are about.
func TestEnvironmentOfPrograms(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are those of a POSIX system")
	}
	t.Setenv("GRAPNEL_TOKEN", "secret-of-the-service")
	t.Setenv("SOME_API_KEY", "secret-of-the-service")
	b := newBench(t)
	show := `"command": {"argv": ["sh", "-c", "cat; env"]`
	b.create(`{"name": "child", "type": "procedural", `+show+`, "env": {"CHILD": "1"}}}`,
		`{"name": "job", "type": "procedural", `+show+`, "env": {"OWN": "secret-of-the-job"}}, "hooks": {
			"on_run_finish": [{"type": "agent", "agent_name": "child", "on_error": "continue", "input": {"only": "this"}},
				{"type": "command", "argv": ["sh", "-c", "env >&2; exit 1"], "on_error": "continue"}]}}`)
	id := b.submit("job", `{"a": "secret-parameter"}`)
	d := b.work(id)
	require.Equal(t, wire.Completed, d.Status, lo.FromPtr(d.Error))
	assert.Contains(t, *d.ResultText, "OWN=secret-of-the-job")
	child, err := b.c.Run(t.Context(), b.child(id, "child").ID)
	require.NoError(t, err)
	assert.Contains(t, *child.ResultText, `{"only":"this"}`)
	assert.Contains(t, *child.ResultText, "CHILD=1")
	assert.NotContains(t, *child.ResultText, "secret-of-the-job")
	assert.NotContains(t, *child.ResultText, "secret-parameter")
	failed := d.Hooks[len(d.Hooks)-1]
	assert.Equal(t, "hook_failed", failed.EventType)
	assert.Contains(t, failed.Error, "PATH=")
	for _, text := range []string{*d.ResultText, *child.ResultText, failed.Error} {
		assert.NotContains(t, text, "secret-of-the-service")
	}
	for line := range strings.Lines(*child.ResultText) {
		name, _, ok := strings.Cut(strings.TrimPrefix(line, `{"only":"this"}`), "=")
		assert.True(t, !ok || lo.Contains([]string{"CHILD", "PWD", "SHLVL", "_", "OLDPWD", "PATH"}, name) || strings.HasPrefix(name, "GRAPNEL_RUN") || strings.HasPrefix(name, "GRAPNEL_IDEMPOTENCY"), line)
	}
}
