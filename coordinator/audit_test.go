package coordinator_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
)

// Every operation that changes something is in the audit log: who, when and what. An operation that this test does not know fails it.
func TestEveryChangeIsAudited(t *testing.T) {
	b := newBench(t)
	s := b.serve()
	b.create(`{"name": "job", "type": "procedural", "command": {"argv": ["cat"]}}`, `{"name": "clerk", "type": "autonomous"}`)
	clients := map[wire.Role]plain{}
	for _, role := range []wire.Role{wire.Operator, wire.Admin, wire.RunnerRole} {
		clients[role] = b.plain(s, role)
	}
	last := "0"
	entries := func() []map[string]any {
		status, text := clients[wire.Admin].send(http.MethodGet, "/audit?limit=1000&after="+last, "", nil)
		require.Equal(t, http.StatusOK, status)
		var all struct{ Entries []map[string]any }
		require.NoError(t, json.Unmarshal(text, &all))
		if len(all.Entries) > 0 {
			last, _ = all.Entries[len(all.Entries)-1]["id"].(string)
		}
		return all.Entries
	}
	entries()
	claimAll := func() {
		clients[wire.RunnerRole].send(http.MethodGet, "/runner/runs?wait_seconds=0&limit=100", "r1", nil)
	}
	claimed := func(name string) (id agent.RunID, epoch int64) {
		claimAll()
		id = b.submit(name, lo.Ternary(name == "clerk", `{"prompt": "x"}`, `{}`))
		claim := clients[wire.RunnerRole].claim("r1")
		require.Len(t, claim.Runs, 1)
		entries()
		return id, claim.Runs[0].Epoch
	}
	// Each returns the path and the body of a request, and what the record says besides its path.
	type change struct {
		role    wire.Role
		request func() (path string, body any, run agent.RunID, detail string)
	}
	report := func(what string, more map[string]any) change {
		return change{wire.RunnerRole, func() (string, any, agent.RunID, string) {
			id, epoch := claimed("job")
			return "/runner/runs/" + string(id) + "/" + what, lo.Assign(map[string]any{"epoch": epoch}, more), "", "runner r1"
		}}
	}
	at := func(role wire.Role, path string, body any, detail string) change {
		return change{role, func() (string, any, agent.RunID, string) { return path, body, "", detail }}
	}
	waiting := func() (id agent.RunID, w durable.Wait) {
		id, epoch := claimed("job")
		require.Less(t, clients[wire.RunnerRole].report("r1", id, "park", map[string]any{"epoch": epoch, "questions": []any{map[string]any{"id": "q", "reason": "Go on?"}}}), 300)
		waits, err := b.store.Waits(t.Context(), id)
		require.NoError(t, err)
		entries()
		return id, waits[0]
	}
	changes := map[string]change{
		"POST /blueprints": at(wire.Admin, "/blueprints",
			map[string]any{"name": "new", "type": "procedural", "command": map[string]any{"argv": []string{"true"}}}, "new"),
		"PATCH /blueprints/{name}":  at(wire.Admin, "/blueprints/new", map[string]any{"description": "d"}, ""),
		"DELETE /blueprints/{name}": at(wire.Admin, "/blueprints/new", nil, ""),
		"POST /tokens":              at(wire.Admin, "/tokens", map[string]any{"name": "ci", "role": "operator"}, "ci, role operator"),
		"DELETE /stored-runs":       at(wire.Admin, "/stored-runs?ended_before=2020-01-02T00:00:00Z", nil, "ended before 2020-01-02T00:00:00Z"),
		"POST /runs":                at(wire.Operator, "/runs", map[string]any{"agent_name": "job"}, "job"),
		"DELETE /tokens/{id}": {wire.Admin, func() (string, any, agent.RunID, string) {
			_, token := b.newToken("old", wire.Viewer, 0)
			return "/tokens/" + token.ID, nil, "", ""
		}},
		"POST /runs/{id}/stop": {wire.Operator, func() (string, any, agent.RunID, string) {
			return "/runs/" + string(b.submit("job", `{}`)) + "/stop", map[string]any{}, "", ""
		}},
		"POST /runs/{id}/retry": {wire.Operator, func() (string, any, agent.RunID, string) {
			id := b.submit("job", `{}`)
			require.NoError(t, b.c.Stop(t.Context(), id, "", ""))
			return "/runs/" + string(id) + "/retry", nil, "", ""
		}},
		"POST /sessions/{id}/resume": {wire.Operator, func() (string, any, agent.RunID, string) {
			r := b.submitWith(wire.RunRequest{AgentName: "clerk", Parameters: []byte(`{"prompt": "x"}`)})
			require.NoError(t, b.c.Stop(t.Context(), r.ID, "", ""))
			return "/sessions/" + string(r.Session) + "/resume", map[string]any{"prompt": "y"}, "", ""
		}},
		"PUT /deny-tools": at(wire.Operator, "/deny-tools", map[string]any{"on": true, "reason": "fire"}, "on fire"),
		"POST /runs/{id}/signals": {wire.Operator, func() (string, any, agent.RunID, string) {
			return "/runs/" + string(b.submit("job", `{}`)) + "/signals", map[string]any{"kind": "pause", "text": "later"}, "", "pause later"
		}},
		"POST /runs/{id}/questions/{question}/answers": {wire.Operator, func() (string, any, agent.RunID, string) {
			id, w := waiting()
			return "/runs/" + string(id) + "/questions/" + w.ID + "/answers",
				agent.Approval{Verdict: agent.Approve, By: "forged", Covers: questionsOf(t, w)}, "", "approve"
		}},
		"POST /waivers": at(wire.Operator, "/waivers", wire.WaiverRequest{
			Rule: "limits/pay", Tool: "pay", Arguments: map[string]string{"to": "Ann"}, Expires: time.Date(2099, 1, 2, 0, 0, 0, 0, time.UTC),
		}, "limits/pay: pay with to=Ann until 2099-01-02T00:00:00Z"),
		"DELETE /waivers/{id}": {wire.Operator, func() (string, any, agent.RunID, string) {
			w := durable.Waiver{ID: "wvr_1", By: "ann", Created: time.Now(), Expires: time.Now().Add(time.Hour), Data: []byte("{}")}
			require.NoError(t, b.store.AddWaiver(t.Context(), w))
			return "/waivers/wvr_1", nil, "", ""
		}},
		"GET /runner/runs": {wire.RunnerRole, func() (string, any, agent.RunID, string) {
			claimAll()
			return "/runner/runs?wait_seconds=0", nil, "", "runner r1 " + string(b.submit("job", `{}`))
		}},
		"POST /runner/runs/{id}/journal": {wire.RunnerRole, func() (string, any, agent.RunID, string) {
			id, epoch := claimed("clerk")
			return "/runner/runs/" + string(id) + "/journal", map[string]any{"epoch": epoch, "commit_id": "c", "update": map[string]any{"status": "failed"}}, "", "runner r1 failed"
		}},
		"POST /runner/runs/{id}/release":   report("release", nil),
		"POST /runner/runs/{id}/started":   report("started", nil),
		"POST /runner/runs/{id}/completed": report("completed", map[string]any{"result_text": "done"}),
		"POST /runner/runs/{id}/failed":    report("failed", map[string]any{"error": "no"}),
		"POST /runner/runs/{id}/stopped":   report("stopped", nil),
		"POST /runner/runs/{id}/park":      report("park", map[string]any{"questions": []any{map[string]any{"id": "q", "reason": "Go on?"}}}),
	}
	inRun := []string{"POST /runner/runs/{id}/renew", "POST /runner/runs/{id}/events"} // the lease and the events of the run have them
	const whatIf = "POST /whatif"                                                      // it changes nothing

	var described struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	status, text := clients[wire.Admin].send(http.MethodGet, "/openapi.json", "r1", nil)
	require.Equal(t, http.StatusOK, status)
	require.NoError(t, json.Unmarshal(text, &described))
	operations := map[string]string{}
	for path, methods := range described.Paths {
		for method, o := range methods {
			route := strings.ToUpper(method) + " " + path
			operations[route] = o.OperationID
			if method != "get" && !lo.Contains(inRun, route) && route != whatIf {
				assert.Contains(t, changes, route, "say how it is recorded: this operation is new")
			}
		}
	}
	order := lo.Keys(changes)
	lo.ForEach([]string{"DELETE /blueprints/{name}", "PATCH /blueprints/{name}", "POST /blueprints"}, func(first string, _ int) {
		order = append([]string{first}, lo.Without(order, first)...) // a blueprint is created, changed and deleted
	})
	for _, route := range order {
		c := changes[route]
		method, _, _ := strings.Cut(route, " ")
		path, body, run, detail := c.request()
		entries()
		status, text := clients[c.role].send(method, path, "r1", body)
		require.Less(t, status, 300, "%s: %s", route, text)
		path, _, _ = strings.Cut(path, "?")
		all := entries()
		require.Len(t, all, 1, route)
		want := map[string]any{"by": string(c.role), "operation": operations[route], "path": path, "status": "ok"}
		if run != "" {
			want["run_id"] = string(run)
		}
		if detail != "" {
			want["detail"] = detail
		}
		assert.Equal(t, want, lo.OmitByKeys(all[0], []string{"id", "time", "token_id"}), route)
		assert.NotEmpty(t, all[0]["token_id"])
		assert.NotEmpty(t, all[0]["time"])
		if route == "GET /runner/runs" { // nothing is claimed
			clients[c.role].send(method, "/runner/runs?wait_seconds=0", "r1", nil)
			assert.Empty(t, entries())
		}
	}
	// What is refused is recorded with its status. Reading has filters, and begins with the newest.
	for _, c := range []struct {
		path, status string
		body         any
	}{
		{"/runs/run_none/stop", "404", map[string]any{}}, {"/runs", "422", map[string]any{"agent_name": "carl"}},
		{"/runs/run_1/signals", "404", map[string]any{"kind": "pause"}},
	} {
		entries()
		clients[wire.Operator].send(http.MethodPost, c.path, "", c.body)
		all := entries()
		require.Len(t, all, 1, c.path)
		assert.Equal(t, c.status, all[0]["status"], c.path)
	}
	read := func(query string) (list wire.AuditList) {
		t.Helper()
		status, text := clients[wire.Admin].send(http.MethodGet, "/audit?"+query, "", nil)
		require.Equal(t, http.StatusOK, status)
		require.NoError(t, json.Unmarshal(text, &list))
		return list
	}
	refused := read("status=failed&by=operator")
	require.Len(t, refused.Entries, 3)
	assert.Equal(t, []string{"/runs/run_1/signals", "/runs", "/runs/run_none/stop"},
		lo.Map(refused.Entries, func(e wire.AuditEntry, _ int) string { return e.Path }))
	assert.Empty(t, refused.Next)
	assert.Len(t, read("run=run_none").Entries, 1)
	assert.Len(t, read("operation=retry-run&status=ok").Entries, 1)
	assert.Empty(t, read("by=carl").Entries)
	first := read("limit=2")
	require.Len(t, first.Entries, 2)
	assert.Less(t, read("limit=1&before=" + first.Next).Entries[0].ID, first.Next)

	for _, path := range []string{"/stored-runs", "/deny-tools", "/queues"} { // which only read
		clients[wire.Operator].send(http.MethodGet, path, "r1", nil)
		assert.Empty(t, entries())
	}
}
