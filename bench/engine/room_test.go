package engine_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/coordinator/api"
	"github.com/grapnel-go/grapnel/coordinator/web"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

const roomGoal = 50 * time.Millisecond

// measureRoom measures pages of the control room and what the API counts and lists for it, over many runs, beside a page that says hello.
func measureRoom(m *measuring) {
	p := m.backend.open(m.T)
	m.report.note(p.bare.version(m.T))
	c, _ := serveCoordinator(m, p)
	fillRoom(m, p)
	pages := web.New(web.Options{Coordinator: api.Local{Coordinator: c}, Store: p.Store, Token: "secret"})
	mux := http.NewServeMux()
	mux.Handle("/", api.Handler(c, api.Options{Token: "secret", Pages: pages}))
	mux.HandleFunc("GET /hello", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<h1>hello</h1>") })
	w := newWeb(m, mux)
	var err error
	w.client.Jar, err = cookiejar.New(nil)
	require.NoError(m, err)
	signIn, err := http.NewRequestWithContext(m.Context(), http.MethodPost, w.url+"/ui/sign-in", strings.NewReader("secret=secret"))
	require.NoError(m, err)
	signIn.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := w.client.Do(signIn)
	require.NoError(m, err)
	require.NoError(m, response.Body.Close())

	took := map[string][]time.Duration{}
	measure := func(name string, do func() error) {
		for range m.looks {
			took[name] = append(took[name], timed(func() { require.NoError(m, do(), name) }))
		}
		m.report.each(m, "control-room/page="+name, took[name])
	}
	for name, path := range map[string]string{
		"hello": "/hello", "now": "/ui/", "runs": "/ui/runs", "waiting": "/ui/runs?show=waiting", "running": "/ui/runs?show=running",
		"blocked": "/ui/runs?show=blocked", "failed": "/ui/runs?show=failed", "hooks": "/ui/runs?show=hooks", "no-hit": "/ui/runs?q=nothing",
		"hits": "/ui/runs?q=agent+7", "inbox": "/ui/inbox", "counts": "/runs/counts", "sessions": "/sessions",
		"waiting-sessions": "/sessions?status=waiting", "failed-sessions": "/sessions?status=failed",
	} {
		measure(name, func() error {
			response, err := w.open(m.Context(), http.MethodGet, path, "", nil)
			if err != nil {
				return err
			}
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			if err == nil && (response.StatusCode != http.StatusOK || strings.Contains(string(text), `name="secret"`)) {
				err = fmt.Errorf("%s: %s: %s", path, response.Status, text)
			}
			return err
		})
	}
	measure("changes", func() error { // a look of GET /runs/stream
		_, err := c.ChangedRuns(m.Context(), time.Now().Add(-5*time.Second), func(agent.RunID, time.Time) bool { return true })
		return err
	})
	slowest := slices.MaxFunc(slices.Collect(maps.Keys(took)), func(a, b string) int { return int(quantile(took[a], 50) - quantile(took[b], 50)) })
	for _, name := range slices.Sorted(maps.Keys(took)) {
		m.Logf("%-16s %s", name, milliseconds(quantile(took[name], 50)))
	}
	m.row(fmt.Sprintf("control room: a page over %s runs", thousands(m.shown)), "< 50 ms", quantile(took[slowest], 50) < roomGoal,
		"slowest **%s** (%s), a page that says hello %s", milliseconds(quantile(took[slowest], 50)), slowest, milliseconds(quantile(took["hello"], 50)))
}

// fillRoom adds runs as fillRuns does, five to a session. If the last one waits, it asks a person. A hook has blocked one run in 250.
func fillRoom(m *measuring, p benchStore) {
	m.Helper()
	pay := toolexec.Func("pay", "Pays.", func(context.Context, struct{ Cents int }) (string, error) { return "paid", nil })
	ask := hooks.On(hooks.AtPreToolUse, "guard", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Ask("it pays") })
	clerk, err := builder.New().WithName("clerk").WithDriver(agenttest.Script(agenttest.Call("pay", `{"Cents":100}`)).EachRun()).
		With(capability.UseTools(pay), capability.UseHooks(ask),
			capability.UseDurability{Keeper: durable.Keep(p.Store, durable.Options{})}, capability.UseApproval(agent.ParkApprover)).Build().Get()
	require.NoError(m, err)
	asked, err := clerk.Run(m.Context(), agent.NewState(), agent.UserText("Pay the bill.")).Get()
	require.NoError(m, err)
	require.True(m, asked.Waiting())

	demands := map[string]string{"coordinator.runner": "yes"}
	blocked, err := p.Begin(m.Context(), durable.Job{ID: "blocked", Demands: demands}, "one", time.Hour)
	require.NoError(m, err)
	event := func(name, data string, d durable.Decision) durable.Event {
		return durable.Event{At: time.Now(), Name: name, Data: []byte(data), Decision: d, Hook: "check"}
	}
	require.NoError(m, p.Commit(m.Context(), blocked, durable.Commit{
		Events: []durable.Event{
			event("hook_start", `{"event_type":"hook_start","hook":"check","hook_type":"on_run_start"}`, ""),
			event("hook_blocked", `{"event_type":"hook_blocked","hook":"check","hook_type":"on_run_start","block_reason":"It must not pay."}`, durable.DecisionBlocked),
		},
		Update: durable.Update{Status: durable.StatusFailed, Blocked: true, Result: []byte(`{"error":"check: It must not pay."}`)},
	}))
	fillRuns(m, p, m.shown, durable.Job{ID: "first", Version: "1", Demands: demands, Traits: durable.Traits{Turn: durable.TurnFirst}}, map[string]string{
		"session": `'session ' || ((x.i + 3) / 5)`, "turn": `CASE WHEN x.i % 5 = 2 THEN 'first' ELSE 'later' END`, "has_hooks": `CASE WHEN x.i % 250 = 2 THEN {yes} ELSE {no} END`,
		"blocked":   `CASE WHEN x.i % 250 = 2 THEN {yes} ELSE {no} END`,
		"decisions": `CASE WHEN x.i % 250 = 2 THEN '[{"decision":"blocked","hook":"check","count":1}]' ELSE '' END`,
	})
	for _, s := range []struct {
		table, id, to string
		values        map[string]string
	}{
		{"waits", string(asked.Run().ID), "c.status = 'waiting'", map[string]string{"run": "c.num", "run_id": "c.id", "asked": "c.created"}},
		{"payloads", "blocked", "c.status = 'failed'", map[string]string{"run": "c.num"}},
		{"events", "blocked", "c.blocked = {yes}", map[string]string{"run": "c.num"}},
	} {
		names := p.bare.columns(m.T, s.table)
		require.NoError(m, p.bare.transact(m.Context(), statement{query: fillIn(p.bare, fmt.Sprintf(
			`INSERT INTO %s (%s) SELECT %s FROM runs c CROSS JOIN runs r JOIN %s o ON o.run = r.num WHERE r.id = $1 AND c.id LIKE 'run%%' AND c.id <> $1 AND %s`,
			s.table, strings.Join(names, ", "), selectList(names, "o", s.values), s.table, s.to)), args: []any{s.id}}), s.table)
	}
	for _, query := range []string{
		`UPDATE runs SET idle = updated WHERE status IN ('pending', 'ready', 'waiting')`,
		`UPDATE runs SET ended = updated WHERE status IN ('completed', 'failed', 'stopped')`,
		`UPDATE runs SET events = 2 WHERE blocked = {yes}`,
	} {
		require.NoError(m, p.bare.transact(m.Context(), statement{query: fillIn(p.bare, query)}))
	}
	p.bare.tidy(m.T)
}
