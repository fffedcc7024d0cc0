// Package loops holds hooks that notice when a run goes round in circles, the same call with the same result again and
// again, and end that: first they tell the model, then they stop the run.
//
//	a, err := builder.New().
//		WithDriver(driver).
//		With(capability.UseTools(tools...), capability.UseHooks(loops.Hooks(loops.Options{})...)).
//		Build().Get()
//
// # What is a loop
//
// Calls are the same if they name the same tool and their arguments are the same JSON value: white space, the order of
// members and 1 or 1.0 make no difference. What counts is what the model asked for, before hooks rewrote it. They stand in
// the order in which the run made them, those of one step in call order. A loop is an end of that list in which some calls,
// up to Options.Cycle of them, come round: one three times, or two in turn. Another call between them ends it.
//
// A call that was answered otherwise than the last time is progress and starts again: a job that is asked for its state, a
// test that fails in another place. Options.IgnoreResults leaves that out. Tools that are to be called in vain, such as
// one that waits, are named in Options.Except.
//
// # What happens
//
// When some calls have come round Options.Deny times, the next one of them is denied, and the model is told what it did and
// what it can do instead. A call that is denied, by this hook or another, counts like one that ran: when they have come round
// Options.Stop times, the run is stopped after the step, with the status agent.StatusStopped. Calls that never reach hooks,
// as their arguments cannot be read, are not denied, but count for that, too.
//
// What of the calls of one step is still to run has no result yet: any is taken to be the same. So with the default a
// step that asks five times for the same gets three answers.
//
// # Cost, failure and concurrency
//
// A call costs a look at the last Options.Cycle calls, however long the run is, and hashing of its arguments and result:
// hashes are kept, not values. A run that goes on from a stored state is read once. One set of hooks serves any number of
// runs at once; each run is watched by itself, sub-agents included.
package loops
