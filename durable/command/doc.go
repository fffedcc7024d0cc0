// Package command executes runs of kind command: each runs a program once, with the parameters of the job
// as JSON on its standard input, and ends with what the program has written to its standard output.
//
//	runner, err := command.Runner(keeper, map[string]command.Command{
//		"report": {Argv: []string{"/usr/local/bin/report", "--json"}, Timeout: time.Minute},
//	})
//	worker, err := durable.NewWorker(store, durable.WorkerOptions{
//		Runners: map[durable.Kind]durable.Runner{durable.KindCommand: runner},
//	})
//	job, err := command.Job("report", map[string]any{"month": "2026-11"})
//	runs, err := store.Submit(ctx, job)
//
// # Rules
//
//   - A program gets the declared environment and nothing of the environment of the worker, besides
//     GRAPNEL_RUN, the ID of the run, and GRAPNEL_IDEMPOTENCY_KEY, which is the same for each attempt.
//   - Exit code 0 completes the run, another one fails it, with the end of the standard error as the error.
//   - A run that is cancelled, that exceeds its time, or whose worker loses the lease, ends with all processes that the
//     program has started.
//   - A job whose Limits have a Time stops the program at the end of that time, counted from the first attempt. The
//     other limits do not apply to commands.
//   - When a worker dies, it is unknown what the program has done. A command with Repeat runs again; the
//     run of another command fails.
//   - A pause has no effect on a program that runs.
//
// The package executes programs on Unix. On other systems, Runner returns an error.
package command
