// Package client is for programs that use a coordinator over HTTP: it submits runs and reads what became of them, and lets a
// durable.Worker execute runs of a coordinator on another machine.
//
//	c, err := client.New(client.Options{URL: "http://127.0.0.1:8420", Token: os.Getenv("GRAPNEL_TOKEN")})
//	// …
//	run, err := c.Submit(ctx, wire.RunRequest{AgentName: "report", Parameters: json.RawMessage(`{"month": "May"}`)})
//	// …
//	detail, err := c.Wait(ctx, run.RunID)
//
// A runner is a worker whose store is remote:
//
//	store := c.Store("runner-1", client.StoreOptions{})
//	defer store.Close()
//	keeper := durable.Keep(store, durable.Options{Owner: "runner-1"})
//	remote := coordinator.NewRemote(store, action.Host{})
//	options := coordinator.RunnerOptions{}
//	w, err := durable.NewWorker(store, durable.WorkerOptions{
//		Runners: remote.Runners(keeper, options), Scheduler: store.Scheduler(remote.Labels(options, map[string]string{"zone": "eu"})),
//	})
package client
