package coordinator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/api"
	"github.com/grapnel-go/grapnel/coordinator/client"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
	"github.com/grapnel-go/grapnel/durable/waiver"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/registry"
	"github.com/grapnel-go/grapnel/toolexec"
)

// What a run waits for is answered over the API by an operator, and the answer has the name of the token.
func TestApprovals(t *testing.T) {
	t.Run("in the inbox", func(t *testing.T) { testApproval(t, false) })
	t.Run("through the store of an operator", func(t *testing.T) { testApproval(t, true) })
}

func testApproval(t *testing.T, own bool) {
	t.Helper()
	b := newBench(t)
	s := b.serve()
	b.create(`{"name": "clerk", "type": "autonomous", "hooks": {"on_tool_call": {"id": "ask", "decision": "ask", "reason": "a payment"}}}`)
	k := durable.Keep(b.c.RunnerStore(), durable.Options{})
	paid := 0
	pay := toolexec.Func("pay", "Pays.", func(context.Context, struct{}) (string, error) {
		paid++
		return "paid", nil
	})
	o := coordinator.RunnerOptions{Agents: func(_ context.Context, d registry.Definition, rules []hooks.Hook) (*agent.Agent, func() error, error) {
		driver := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
			if s.LastMessage().Role() == agent.RoleTool {
				return agent.Step{Message: agent.Assistant("done"), FinishReason: agent.FinishStop}, nil
			}
			return agent.Step{Message: agent.Assistant("", agent.ToolCall{ID: "c1", Name: "pay", Arguments: "{}"}), FinishReason: agent.FinishToolCalls}, nil
		})
		if own {
			rules = append(rules, waiver.Hook(b.store))
		}
		a, err := builder.New().WithName(d.Name).WithDriver(driver).With(
			capability.UseTools(pay), capability.UseHooks(rules...), capability.UseApproval(agent.ParkApprover), capability.UseDurability{Keeper: k},
		).Build().Get()
		return a, nil, err
	}}
	runners := b.c.Runners(k, o)
	maps.Copy(runners, b.c.HookRunners(k))
	w, err := durable.NewWorker(b.store, durable.WorkerOptions{Runners: runners, Labels: b.c.Labels(o, nil)})
	require.NoError(t, err)
	id := b.submit("clerk", `{"prompt": "pay"}`)
	require.NoError(t, w.ExecuteReady(t.Context()))
	d, err := b.c.Run(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, wire.Waiting, d.Status)
	require.Len(t, d.WaitsFor, 1)
	assert.Len(t, d.WaitsFor[0].Questions, 1)
	assert.Equal(t, own, d.WaitsFor[0].Asked[0].Waivable, "only with the hook")

	at := "/approvals/wait?" + url.Values{"run": {string(id)}, "wait": {d.WaitsFor[0].Wait}}.Encode()
	for _, role := range []wire.Role{wire.Viewer, wire.RunnerRole} {
		status, _ := b.plain(s, role).sendFor("application/json", http.MethodGet, at, nil)
		assert.Equal(t, http.StatusUnauthorized, status, role)
	}
	operator := b.plain(s, wire.Operator)
	status, text := operator.sendFor("application/json", http.MethodGet, "/approvals/", nil)
	require.Equal(t, http.StatusOK, status, string(text))
	assert.Contains(t, string(text), `"a payment"`)
	status, text = operator.sendFor("application/json", http.MethodGet, at, nil)
	require.Equal(t, http.StatusOK, status, string(text))
	var shown struct {
		Question struct {
			Wait      string
			Questions []struct{ ID string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &shown))
	if own {
		store := b.client(s, wire.Operator).OperatorStore()
		wait, err := durabletest.FindWait(t.Context(), store, id, d.WaitsFor[0].Wait)
		require.NoError(t, err)
		another := wait
		another.ID = "another"
		_, err = durable.Decide(t.Context(), store, another, agent.Approval{Verdict: agent.Approve})
		require.ErrorIs(t, err, durable.ErrChanged)
		_, err = durable.Decide(t.Context(), store, durable.Wait{Run: id, ID: wait.ID}, agent.Approval{Verdict: agent.Approve})
		require.ErrorContains(t, err, "names no questions")
		bare := agent.Approval{Verdict: agent.Approve}
		answers := "/runs/" + string(id) + "/questions/" + wait.ID + "/answers"
		status, text = operator.sendFor("application/json", http.MethodPost, answers, bare)
		require.Equal(t, http.StatusBadRequest, status)
		assert.Contains(t, string(text), strings.Join(questionsOf(t, wait), ", "))
		require.NoError(t, durabletest.Approve(t.Context(), store, id, wait.ID, agent.Approval{Verdict: agent.Approve, By: "forged", Identity: "forged"}))
		_, err = durable.Decide(t.Context(), store, wait, agent.Approval{Verdict: agent.Approve})
		told, ok := errors.AsType[*durable.NotOpenError](err)
		require.True(t, ok, "%v", err)
		require.ErrorIs(t, err, durable.ErrAnswered)
		require.Len(t, told.Answers, 1)
		assert.Equal(t, "operator", told.Answers[0].By)
		for _, used := range []string{answers, strings.Replace(answers, wait.ID, "another", 1)} {
			bare.Covers = questionsOf(t, wait)
			status, text = operator.sendFor("application/json", http.MethodPost, used, bare)
			assert.Equal(t, http.StatusConflict, status, string(text))
		}
	} else {
		answer := map[string]any{"verdict": "approve", "wait": shown.Question.Wait, "questions": []string{shown.Question.Questions[0].ID}}
		status, text = operator.sendFor("application/json", http.MethodPost, at, answer)
		require.Equal(t, http.StatusOK, status, string(text))
		told, ok := lo.Find(b.audit(""), func(e wire.AuditEntry) bool { return e.Path == "/approvals/" })
		require.True(t, ok, "what is answered on a page is in the audit log")
		assert.Equal(t, []any{"operator", "answer", id, "approve " + shown.Question.Wait}, []any{told.By, told.Operation, told.Run, told.Detail})
		assert.NotEmpty(t, told.TokenID)
	}
	require.NoError(t, w.ExecuteReady(t.Context()))
	d, err = b.c.Run(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, []any{wire.Completed, "done", 1}, []any{d.Status, lo.FromPtr(d.ResultText), paid})
	records, err := b.store.AuditRecords(t.Context(), durable.AuditFilter{Run: id})
	require.NoError(t, err)
	require.Len(t, records, 1)
	assert.Equal(t, "operator", records[0].By)
}

