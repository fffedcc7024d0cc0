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
// runs, the run of the session waits in the store and holds no process. The run of the session is submitted with the texts of
// all files, so that a later change of a file does not change the session.
//
// # Order
//
// on_session_start fires once, before the first iteration. on_iteration_start fires before each iteration;
// on_iteration_complete after one that succeeded, on_error after one that failed. on_stage_complete fires after the last
// iteration of a stage, on_session_complete at the end, with the reason in pipeline.reason, unless the session was cancelled.
// The hooks of the stage come first, then those of the pipeline, then those of the user. At the points of the session, the
// stage is the first or the last one.
//
// # What survives a crash
//
// The journal of the run holds positions, and the records of what hooks were told and what their actions came to. Another
// process continues from the last position: it repeats the firings since then, whose finished actions answer from the journal.
// An action or an iteration that had started without an end starts again with the same idempotency key.
//
// Actions that are not awaited never hold up iterations. They are repeated after a crash until they have an end. The session
// ends after them. While they run, the run of the session keeps its worker busy, so a worker needs room for one more run.
//
// # Gates
//
// With action.Host.Parks, a gate that a rule awaits becomes a wait of the session: see package durable/gate, which watches it.
// The firing is repeated when the gate has its answer. At on_session_complete a gate is an error of the file.
package pipeline
