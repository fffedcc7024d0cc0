package coordinator_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
)

// hookKinds are the kinds of hooks that answer with a text: each returns the members of such a hook.
var hookKinds = map[string]func(b *bench, answer string) string{
	"command": func(_ *bench, answer string) string {
		argv, _ := json.Marshal([]string{"printf", "%s", answer})
		return `"type": "command", "argv": ` + string(argv)
	},
	"http": func(b *bench, answer string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
		b.t.Cleanup(s.Close)
		return `"type": "http", "url": "` + s.URL + `"`
	},
	"agent": func(b *bench, answer string) string {
		b.create(exampleAgent("asked"))
		b.answers["asked"] = func(string) string { return answer }
		return `"type": "agent", "agent_name": "asked"`
	},
}

// CO-04, CO-09, CO-12: a hook of any kind that says block blocks, whatever its on_error is; an answer without an action is invalid, and
// on_error decides.
func TestAnswersMeanWhatTheySay(t *testing.T) {
	for answer, want := range map[string]string{ // why the run was blocked; ok for a run that goes on, invalid
		`{"action": "block", "parameters": {}, "block_reason": "no"}`:     "no",
		`{"action": "block", "parameters": null, "block_reason": null}`:   "No reason provided",
		`{"action": "block", "parameters": "x", "block_reason": " "}`:     "No reason provided",
		`{"action": "continue", "parameters": null, "block_reason": "x"}`: "ok",
		`{}`:                       "invalid",
		``:                         "invalid",
		`{"parameters": {"a": 2}}`: "invalid",
	} {
		for kind, hook := range hookKinds {
			for _, onError := range []string{"continue", "block"} {
				if onError == "continue" && want == "ok" || onError == "block" && want == "No reason provided" {
					continue // the others suffice
				}
				t.Run(kind+" "+onError+" "+answer, func(t *testing.T) {
					t.Parallel()
					b := newBench(t)
					b.create(startHook(`{` + hook(b, answer) + `, "on_error": "` + onError + `"}`))
					d := b.work(b.submit("job", `{"a": 1}`))
					last := d.Hooks[len(d.Hooks)-1]
					switch {
					case want == "ok":
						assert.JSONEq(t, `{"a": 1}`, string(d.ResultData))
						assert.Equal(t, wire.EventHookComplete, last.EventType)
					case want == "invalid" && onError == "continue":
						assert.JSONEq(t, `{"a": 1}`, string(d.ResultData))
						assert.Equal(t, []string{wire.EventHookFailed, "continue"}, []string{last.EventType, last.OnErrorBehavior})
					case want == "invalid":
						assert.Equal(t, wire.Failed, d.Status)
						assert.False(t, d.Blocked, "it has not said so")
						assert.Equal(t, []string{wire.EventHookFailed, "block"}, []string{last.EventType, last.OnErrorBehavior})
					default:
						assert.True(t, d.Blocked)
						assert.Equal(t, "Blocked by on_run_start hook: "+want, lo.FromPtr(d.Error))
						assert.Equal(t, []string{wire.EventHookBlocked, want}, []string{last.EventType, last.BlockReason})
					}
				})
			}
		}
	}
}

// CO-12: a runner that reports a result without members for the run of a hook has not answered.
func TestRunnerThatAnswersNothing(t *testing.T) {
	for name, report := range map[string]map[string]any{"empty object": {"result_data": map[string]any{}}, "nothing": {}, "null": {"result_data": nil}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			s := b.serve()
			b.create(`{"name": "asked", "type": "procedural", "parameters_schema": {"type": "object"}}`,
				startHook(`{"type": "agent", "agent_name": "asked", "on_error": "block"}`))
			id := b.submit("job", `{}`)
			b.park(id)
			p := b.plain(s, wire.RunnerRole)
			run := p.claim("r1", "coordinator.command/asked=yes").Runs[0]
			report["epoch"] = run.Epoch
			require.Less(t, p.report("r1", run.RunID, "completed", report), 300)
			d := b.work(id)
			assert.Equal(t, wire.Failed, d.Status)
			assert.Contains(t, lo.FromPtr(d.Error), "invalid decision")
		})
	}
}

