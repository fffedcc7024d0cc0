// Package pipeline runs pipelines on the engine of package durable: stages in which an agent or a command runs again and
// again, with hooks before and after.
//
//	p, err := pipeline.Load("pipeline.yaml", pipeline.LoadOptions{})
//	job, err := p.Job(pipeline.SessionOptions{Name: "friday", Dir: "sessions/friday"})
//	runs, err := store.Submit(ctx, job)
//
//	keeper := durable.Keep(store, durable.Options{})
//	worker, err := durable.NewWorker(store, durable.WorkerOptions{
//		Runners: pipeline.Runners(store, keeper, pipeline.Options{Pipelines: []string{p.Name}}),
//	})
//	err = worker.Run(ctx)
//
// A session is one run of a pipeline, of kind durable.KindPipeline. docs/pipelines.md describes the files.
//
// # Iterations are runs
//
// Each iteration is a child run of kind agent or command, so any worker with the pipeline's runners can execute it. While it
// runs, the session's run waits in the store and holds no process. A session is submitted with the content of all files, so that
// a later change in a file does not affect it.
//
// # Order
//
// on_session_start fires once, before the first iteration. on_iteration_start fires before each iteration;
// on_iteration_complete after one that succeeded, on_error after one that failed. on_stage_complete fires after the last
// iteration of a stage, on_session_complete at the end, with the reason in pipeline.reason, unless the session was cancelled.
// The stage's hooks come first, then the pipeline's, then the user's. At session points, the stage is the first or the last one.
//
// # What survives a crash
//
// The run's journal contains positions, hook inputs and the results of actions. Another process continues from the last position
// and repeats the firings since then. Finished actions answer from the journal. An action or an iteration that had not ended
// starts again with the same idempotency key.
//
// Detached actions never hold up iterations. They are repeated after a crash until they end. The session ends after them. While
// they run, the session keeps its worker busy, so a worker needs room for one more run.
//
// # Gates
//
// With action.Host.Parks, the session waits in the store for a gate that a rule awaits, and package durable/gate watches it. The
// firing is repeated when the gate has its answer. At on_session_complete, a gate is an error in the file.
package pipeline
