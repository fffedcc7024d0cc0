package coordinator_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/api"
	"github.com/grapnel-go/grapnel/coordinator/client"
	"github.com/grapnel-go/grapnel/coordinator/web"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
)

// serve serves the API of the coordinator.
func (b *bench) serve() *httptest.Server {
	b.t.Helper()
	s := httptest.NewServer(api.Handler(b.c, api.Options{Pages: web.New(web.Options{Coordinator: api.Local{Coordinator: b.c}, Store: b.store})}))
	b.t.Cleanup(s.Close)
	return s
}

// client returns a client with a role.
func (b *bench) client(s *httptest.Server, role wire.Role) *client.Client {
	b.t.Helper()
	token, _ := b.newToken(string(role), role, 0)
	c, err := client.New(client.Options{URL: s.URL, Token: token})
	require.NoError(b.t, err)
	return c
}

// run runs a worker until the returned func is called.
func (b *bench) run(w *durable.Worker) (stop func()) {
	ctx, cancel := context.WithCancel(b.t.Context())
	var running sync.WaitGroup
	running.Go(func() { assert.NoError(b.t, w.Run(ctx)) })
	return func() {
		cancel()
		running.Wait()
	}
}

// hooksWorker returns a worker that only calls hooks.
func (b *bench) hooksWorker() *durable.Worker {
	b.t.Helper()
	k := durable.Keep(b.store, durable.Options{})
	w, err := durable.NewWorker(b.store, durable.WorkerOptions{
		Runners: b.c.HookRunners(k), Poll: 20 * time.Millisecond,
	})
	require.NoError(b.t, err)
	return w
}

// remoteRunner returns a worker of another machine, and a func that closes its store.
func (b *bench) remoteRunner(c *client.Client, name string) (*durable.Worker, func()) {
	b.t.Helper()
	store := c.Store(name, client.StoreOptions{Wait: 2 * time.Second})
	k := durable.Keep(store, durable.Options{Owner: name})
	o := b.runnerOptions(k)
	remote := coordinator.NewRemote(store, action.Host{})
	w, err := durable.NewWorker(store, durable.WorkerOptions{Runners: remote.Runners(k, o), Scheduler: store.Scheduler(remote.Labels(o, nil)), Poll: time.Second, Observe: func(e durable.WorkerEvent) { b.t.Log(e.Kind, e.Run.Name, e.Err) }})
	require.NoError(b.t, err)
	return w, func() { assert.NoError(b.t, store.Close()) }
}

// A run goes through the API, its hook and its own agent through a runner on another machine.
func TestRemoteRunner(t *testing.T) {
	b := newBench(t)
	s := b.serve()
	admin, operator := b.client(s, wire.Admin), b.client(s, wire.Operator)
	for _, text := range []string{validator, report} {
		_, err := admin.CreateBlueprint(t.Context(), json.RawMessage(text))
		require.NoError(t, err)
	}
	b.answers["validator"] = func(string) string { return `{"action": "continue", "parameters": {"month": "June"}}` }
	defer b.run(b.hooksWorker())()
	w, closeStore := b.remoteRunner(b.client(s, wire.RunnerRole), "r1")
	defer closeStore()
	defer b.run(w)()
	run, err := operator.Submit(t.Context(), wire.RunRequest{AgentName: "report", Parameters: json.RawMessage(`{"month": "May"}`)})
	require.NoError(t, err)
	d, err := operator.Wait(t.Context(), run.RunID)
	require.NoError(t, err)
	assert.Equal(t, wire.Completed, d.Status, "%+v", d)
	assert.JSONEq(t, `{"month": "June"}`, string(d.ResultData))
	assert.JSONEq(t, `{"month": "May"}`, string(d.OriginalParameters))
	assert.Len(t, d.Hooks, 2)
}

