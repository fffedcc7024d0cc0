// Package durable keeps runs so that they survive: a kill, a restart, a question that
// the answer comes next week.
//
//	store, err := sqlite.Open(ctx, "runs.db", sqlite.Options{})
//	keeper := durable.Keep(store, durable.Options{})
//	a, err := builder.New().
//		WithName("clerk").WithDriver(driver).
//		With(capability.UseTools(tools...), capability.UseDurability{Keeper: keeper},
//			capability.UseApproval(agent.ParkApprover)).
//		Build().Get()
//	final, err := a.Run(ctx, agent.NewState(), agent.UserText("go")).Get() // is written down while it runs
//
//	// Later, or in another process with an agent that is built the same way:
//	err = durable.Approve(ctx, store, run, "call_1", agent.Approval{Verdict: agent.Approve, By: "ann"})
//	final, err = keeper.Resume(ctx, a, run, durable.TakeFree).Get()
//
// # What is written down, and when
//
// A [Keeper] stands outside of the hooks, so that a journal only ever holds what they let
// through and let out:
//
//   - the run, when it begins, and its input when the hooks have let it in;
//   - the model's reply, before its calls are decided upon;
//   - what was decided about each call;
//   - each call, before its tool runs, and its answer, after PostToolUse;
//   - the step, when it is recorded, and the end of the run, or what it waits for.
//
// The entries are what changed since the one before (agent.Checkpoint.Changes): they do not
// grow with the transcript.
//
// # What happens to a run that was cut off
//
// Keeper.Resume rebuilds the state and goes on. A reply that was written down is not
// asked for again, and a call with an answer does not run again. Hooks that begin a run
// or a step are not asked again; the controls of a call are, for every call without an
// answer. A call that was begun and has no answer is in doubt: by its tool's
// toolexec.Policy a person is asked, or it runs again with the same idempotency key (in
// toolexec.Call, in the environment of shell commands, in the metadata of MCP requests).
// Keeper.Once does the same for what hooks do, and is what package action keeps the
// actions of rules with; Options.Again has them done again.
//
// A [Lease] says who may write. The process that takes a run over gets a lease of a higher epoch,
// and the one before writes no more: its run ends with [ErrStale].
//
// # Runs that wait for a person
//
// With agent.ParkApprover, a call that needs approval parks its run: the state, the
// questions and their deadlines are rows in the store, and nothing of the run is in
// memory. Any process answers with [Approve], and any process resumes. A [Notifier] is
// told, with a token for each question; the store has only the hashes of tokens.
//
// # Sub-agents
//
// A run that a call has started and waits for (see [Within]) is kept with the run that
// made the call: its state is part of that call, and its entries, of kinds that begin
// with "child.", stand in the other's journal. So it survives as that one does, and when
// it has to wait, both are one parked run.
//
// # Engines
//
// [Embedded] drives runs in this process: jobs that were submitted, runs whose questions
// were answered or whose time is over, and runs that some process left behind.
package durable
