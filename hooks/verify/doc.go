// Package verify holds a hook that does not let a run end before a check has
// passed: "the tests must pass before you stop".
//
//	tests := verify.Hook(
//		verify.Command{Dir: workspace, Args: []string{"go", "test", "./..."}}.Check,
//		verify.Options{Attempts: 3},
//	)
//	a, err := builder.New().
//		WithDriver(driver).
//		With(capability.UseTools(tools...), capability.UseHooks(tests)).
//		Build().Get()
//
// # What happens
//
// When the run would end by itself, the check is made. If it passes, the run ends.
// If not, the model is sent back with the end of what the check had to say. When
// that was done as often as Options.Attempts says, and the check fails again, the
// run ends as stopped, with a message that says so: a run that ends as done has
// passed.
//
// A limit, a cancel or an error ends a run without asking. To check only some
// runs, give the hook a matcher: tests.Matching(hooks.StageNamed("implement")).
//
// # Failure
//
// A check that ran and did not pass is news for the model, and so is one that took
// longer than Options.Timeout. A check that could not be made at all, such as for
// want of the program, is a failure of the hook, which is closed: the run ends as
// stopped.
//
// An agent lets its Stop hooks together make a run go on only so often:
// hooks.DefaultContinuations, or UseGuards.Continuations. When none are left and
// the check fails, the run ends as stopped, too.
//
// # Concurrency
//
// One hook serves any number of runs at once. They are counted apart; that their
// checks do not get into each other's way is up to the check.
package verify
