// Package verify contains a hook that does not let a run end before a check has passed:
// "the tests must pass before you stop".
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
// # Running checks
//
// When the run would end by itself, the hook runs the check. If the check passes, the run ends. If the check fails, the
// run continues, and the model receives the end of the check's output. If the check still fails after Options.Attempts
// such attempts, the run ends as stopped, with a message that says so. A run that ends as done has passed.
//
// A run that ends by a limit, a cancellation or an error is not checked. To check only
// some runs, give the hook a matcher: tests.Matching(hooks.StageNamed("implement")).
//
// # Failure
//
// If a check ran and did not pass, or took longer than Options.Timeout, the model receives its result. A check may be
// unable to run, for example because the program is missing. This is a hook failure with the policy Closed: the run
// ends as stopped.
//
// An agent limits how often its Stop hooks together can continue a run:
// hooks.DefaultContinuations, or UseGuards.Continuations. If that limit is reached and
// the check fails, the run ends as stopped, too.
//
// # Concurrency
//
// One hook can serve any number of runs at the same time. Their attempts are counted
// separately. The check must make sure that parallel checks do not interfere.
package verify
