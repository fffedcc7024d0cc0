// Package durable records runs so that they survive a kill, a restart, or a question that is
// answered next week.
//
//	store, err := sqlite.Open(ctx, "runs.db", sqlite.Options{})
//	keeper := durable.Keep(store, durable.Options{})
//	a, err := builder.New().
//		WithName("clerk").WithDriver(driver).
//		With(capability.UseTools(tools...), capability.UseDurability{Keeper: keeper},
//			capability.UseApproval(agent.ParkApprover)).
//		Build().Get()
//	final, err := a.Run(ctx, agent.NewState(), agent.UserText("go")).Get() // recorded while it runs
//
//	// Later, or in another process with an agent that is built the same way:
//	err = durable.Approve(ctx, store, run, final.Interventions()[0].ID, agent.Approval{Verdict: agent.Approve, By: "ann"})
//	final, err = keeper.Resume(ctx, a, run, durable.TakeFree).Get()
//
// # What is recorded, and when
//
// A [Keeper] wraps the hooks, so that a journal only holds what has passed them:
//
//   - the run, when it begins, and its input when the hooks have accepted it;
//   - the model's reply, before its calls are decided on;
//   - the decision on each call;
//   - each call, before its tool runs, and its answer, after PostToolUse;
//   - the step, when it is recorded, and the end of the run, or its wait.
//
// Each entry holds the changes since the previous one (agent.Checkpoint.Changes), so entries do
// not grow with the transcript.
//
// # What happens to a run that was cut off
//
// Keeper.Resume rebuilds the state and continues the run. It does not request a recorded reply
// again, nor run a call with a result again. Hooks at the start of a run or a step are not called
// again; the controls of a call are, for every call without a result. A call that was started and
// has no result is in doubt: depending on its tool's toolexec.Policy, a person is asked, or the
// call runs again with the same idempotency key (in toolexec.Call, in the environment of shell
// commands, in the metadata of MCP requests). Keeper.Once does the same for the effects of hooks;
// package action uses it for the actions of rules. Options.Again selects funcs of Once that run
// again although they had finished.
//
// A [Lease] is the right to write. A process that takes over a run gets a lease with a higher
// epoch. The earlier process can no longer write: its run ends with [ErrStale].
//
// # Runs that wait for a person
//
// With agent.ParkApprover, a call that needs approval parks its run: the state, the questions and
// their deadlines are rows in the store, and nothing of the run is in memory. Any process can
// answer with [Approve], and any process can resume the run; a [Worker] does so by itself. A
// [Notifier] is notified, with a
// token for each question; the store has only the hashes of tokens.
//
// # Sub-agents
//
// A run that a call has started and waits for (see [Within]) is recorded with the run that made
// the call: its state is part of that call, and its entries, whose kinds begin with "child.", are
// in the journal of the calling run. So both survive together, and when the started run waits,
// both are one parked run.
//
// # Jobs and workers
//
// A program stores a [Job] with Store.Submit. A [Worker] claims ready runs whose kind, name and
// demands it serves, executes them with a [Runner] for their kind, and suspends them when it stops:
// jobs that were submitted, runs whose questions were answered or have expired, and runs that another
// process left behind. [AgentRunner] runs agents, package durable/command runs commands.
//
//	worker, err := durable.NewWorker(store, durable.WorkerOptions{
//		Runners: map[durable.Kind]durable.Runner{
//			durable.KindAgent: durable.AgentRunner(keeper, durable.AgentMap{"clerk": a}),
//		},
//	})
//	go worker.Run(ctx)
//	job, err := durable.AgentJob("clerk", agent.NewState(), agent.UserText("go"))
//	runs, err := store.Submit(ctx, job)
//
// A run may have phases, each with a runner of its own, before the runner of its kind executes it: see [Pass]. A run may start
// after another one has ended: see [Job]. [Documents] are stored beside the runs.
//
// A [Scheduler] brings ready runs to workers: [NewEmbedded] finds them in the store. Whatever a
// scheduler delivers, the lease decides which worker executes a run. A [Signal] pauses, resumes or
// cancels a run, or adds context to its conversation.
package durable
