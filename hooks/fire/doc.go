// Package fire calls hooks at one point as an agent would, and returns their decisions and
// changes.
//
//	fired, err := fire.ToolCall("bash", `{"command":"rm -rf /"}`).Fire(ctx, hooks.NewSet(noWipe)).Get()
//	if err != nil {
//		return err
//	}
//	fmt.Println(fired) // deny by no-wipe: nothing is deleted here
//
// # Moments
//
// A Moment is a point at which hooks are called, with the call, result or text that they receive. Each point has a func
// that creates its Moment: Input, Start, StepStart, Request, Reply, ToolCall, Intervention, InterventionAnswer,
// InterventionStopped, ToolResult, ToolFailure, Compact, CompactResult, CompactFailure, Subagent, SubagentResult,
// SubagentFailure, StepEnd, Stop, End, RunFailure, and Pipeline and Blueprint for the points around runs. A Moment is a
// value, and its methods return a changed copy. WithRun places it in a run (agent, depth, stage), AfterSteps puts steps
// before it, Answering sets the tool results in these steps, WithState sets a conversation, WithEffects metadata.
//
// # Firing
//
// Moment.Fire takes an agent through a short run with a scripted model and tools that answer as the moment says. The
// hooks are installed as builder would install them, so their matchers, order, time limits and failure policies apply,
// and their events are observed. They are called once, at that moment, and at no other point or step. Pipeline and
// Blueprint fire through a hooks.RunScope, as an engine does, and run no agent.
//
// The result is a Fired. Decision, Reason and Hook describe the decision. Err and Policy are a hook's error and the
// policy applied to it. State and Effects hold the hooks' additions. Text, Call, Result, Reply, Request and Input hold
// the values after the hooks.
//
// Decision distinguishes Allow from Pass, although the run continues with both. A hook whose matchers do not match
// passes. Called shows whether a hook was called at all.
//
// Conversation makes a Moment in an agent.Session, and fires it in one.
//
// # Failure
//
// Firing returns an error if the moment contradicts itself, if the run does not reach its point, if no hook is at its
// point, or if an agent would reject a hook. A hook's failure is not an error.
//
// # Time and concurrency
//
// Firing waits only for hooks, including detached ones. In a testing/synctest bubble, time limits pass immediately.
// Several goroutines can fire moments at the same time.
//
// Package hooks/hookstest provides the same for tests, and tables of cases.
package fire
