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
// When the run would end by itself, the hook runs the check. If it passes, the run ends.
// If not, the model is sent back to work with the end of the check's output. If the check
// still fails after Options.Attempts such attempts, the run ends as stopped, with a
// message that says so: a run that ends as done has passed.
//
// A run that ends by a limit, a cancellation or an error is not checked. To check only
// some runs, give the hook a matcher: tests.Matching(hooks.StageNamed("implement")).
//
// # Failure
//
// The model receives a check that ran and did not pass, and one that exceeded Options.Timeout. A check that could not
// run at all, for example because the program is missing, is a failure of the hook, whose policy is closed: the run
// ends as stopped.
//
// An agent limits how often its Stop hooks together may continue a run:
// hooks.DefaultContinuations, or UseGuards.Continuations. If that limit is reached and
// the check fails, the run ends as stopped, too.
//
// # Concurrency
//
// One hook serves any number of runs at once. Their attempts are counted separately. The
// check must make sure that parallel checks do not interfere.
package verify
