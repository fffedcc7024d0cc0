package coordinator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/api"
	"github.com/grapnel-go/grapnel/coordinator/client"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/sqlite"
	"github.com/grapnel-go/grapnel/hooks"
)

// A hook in Go decides about each run of a blueprint, and a program submits runs over HTTP.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "coordinator")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	store, err := sqlite.Open(ctx, filepath.Join(dir, "runs.db"), sqlite.Options{})
	if err != nil {
		panic(err)
	}
	defer store.Close()
	closed := func(_ context.Context, r *action.Request) (*action.Decision, error) {
		if string(r.Parameters) == `{"month":"May"}` {
			return &action.Decision{Decision: hooks.Deny, Reason: "May is closed"}, nil
		}
		return &action.Decision{Decision: hooks.Allow}, nil
	}
	c, err := coordinator.New(coordinator.Options{Store: store, Host: action.Host{Funcs: map[string]action.Body{"closed": closed}}})
	if err != nil {
		panic(err)
	}
	report := []byte(`{
		"name": "report", "type": "procedural", "command": {"argv": ["cat"]},
		"hooks": {"on_run_start": {"type": "func", "func": "closed", "on_error": "block"}}
	}`)
	if _, err := c.CreateBlueprint(ctx, report, "ann"); err != nil {
		panic(err)
	}
	server := httptest.NewServer(api.Handler(c, api.Options{Token: "secret"}))
	defer server.Close()

	requests, err := client.New(client.Options{URL: server.URL, Token: "secret"})
	if err != nil {
		panic(err)
	}
	for _, month := range []string{"May", "June"} {
		params, _ := json.Marshal(map[string]string{"month": month})
		run, err := requests.Submit(ctx, wire.RunRequest{AgentName: "report", Parameters: params})
		if err != nil {
			panic(err)
		}
		keeper, options := durable.Keep(store, durable.Options{}), coordinator.RunnerOptions{}
		runners := c.Runners(keeper, options)
		maps.Copy(runners, c.HookRunners(keeper))
		worker, err := durable.NewWorker(store, durable.WorkerOptions{Runners: runners, Labels: c.Labels(options, nil)})
		if err != nil {
			panic(err)
		}
		if err := worker.ExecuteReady(ctx); err != nil {
			panic(err)
		}
		d, err := requests.Wait(ctx, run.RunID)
		if err != nil {
			panic(err)
		}
		if d.Error != nil {
			fmt.Println(d.Status, *d.Error)
			continue
		}
		fmt.Println(d.Status, string(d.ResultData))
	}
	// Output:
	// failed Blocked by on_run_start hook: May is closed
	// completed {"month":"June"}
}