// CO-24, CO-28: {} is success after a run, and the event of a failed hook names its on_error.
func TestFinishAnswers(t *testing.T) {
	for _, c := range []struct{ hook, event, behaviour string }{
		{`"type": "command", "argv": ["echo", "{}"], "on_error": "block"`, wire.EventHookComplete, ""},
		{`"type": "command", "argv": ["true"], "on_error": "block"`, wire.EventHookComplete, ""},
		{`"type": "command", "argv": ["false"], "on_error": "block"`, wire.EventHookFailed, "block"},
		{`"type": "command", "argv": ["false"], "on_error": "block", "mode": "async"`, wire.EventHookFailed, "block"},
		{`"type": "command", "argv": ["false"], "on_error": "continue"`, wire.EventHookFailed, "continue"},
		{`"type": "command", "argv": ["false"]`, wire.EventHookFailed, "continue"},
		{`"type": "command", "argv": ["sleep", "60"], "timeout_seconds": 1, "on_error": "block"`, wire.EventHookTimeout, "block"},
	} {
		t.Run(c.hook, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.create(jobWith(`"on_run_finish": {` + c.hook + `}`))
			d := b.work(b.submit("job", `{}`))
			assert.Equal(t, wire.Completed, d.Status)
			require.Len(t, d.Hooks, 2)
			assert.Equal(t, []string{c.event, c.behaviour}, []string{d.Hooks[1].EventType, d.Hooks[1].OnErrorBehavior})
		})
	}
}

// CO-28: a hook that took too long is no completed one, also when on_timeout says that the run goes on.
func TestTimeoutThatContinues(t *testing.T) {
	b := newBench(t)
	b.create(startHook(`{"type": "command", "argv": ["sleep", "60"], "timeout_seconds": 1, "on_error": "block", "on_timeout": "continue"}`))
	d := b.work(b.submit("job", `{"a": 1}`))
	assert.Equal(t, wire.Completed, d.Status)
	require.Equal(t, []string{wire.EventHookStart, wire.EventHookTimeout}, eventTypes(d))
	assert.Equal(t, "continue", d.Hooks[1].OnErrorBehavior)
}

// on_timeout hooks are called for a run that its runner reports as stopped or failed when its time was over, but not for one that a person
// has stopped before.
func TestTimeoutHooks(t *testing.T) {
	for name, c := range map[string]struct {
		report  string
		stopped string // why a person has stopped it
		told    []string
	}{
		"stopped":             {"stopped", "", []string{"RunTimeout", "RunFinish"}},
		"failed":              {"failed", "", []string{"RunFailed", "RunTimeout", "RunFinish"}},
		"completed":           {"completed", "", []string{"RunFinish"}},
		"stopped by a person": {"stopped", "enough", []string{"RunFinish"}},
		"any reason is text":  {"stopped", "the deadline has passed", []string{"RunFinish"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var told []string
			b := newBench(t, withTell(func(r *action.Request) { told = append(told, string(r.Point)) }))
			s := b.serve()
			b.create(jobWith(`"on_error": ` + tellHook + `, "on_timeout": ` + tellHook + `, "on_run_finish": ` + tellHook))
			r := b.submitWith(wire.RunRequest{AgentName: "job", TimeoutSeconds: 1})
			p := b.plain(s, wire.RunnerRole)
			run := p.claim("r1").Runs[0]
			if c.stopped != "" {
				require.NoError(t, b.c.Stop(t.Context(), r.ID, c.stopped, "ann"))
			}
			require.Eventually(t, func() bool { return time.Now().After(r.Deadline) }, time.Minute, 10*time.Millisecond)
			require.Less(t, p.report("r1", r.ID, c.report, map[string]any{"epoch": run.Epoch}), 300)
			b.work(r.ID)
			assert.Equal(t, c.told, told)
		})
	}
}

// CO-28, CO-36: a run's events as JSON equal its stream: its own, its end, and the events of hooks after it. Pages join without gaps.
func TestEventsAreThoseOfTheStream(t *testing.T) {
	b := newBench(t)
	b.create(`{"name": "job", "type": "procedural", "command": {"argv": ["false"]}, "hooks": {
		"on_run_start": {"type": "command", "argv": ["echo", "{\"action\": \"continue\"}"], "on_error": "block"},
		"on_run_finish": [{"type": "command", "argv": ["true"], "on_error": "continue"}, {"type": "command", "argv": ["false"], "on_error": "block"}]}}`)
	api := b.client(b.serve(), wire.Viewer)
	id := b.submit("job", `{}`)
	events, err := api.Events(t.Context(), id, 0, 100)
	require.NoError(t, err)
	assert.Empty(t, events, "a run that has not begun")
	d := b.work(id)
	events, err = api.Events(t.Context(), id, 0, 100)
	require.NoError(t, err)
	types := lo.Map(events, func(e wire.EventView, _ int) string { return e.Type })
	assert.Equal(t, []string{
		"hook_start", "hook_complete", "run_failed", "hook_start", "hook_complete", "hook_start", "hook_failed",
	}, lo.Filter(types, func(name string, _ int) bool { return strings.HasPrefix(name, "hook_") || name == "run_failed" }))
	end, _ := lo.Find(events, func(e wire.EventView) bool { return e.Type == wire.EventRunFailed })
	assert.Contains(t, string(end.Data), lo.FromPtr(d.Error))
	streamed, _ := b.stream(id, "")
	assert.Equal(t, streamed, types)
	for limit := 1; limit <= len(events)+1; limit++ {
		var joined []wire.EventView
		for after := int64(0); ; {
			page, err := api.Events(t.Context(), id, after, limit)
			require.NoError(t, err)
			joined = append(joined, page...)
			if len(page) < limit {
				break
			}
			after = page[len(page)-1].Seq
		}
		require.Equal(t, events, joined, limit)
	}
	for i, e := range events {
		assert.Equal(t, int64(i)+1, e.Seq)
	}
}