// questionsOf returns the IDs of the open questions of a wait.
func questionsOf(t *testing.T, w durable.Wait) []string {
	t.Helper()
	i, err := durable.InterventionOf(w)
	require.NoError(t, err)
	return lo.Map(durable.OpenQuestions(w, i), func(q agent.Question, _ int) string { return q.ID() })
}

// An operator reads, steers and answers runs through the store that "grapnel runs --server" uses; answers and signals have the name of the
// token, whatever the client says.
func TestOperatorStore(t *testing.T) {
	b := newBench(t)
	s := b.serve()
	b.create(`{"name": "job", "type": "procedural", "command": {"argv": ["sleep", "60"]}}`)
	id := b.submit("job", `{"a": 1}`)
	store := b.client(s, wire.Operator).OperatorStore()
	list, err := store.List(t.Context(), durable.Filter{Name: "job"})
	require.NoError(t, err)
	want, err := b.store.Run(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, []durable.Run{want}, list)
	input, err := store.Input(t.Context(), id)
	require.NoError(t, err)
	assert.JSONEq(t, `{"a": 1}`, string(input))
	_, err = store.Run(t.Context(), "run_unknown")
	require.ErrorIs(t, err, durable.ErrNotFound)

	require.NoError(t, store.SetDenyTools(t.Context(), durable.Switch{On: true, By: "forged"}))
	deny, err := b.store.DenyTools(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "operator", deny.By)
	require.NoError(t, store.Signal(t.Context(), id, durable.Signal{Kind: durable.SignalCancel, Text: "enough", By: "forged"}))
	r, err := store.Run(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, durable.StatusCancelled, r.Status)

	viewer := b.client(s, wire.Viewer).OperatorStore()
	_, err = viewer.Run(t.Context(), id)
	require.NoError(t, err)
	require.ErrorContains(t, viewer.SetDenyTools(t.Context(), durable.Switch{}), "role viewer")
	_, err = viewer.Entries(t.Context(), id, 0)
	require.ErrorContains(t, err, "role viewer")
}

// A request whose client has gone is no failure: a runner that stops gives up renewing its leases.
func TestNoErrorForAClientThatHasGone(t *testing.T) {
	b := newBench(t)
	var log bytes.Buffer
	h := api.Handler(b.c, api.Options{Token: "secret", Log: slog.New(slog.NewTextHandler(&log, nil))})
	stored, _ := b.newToken("ann", wire.Viewer, 0)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for path, token := range map[string]string{"/healthz": "", "/runs": "secret", "/blueprints": stored} {
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(gone, http.MethodGet, "http://localhost"+path, nil)
		r.Header.Set("Authorization", "Bearer "+token)
		h.ServeHTTP(w, r)
		assert.Equal(t, http.StatusServiceUnavailable, w.Code, path)
	}
	assert.Empty(t, log.String())
}

