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

	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/client"
	"github.com/grapnel-go/grapnel/durable"
)

// serve serves the API of the coordinator.
func (b *bench) serve() *httptest.Server {
	b.t.Helper()
	s := httptest.NewServer(b.c.Handler(coordinator.HandlerOptions{}))
	b.t.Cleanup(s.Close)
	return s
}

// client returns a client with a role.
func (b *bench) client(s *httptest.Server, role coordinator.Role) *client.Client {
	b.t.Helper()
	token, _, err := b.c.NewToken(b.t.Context(), string(role), role, 0, "test")
	require.NoError(b.t, err)
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
		Runners: map[durable.Kind]durable.Runner{coordinator.KindHooks: b.c.HookRunner(k)}, Poll: 20 * time.Millisecond,
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
	remote, err := coordinator.New(coordinator.Options{Store: store})
	require.NoError(b.t, err)
	w, err := durable.NewWorker(store, durable.WorkerOptions{Runners: remote.Runners(k, o), Scheduler: store.Scheduler(o.Labels(nil)), Poll: time.Second, Observe: func(e durable.WorkerEvent) { b.t.Log(e.Kind, e.Run.Name, e.Err) }})
	require.NoError(b.t, err)
	return w, func() { assert.NoError(b.t, store.Close()) }
}

// A run goes through the API, its hook and its own agent through a runner on another machine.
func TestRemoteRunner(t *testing.T) {
	b := newBench(t)
	s := b.serve()
	admin, operator := b.client(s, coordinator.Admin), b.client(s, coordinator.Operator)
	for _, text := range []string{validator, report} {
		_, err := admin.CreateBlueprint(t.Context(), json.RawMessage(text))
		require.NoError(t, err)
	}
	b.answers["validator"] = func(string) string { return `{"action": "continue", "parameters": {"month": "June"}}` }
	defer b.run(b.hooksWorker())()
	w, closeStore := b.remoteRunner(b.client(s, coordinator.RunnerRole), "r1")
	defer closeStore()
	defer b.run(w)()
	run, err := operator.Submit(t.Context(), coordinator.RunRequest{AgentName: "report", Parameters: json.RawMessage(`{"month": "May"}`)})
	require.NoError(t, err)
	d, err := operator.Wait(t.Context(), run.RunID)
	require.NoError(t, err)
	assert.Equal(t, coordinator.Completed, d.Status, "%+v", d)
	assert.JSONEq(t, `{"month": "June"}`, string(d.ResultData))
	assert.JSONEq(t, `{"month": "May"}`, string(d.OriginalParameters))
	assert.Len(t, d.Hooks, 2)
}

// Every operation needs a valid token with its role.
func TestRoles(t *testing.T) {
	b := newBench(t)
	s := b.serve()
	tokens := map[coordinator.Role]string{}
	for _, role := range coordinator.Roles {
		var err error
		tokens[role], _, err = b.c.NewToken(t.Context(), string(role), role, 0, "test")
		require.NoError(t, err)
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
	for _, c := range []struct {
		method, path, body string
		allowed            []coordinator.Role
	}{
		{"GET", "/blueprints", "", []coordinator.Role{coordinator.Viewer, coordinator.Operator, coordinator.Admin}},
		{"POST", "/blueprints", `{}`, []coordinator.Role{coordinator.Admin}},
		{"PATCH", "/blueprints/x", `{}`, []coordinator.Role{coordinator.Admin}},
		{"DELETE", "/blueprints/x", "", []coordinator.Role{coordinator.Admin}},
		{"GET", "/runs", "", []coordinator.Role{coordinator.Viewer, coordinator.Operator, coordinator.Admin}},
		{"POST", "/runs", `{}`, []coordinator.Role{coordinator.Operator, coordinator.Admin}},
		{"POST", "/runs/x/stop", `{}`, []coordinator.Role{coordinator.Operator, coordinator.Admin}},
		{"GET", "/runner/runs?wait_seconds=0", "", []coordinator.Role{coordinator.RunnerRole, coordinator.Admin}},
		{"POST", "/runner/runs/x/renew", `{"epoch": 1}`, []coordinator.Role{coordinator.RunnerRole, coordinator.Admin}},
		{"GET", "/tokens", "", []coordinator.Role{coordinator.Admin}},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			assert.Equal(t, http.StatusUnauthorized, send(c.method, c.path, "", c.body))
			assert.Equal(t, http.StatusUnauthorized, send(c.method, c.path, "grp_wrong", c.body))
			for role, token := range tokens {
				status := send(c.method, c.path, token, c.body)
				if assert.NotEqual(t, http.StatusUnauthorized, status); lo.Contains(c.allowed, role) {
					assert.NotEqual(t, http.StatusForbidden, status, role)
				} else {
					assert.Equal(t, http.StatusForbidden, status, role)
				}
			}
		})
	}
}
