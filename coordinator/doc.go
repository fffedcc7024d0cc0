// Package coordinator is the domain of a service for runs of agents and commands, without HTTP: it stores blueprints, accepts runs of
// them, calls the hooks around the runs, and gives the runs to runners on this machine or others. Package coordinator/api serves it.
//
//	store, err := sqlite.Open(ctx, "runs.db", sqlite.Options{})
//	c, err := coordinator.New(coordinator.Options{Store: store})
//	go http.ListenAndServe("127.0.0.1:8420", api.Handler(c, api.Options{}))
//
//	keeper, options := durable.Keep(store, durable.Options{}), coordinator.RunnerOptions{} // which executes commands only
//	runners := c.Runners(keeper, options)
//	maps.Copy(runners, c.HookRunners(keeper))
//	worker, err := durable.NewWorker(store, durable.WorkerOptions{Runners: runners, Labels: c.Labels(options, nil)})
//	err = worker.Run(ctx)
//
// "grapnel serve" is such a program; docs/coordinator.md describes blueprints, hooks and the API. Package client uses the API, and
// has the store of a runner on another machine.
//
// # Runs
//
// A run of a blueprint is a run of package durable, of kind agent or command. Before a runner gets it, it is in the phase KindHooks
// if the blueprint has on_run_start hooks: a worker with HookRunner calls them and passes the run on, with the parameters that the hooks
// have returned, or ends it. Submit also stores a run of kind KindHooks that starts when the first one has ended, however that was,
// and calls on_error, on_timeout and on_run_finish.
//
// # Hooks
//
// Hooks are rules of package policy, in the form of policy.Blueprints, and are called through a hooks.RunScope. The answers of their
// actions are in the journal of the run, so that a process that continues after a crash does not call them again. A hook of type agent starts a
// run of a blueprint; the run whose hook it is waits for it in the store and holds no process.
//
// # Order and failure
//
// Hooks of a point are called in the order of the blueprint; each gets the parameters of the one before it. The blueprint checks changed
// parameters: if it does not accept them, the hook has failed. A failed on_run_start hook fails the run unless its on_error is
// continue or ignore. Hooks after the run change nothing in it.
package coordinator