// Changes are in the audit log, also those that fail; a token that sends too many requests has to wait.
func TestAuditAndRates(t *testing.T) {
	b := newBench(t)
	s := httptest.NewServer(api.Handler(b.c, api.Options{Token: "secret", Rate: 2}))
	t.Cleanup(s.Close)
	admin := plain{t, s.URL, "secret"}
	status, _ := admin.send(http.MethodPost, "/blueprints", "x", map[string]any{"name": "a", "type": "procedural", "command": map[string]any{"argv": []string{"true"}}})
	assert.Equal(t, http.StatusCreated, status)
	status, _ = admin.send(http.MethodDelete, "/blueprints/unknown", "x", nil)
	assert.Equal(t, http.StatusNotFound, status)
	status, _ = admin.send(http.MethodPost, "/runs/unknown/stop", "x", map[string]any{"because": "a field that does not exist"})
	assert.Equal(t, http.StatusUnprocessableEntity, status)
	all := b.audit("")
	require.Len(t, all, 3)
	assert.Equal(t, []string{"local create-blueprint /blueprints", "local delete-blueprint /blueprints/unknown", "local stop-run /runs/unknown/stop"},
		lo.Map(all, func(e wire.AuditEntry, _ int) string { return e.By + " " + e.Operation + " " + e.Path }))
	assert.Equal(t, all[1:], b.audit(all[0].ID))

	gone, leave := context.WithCancel(t.Context())
	leave()
	r := httptest.NewRequestWithContext(gone, http.MethodDelete, "http://localhost/blueprints/b", nil)
	r.Header.Set("Authorization", "Bearer secret")
	s.Config.Handler.ServeHTTP(httptest.NewRecorder(), r)
	assert.Equal(t, "/blueprints/b", b.audit(all[2].ID)[0].Path, "the client did not wait for the answer")

	limited := 0
	for range 1000 {
		if status, _ := admin.send(http.MethodGet, "/runs", "x", nil); status == http.StatusTooManyRequests {
			limited++
			break
		}
	}
	assert.Equal(t, 1, limited)
	c, err := client.New(client.Options{URL: s.URL, Token: "secret"})
	require.NoError(t, err)
	for range 6 {
		_, err := c.Runs(t.Context(), nil)
		require.NoError(t, err, "a client waits")
	}
	runner := b.plain(s, wire.RunnerRole)
	for range 10 {
		status, _ := runner.send(http.MethodGet, "/runner/deny-tools", "x", nil)
		assert.Equal(t, http.StatusOK, status, "runners are not limited")
	}
}

// A run without parameters goes through its hooks, also through those that wait for another run.
func TestEmptyParameters(t *testing.T) {
	for _, params := range []string{"", "{}"} {
		b := newBench(t)
		b.create(`{"name": "check", "type": "procedural", "command": {"argv": ["echo", "{\"action\": \"continue\"}"]}}`,
			startHook(`{"type": "agent", "agent_name": "check", "on_error": "block"}`))
		d := b.work(b.submit("job", params))
		assert.Equal(t, wire.Completed, d.Status, lo.FromPtr(d.Error))
		assert.JSONEq(t, "{}", string(d.Parameters))
	}
}

// The spans of hooks, of the runs that they start and of the run itself are in the trace of the request for it, in all processes.
func TestTrace(t *testing.T) {
	seen := tracetest.NewSpanRecorder()
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(seen))
	otel.SetTracerProvider(provider)
	t.Cleanup(func() { otel.SetTracerProvider(tracenoop.NewTracerProvider()) })
	b := newBench(t)
	b.create(`{"name": "check", "type": "procedural", "command": {"argv": ["echo", "{\"action\": \"continue\"}"]}}`,
		`{"name": "job", "type": "procedural", "command": {"argv": ["true"]}, "hooks": {
			"on_run_start": {"type": "agent", "agent_name": "check", "on_error": "block"},
			"on_run_finish": {"type": "agent", "agent_name": "check", "on_error": "continue"}}}`)
	ctx, request := provider.Tracer("test").Start(t.Context(), "POST /runs")
	r, err := b.c.Submit(ctx, wire.RunRequest{AgentName: "job"}, "ann")
	request.End()
	require.NoError(t, err)
	d := b.work(r.ID)
	require.Equal(t, wire.Completed, d.Status)
	counts := map[string]int{}
	for _, span := range seen.Ended() {
		if span.SpanContext().TraceID() == request.SpanContext().TraceID() {
			counts[span.Name()]++
		}
	}
	assert.Positive(t, counts["run_hooks job"])
	assert.Equal(t, 1, counts["command job"])
	assert.Equal(t, 2, counts["command check"], "%v", counts)
}

// An operator stops runs, but not the calls of the hooks after them, nor what tells sessions how runs have ended: an audit log has them all.
func TestOperatorCannotStopHooks(t *testing.T) {
	b := newBench(t)
	b.create(`{"name": "audit", "type": "procedural", "command": {"argv": ["echo", "{}"]}}`,
		jobWith(`"on_run_finish": {"type": "agent", "agent_name": "audit", "on_error": "continue"}`))
	store := b.client(b.serve(), wire.Operator).OperatorStore()
	id := b.submit("job", `{"a": 1}`)
	list, err := store.List(t.Context(), durable.Filter{Kind: coordinator.KindHooks, Parent: id})
	require.NoError(t, err)
	require.Len(t, list, 1)
	err = store.Signal(t.Context(), list[0].ID, durable.Signal{Kind: durable.SignalCancel})
	require.ErrorContains(t, err, "belongs to the coordinator")
	require.ErrorIs(t, store.Signal(t.Context(), "run_unknown", durable.Signal{Kind: durable.SignalCancel}), durable.ErrNotFound)
	d := b.work(id)
	assert.Equal(t, wire.Completed, d.Status)
	require.Len(t, d.Hooks, 2, "the hook after the run was called")
}
