// Package loops contains hooks that detect when a run repeats the same calls with the same results. They first deny the
// next call with a message for the model, and later stop the run.
//
//	a, err := builder.New().
//		WithDriver(driver).
//		With(capability.UseTools(tools...), capability.UseHooks(loops.Hooks(loops.Options{})...)).
//		Build().Get()
//
// # Loops
//
// Calls are the same if they name the same tool and their arguments are the same JSON value. White space, member order,
// and 1 or 1.0 make no difference. The hooks compare the model's own arguments, before other hooks rewrote them. They
// list the run's calls in the order in which they were made, each step's calls in call order. A loop exists if the list
// ends with repetitions of a round of up to Options.Cycle calls: one call three times, or two calls in turn. A
// different call in between ends the loop.
//
// A call with a different result than last time is progress and restarts the count. Examples are a job's state, or a
// test that fails in another place. Options.IgnoreResults turns this off. List tools whose calls may repeat, such as a
// tool that waits, in Options.Except.
//
// # Responses
//
// After a round has occurred Options.Deny times, its next call is denied. The message tells the model which calls it
// repeated and how to go on. A denied call counts like an executed call, whichever hook denied it. After the round has
// occurred Options.Stop times, the run is stopped after the step, with the status agent.StatusStopped. Calls with
// arguments that cannot be parsed never reach hooks. They are not denied, but count for Options.Stop.
//
// The current step's calls that have not run yet have no result. Their results are assumed to be the same. So with the
// defaults a step that makes the same call five times gets three answers.
//
// # Cost, failure and concurrency
//
// Each call is compared only with the last Options.Cycle calls, and its arguments and result are hashed: the hooks keep
// hashes, not values. When a run resumes from a stored state, its steps are read once. One set of hooks can serve any
// number of runs at the same time. Each run, including sub-agents' runs, is watched separately.
package loops
