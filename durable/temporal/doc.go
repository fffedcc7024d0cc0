// Package temporal delivers ready runs through a Temporal server, for people who run one already.
//
//	scheduler, err := temporal.Open(ctx, "localhost:7233", temporal.Options{Queues: store.Queues})
//	worker, err := durable.NewWorker(store, durable.WorkerOptions{Runners: runners, Scheduler: scheduler})
//	err = worker.Run(ctx)
//
// The durable.Store remains the record of every run: its journal, its lease, its questions and its result. Temporal
// holds one short execution per offer, which ends when a worker has decided the lease of the run. The execution is a
// standalone activity where the server has them (server 1.32), and otherwise a workflow with a single workflow task.
// If Temporal loses its database, the workers make the offers again after a minute.
//
//   - The ID of an execution is Prefix-RUN, and its task queue is Prefix-KEY, where KEY is the durable.Key of the
//     needs of the run. Its input is {"run":"…","seq":1}. Stores that share a namespace need different prefixes.
//   - An execution that waits has one event in its history. An execution that no worker has received after 24 hours
//     ends; the offer is made again if the run is still ready.
//   - A delivery that was lost comes back within four seconds, and a returned delivery after one second. For
//     workflows, the fourth loss of a delivery in a row takes longer, because Temporal then extends the timeout.
//   - A scheduler polls each task queue once, and only while a call of Next waits for it.
//
// The package speaks gRPC itself, without Temporal's SDK and grpc-go: docs/adr/0010.
package temporal