// stream returns the types and the ids of the events of the stream of a run, after one.
func (b *bench) stream(id agent.RunID, last string) (types, ids []string) {
	b.t.Helper()
	_, text := b.plain(b.serve(), wire.Viewer).sendWith(map[string]string{"Last-Event-ID": last}, http.MethodGet, "/runs/"+string(id)+"/stream", nil)
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			types = append(types, strings.TrimSpace(name))
		}
		if at, ok := strings.CutPrefix(line, "id: "); ok {
			ids = append(ids, strings.TrimSpace(at))
		}
	}
	return types, ids
}

// CO-18: each call of a hook names the run that it has started, from its beginning on: a hook that is asked again starts another one.
func TestCallsNameTheirRuns(t *testing.T) {
	b := newBench(t, withFuncs(map[string]action.Body{"change": changeOnce(`{"n":0}`, `{"n":1}`)}))
	b.create(exampleAgent("asked"), startHook(`[{"type": "agent", "agent_name": "asked", "on_error": "block"},
		{"type": "func", "func": "change", "on_error": "block"}]`))
	b.answers["asked"] = func(string) string { return `{"action": "continue"}` }
	id := b.submit("job", `{"n": 0}`)
	d := b.work(id)
	require.Equal(t, wire.Completed, d.Status, lo.FromPtr(d.Error))
	var runs []agent.RunID
	for _, e := range d.Hooks {
		if e.TargetType == "agent" {
			runs = append(runs, e.HookRunID)
		}
	}
	require.Len(t, runs, 4)
	assert.Equal(t, runs[0], runs[1])
	assert.Equal(t, runs[2], runs[3])
	assert.NotEqual(t, runs[0], runs[2])
	children, err := b.store.List(t.Context(), durable.Filter{Parent: id, Name: "asked"})
	require.NoError(t, err)
	assert.ElementsMatch(t, lo.Map(children, func(r durable.Run, _ int) agent.RunID { return r.ID }), []agent.RunID{runs[0], runs[2]})
}

// hooks that are not awaited have their own time: another hook that waits for its run does not end them, each is called once, and the run
// that one has started has its time limit.
func TestAsyncHooksHaveTheirOwnTime(t *testing.T) {
	var called atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		called.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done() // the hook does not wait any longer
	}))
	t.Cleanup(s.Close)
	b := newBench(t)
	b.create(exampleAgent("told"), exampleAgent("chained"), jobWith(`"on_run_finish": [
		{"type": "http", "url": "`+s.URL+`", "mode": "async", "timeout_seconds": 1, "on_error": "continue"},
		{"type": "agent", "agent_name": "chained", "mode": "async", "timeout_seconds": 60, "on_error": "continue"},
		{"type": "agent", "agent_name": "told", "on_error": "continue"}]`))
	b.answers["told"] = func(string) string { return "{}" }
	b.answers["chained"] = func(string) string { return "{}" }
	id := b.submit("job", `{}`)
	d := b.work(id)
	require.Equal(t, wire.Completed, d.Status)
	assert.Equal(t, int32(1), called.Load())
	ends := lo.Filter(d.Hooks, func(e wire.HookEvent, _ int) bool { return e.EventType != wire.EventHookStart })
	require.Len(t, ends, 3)
	for _, e := range ends {
		if e.TargetType != "http" {
			assert.Equal(t, wire.EventHookComplete, e.EventType, e.Error)
			continue
		}
		assert.Equal(t, wire.EventHookTimeout, e.EventType, e.Error)
		assert.GreaterOrEqual(t, *e.DurationMS, int64(1000))
	}
	chained := b.child(id, "chained")
	assert.WithinDuration(t, chained.Created.Add(time.Minute), chained.Deadline, 30*time.Second)
	assert.Zero(t, b.child(id, "told").Deadline, "the call of the hook has the time limit")
}

