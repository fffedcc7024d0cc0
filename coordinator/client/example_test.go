package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"

	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/api"
	"github.com/grapnel-go/grapnel/coordinator/client"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable/memory"
)

// A program stores a blueprint, submits a run of it, and stops the run.
func Example() {
	ctx, store := context.Background(), memory.New()
	defer store.Close()
	served, err := coordinator.New(coordinator.Options{Store: store})
	if err != nil {
		panic(err)
	}
	server := httptest.NewServer(api.Handler(served, api.Options{Token: "secret"}))
	defer server.Close()
	c, err := client.New(client.Options{URL: server.URL, Token: "secret"})
	if err != nil {
		panic(err)
	}
	if _, err := c.CreateBlueprint(ctx, json.RawMessage(`{"name": "report", "type": "procedural", "command": {"argv": ["cat"]}}`)); err != nil {
		panic(err)
	}
	run, err := c.Submit(ctx, wire.RunRequest{AgentName: "report", Parameters: json.RawMessage(`{"month": "May"}`)})
	if err != nil {
		panic(err)
	}
	if err := c.Stop(ctx, run.RunID, "not yet"); err != nil {
		panic(err)
	}
	d, err := c.Wait(ctx, run.RunID)
	if err != nil {
		panic(err)
	}
	fmt.Println(run.Status, d.Status, *d.Error)
	// Output:
	// pending stopped not yet
}