// Every operation needs a valid token with its role.
func TestRoles(t *testing.T) {
	b := newBench(t)
	s := b.serve()
	tokens := map[wire.Role]string{}
	for _, role := range []wire.Role{wire.Viewer, wire.Operator, wire.RunnerRole, wire.Admin} {
		tokens[role], _ = b.newToken(string(role), role, 0)
	}
	send := func(method, path, token, body string) int {
		r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Grapnel-Runner", "r1")
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode
	}
	all, operate := []wire.Role{wire.Viewer, wire.Operator, wire.Admin}, []wire.Role{wire.Operator, wire.Admin}
	admin, runner := []wire.Role{wire.Admin}, []wire.Role{wire.RunnerRole, wire.Admin}
	routes := map[string][]wire.Role{
		"GET /blueprints": all, "POST /blueprints": admin, "GET /blueprints/{name}/versions": all, "GET /blueprints/{name}": all, "PATCH /blueprints/{name}": admin,
		"DELETE /blueprints/{name}": admin, "GET /runs": all, "POST /runs": operate, "GET /runs/{id}": all, "POST /runs/{id}/stop": operate, "POST /runs/{id}/retry": operate,
		"POST /waivers": operate, "DELETE /waivers/{id}": operate, "GET /runner/waivers": runner,
		"POST /sessions/{id}/resume": operate, "GET /sessions": all, "GET /sessions/{id}": all, "GET /audit": admin,
		"GET /stored-runs": all, "DELETE /stored-runs": admin, "GET /stored-runs/{id}": all, "GET /stored-runs/{id}/events": all, "GET /runs/{id}/entries": operate, "GET /runs/{id}/waits": all,
		"GET /runs/{id}/input": all, "GET /runs/{id}/result": all, "GET /waits": operate, "GET /decisions": operate, "GET /waivers": operate, "GET /queues": all, "GET /metrics": all, "GET /runners": all,
		"GET /deny-tools": operate, "PUT /deny-tools": operate, "POST /runs/{id}/signals": operate, "POST /runs/{id}/questions/{question}/answers": operate,
		"GET /runs/{id}/events": all, "GET /runs/{id}/stream": all, "GET /runs/stream": all, "GET /runs/counts": all, "GET /rules": all, "GET /rules/{hook}/hits": all, "POST /whatif": all, "GET /runs/{id}/case": all, "GET /tokens": admin, "POST /tokens": admin, "DELETE /tokens/{id}": admin,
		"GET /runner/runs": runner, "GET /runner/runs/{id}": runner, "GET /runner/blueprints/{name}": runner, "GET /runner/deny-tools": runner,
		"GET /runner/runs/{id}/journal": runner, "POST /runner/runs/{id}/journal": runner, "POST /runner/runs/{id}/renew": runner,
		"POST /runner/runs/{id}/release": runner, "POST /runner/runs/{id}/started": runner, "POST /runner/runs/{id}/completed": runner,
		"POST /runner/runs/{id}/failed": runner, "POST /runner/runs/{id}/stopped": runner, "POST /runner/runs/{id}/park": runner, "POST /runner/runs/{id}/events": runner,
	}
	response, err := http.Get(s.URL + "/openapi.json") //nolint:noctx // a local server
	require.NoError(t, err)
	defer response.Body.Close()
	var described struct{ Paths map[string]map[string]any }
	require.NoError(t, json.NewDecoder(response.Body).Decode(&described))
	known := 0
	for path, methods := range described.Paths {
		for method := range methods {
			assert.Contains(t, routes, strings.ToUpper(method)+" "+path, "say which roles it is for")
			known++
		}
	}
	assert.Len(t, routes, known)
	for route, allowed := range routes {
		t.Run(route, func(t *testing.T) {
			method, path, _ := strings.Cut(route, " ")
			path = strings.NewReplacer("{id}", "x", "{name}", "x", "{question}", "x").Replace(path)
			if path == "/runner/runs" {
				path += "?wait_seconds=0"
			}
			assert.Equal(t, http.StatusUnauthorized, send(method, path, "", "{}"))
			assert.Equal(t, http.StatusUnauthorized, send(method, path, "grp_wrong", "{}"))
			for role, token := range tokens {
				status := send(method, path, token, "{}")
				if assert.NotEqual(t, http.StatusUnauthorized, status); lo.Contains(allowed, role) {
					assert.NotEqual(t, http.StatusForbidden, status, role)
				} else {
					assert.Equal(t, http.StatusForbidden, status, role)
				}
			}
		})
	}
}

// Requests for other hosts and from pages of other sites are refused.
func TestOtherHostsAndSites(t *testing.T) {
	b := newBench(t)
	h := api.Handler(b.c, api.Options{Token: "secret", Origins: []string{"https://grapnel.example.com"}})
	for name, c := range map[string]struct {
		host, site string
		status     int
	}{
		"this machine": {"127.0.0.1:8420", "", http.StatusOK}, "by name": {"localhost", "", http.StatusOK}, "its origin": {"grapnel.example.com", "", http.StatusOK},
		"another host": {"evil.example.com", "", http.StatusMisdirectedRequest}, "another site": {"localhost", "cross-site", http.StatusForbidden},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+c.host+"/runs", nil)
		r.Header.Set("Authorization", "Bearer secret")
		r.Header.Set("Sec-Fetch-Site", c.site)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		assert.Equal(t, c.status, w.Code, name)
	}
}
