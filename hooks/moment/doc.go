// Package moment fires one point of hooks as an agent would, and says what came of it.
//
//	fired, err := moment.ToolCall("bash", `{"command":"rm -rf /"}`).Fire(ctx, hooks.NewSet(noWipe)).Get()
//	if err != nil {
//		return err
//	}
//	fmt.Println(fired) // deny by no-wipe: nothing is deleted here
//
// # Moments
//
// A Moment says where the hooks are asked, and about what. Each point has a func that
// makes one: Input, Start, StepStart, Request, Reply, ToolCall, Intervention, Resolved,
// InterventionStopped, ToolResult, ToolFailure, Compact, Compacted, CompactFailure,
// Subagent, SubagentResult, SubagentFailure, StepEnd, Stop, End, RunFailure, and Pipeline
// and Blueprint for the points around runs. A Moment is a value, and its methods return a
// changed copy: WithRun places it in a run (agent, depth, stage), AfterSteps puts steps
// before it and Answering what the tools said in them, WithState a conversation,
// WithEffects metadata.
//
// # Firing
//
// Moment.Fire takes an agent through a short run with a scripted model and tools that
// answer as the moment says. The hooks stand in it as builder would put them there, so
// their matchers, order, time limits and failure policies apply, and their events are
// told. They are asked once, at that moment: at other points and in other steps of the
// run they are not there.
//
// What came of it is a Fired: Decision, Reason and Hook say who decided what, Err and
// Policy what a hook failed with and what was done about it, State and Effects what is
// added, Text, Call, Result, Reply, Request and Input what the point leaves.
//
// Decision tells Allow from Pass, although both let things go on: a hook whose matchers
// say no passes, and Called tells that it was not called at all.
//
// # Failure
//
// It is an error if the moment makes no sense or its point was not fired, if no hook is
// at its point, and if a hook would not go into an agent. That a hook fails is none.
//
// # Time and concurrency
//
// Nothing here waits, but for hooks: detached ones are drained. In a bubble of
// testing/synctest time limits pass at once. Moments may be fired by several goroutines
// at once.
//
// Package hooks/hookstest has the same for tests, and tables of cases.
package moment