// on_result hooks see the errors of runs, too: what they return is in the place of the error, in all that shows it. A result that they
// replace keeps no error beside it.
func TestErrorsPassResultHooks(t *testing.T) {
	hook := func(answer string) string {
		argv, _ := json.Marshal([]string{"echo", answer})
		return jobWith(`"on_result": {"type": "command", "argv": ` + string(argv) + `, "on_error": "block"}, "on_run_finish": ` + tellHook)
	}
	for name, c := range map[string]struct {
		answer, report string
		body           map[string]any
		status         wire.Status
		want           string
	}{
		"failed, replaced": {`{"action": "continue", "result_text": "it failed"}`, "failed", map[string]any{"error": "secret"}, wire.Failed, "it failed"},
		"failed, data":     {`{"action": "continue", "result_data": {"a": 1}}`, "failed", map[string]any{"error": "secret"}, wire.Failed, `{"a": 1}`},
		"failed, withheld": {`{"action": "block", "block_reason": "classified"}`, "failed", map[string]any{"error": "secret"}, wire.Failed, "classified"},
		"failed, invalid":  {`{}`, "failed", map[string]any{"error": "secret"}, wire.Failed, "result withheld"},
		"stopped":          {`{"action": "block", "block_reason": "classified"}`, "stopped", map[string]any{"reason": "secret"}, wire.Stopped, "classified"},
		"cancelled": {`{"action": "block", "block_reason": "classified"}`, "journal", map[string]any{"commit_id": "c", "update": map[string]any{
			"status": "cancelled", "result": []byte(`{"error": "secret"}`)}}, wire.Stopped, "classified"},
		"completed with an error": {`{"action": "continue", "result_text": "public"}`, "journal", map[string]any{"commit_id": "c", "update": map[string]any{
			"status": "completed", "result": []byte(`{"text": "t", "error": "secret"}`)}}, wire.Completed, "public"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told := ""
			b := newBench(t, withTell(func(r *action.Request) { told = r.Error + r.ResultText }))
			b.create(hook(c.answer))
			if c.status != wire.Completed {
				_, err := b.c.UpdateBlueprint(t.Context(), "job", []byte(`{"output_schema": {"type": "object", "required": ["n"]}}`), 0, "ann")
				require.NoError(t, err)
			}
			id := b.submit("job", `{}`)
			p := b.plain(b.serve(), wire.RunnerRole)
			c.body["epoch"] = p.claim("r1").Runs[0].Epoch
			for range 2 { // the response to the first report was lost
				require.Less(t, p.report("r1", id, c.report, c.body), 300)
			}
			d := b.work(id)
			require.Equal(t, c.status, d.Status)
			assert.Less(t, p.report("r1", id, c.report, c.body), 300, "the report comes again, late")
			assert.GreaterOrEqual(t, p.report("r2", id, c.report, c.body), 300)
			assert.Contains(t, lo.FromPtr(d.Error)+lo.FromPtr(d.ResultText), c.want)
			stored, err := b.store.Result(t.Context(), id)
			require.NoError(t, err)
			text, err := json.Marshal(d)
			require.NoError(t, err)
			assert.NotContains(t, string(text)+string(stored)+told, "secret")
		})
	}
}

// A hook at on_result is told how the run has ended, and leaves an error as it was unless it says otherwise.
func TestResultHookSeesErrors(t *testing.T) {
	var got []string
	b := newBench(t, withFuncs(map[string]action.Body{"look": func(_ context.Context, r *action.Request) (*action.Decision, error) {
		got = append(got, string(r.Status)+": "+r.Error)
		return &action.Decision{Decision: hooks.Allow}, nil
	}}))
	b.create(`{"name": "job", "type": "procedural", "command": {"argv": ["false"]}, "hooks": {
		"on_result": {"type": "func", "func": "look", "on_error": "block"}}}`)
	d := b.work(b.submit("job", `{}`))
	assert.Equal(t, wire.Failed, d.Status)
	assert.Contains(t, lo.FromPtr(d.Error), "exited with code 1")
	assert.Equal(t, []string{"failed: " + lo.FromPtr(d.Error)}, got)
	assert.Equal(t, []string{"hook_start", "hook_complete"}, eventTypes(d))
}

// CO-34: a run that a person stops has ended with the reason of that person, whatever its runner says about it.
func TestRunnersDoNotExplainStops(t *testing.T) {
	b := newBench(t)
	b.create(jobWith(`"on_result": {"type": "command", "argv": ["echo", "{\"action\": \"continue\"}"], "on_error": "block"}`))
	id := b.submit("job", `{}`)
	p := b.plain(b.serve(), wire.RunnerRole)
	epoch := p.claim("r1").Runs[0].Epoch
	require.NoError(t, b.c.Stop(t.Context(), id, "enough", "ann"))
	require.Less(t, p.report("r1", id, "journal", map[string]any{"epoch": epoch, "commit_id": "c", "update": map[string]any{
		"status": "cancelled", "result": []byte(`{"error": "secret"}`)}}), 300)
	d, err := b.c.Run(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, wire.Stopped, d.Status)
	assert.Contains(t, lo.FromPtr(d.Error), "enough")
	assert.NotContains(t, lo.FromPtr(d.Error), "secret")
}
