// Package loops holds hooks that detect when a run repeats the same calls with the same results. They first deny the next
// call with a message for the model, and later stop the run.
//
//	a, err := builder.New().
//		WithDriver(driver).
//		With(capability.UseTools(tools...), capability.UseHooks(loops.Hooks(loops.Options{})...)).
//		Build().Get()
//
// # What is a loop
//
// Calls are the same if they name the same tool and their arguments are the same JSON value: white space, the order
// of members, and 1 or 1.0 make no difference. The arguments compared are the model's own, before hooks rewrote them.
// The hooks list the calls in the order in which the run made them, those of one step in call order. A loop is a
// repetition at the end of that list, of a round of up to Options.Cycle calls: for example one call three times, or
// two calls in turn. A different call in between ends the loop.
//
// A call with a different result than last time is progress and restarts the count: the state of a job, or a test that
// fails in another place. Options.IgnoreResults turns this off. List tools that may repeat, such as one that waits, in
// Options.Except.
//
// # What happens
//
// When a round was made Options.Deny times, its next call is denied, and the model is told what it repeated and what it can
// do instead. A call that is denied, by this hook or another, counts like one that ran: when the round was made
// Options.Stop times, the run is stopped after the step, with the status agent.StatusStopped. Calls with arguments that
// cannot be parsed never reach hooks: they are not denied, but count for Options.Stop.
//
// Calls of the current step that have not run yet have no result; their results are assumed to be the same. So with the
// defaults a step that makes the same call five times gets three answers.
//
// # Cost, failure and concurrency
//
// Each call is compared with the last Options.Cycle calls, however long the run is, and its arguments and result are
// hashed: the hooks keep hashes, not values. The steps of a run that resumes from a stored state are read once. One set of
// hooks serves any number of runs at once; each run, sub-agents included, is watched separately.
package loops
