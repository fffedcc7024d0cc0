// Package hookstest helps to test hooks: it fires a point as an agent would, and
// says what came of it.
//
//	func TestNoPush(t *testing.T) {
//		hookstest.Cases{
//			"a look":       {At: hookstest.ToolCall("bash", `{"command":"git status"}`), Want: hooks.Allow},
//			"a push":       {At: hookstest.ToolCall("bash", `{"command":"git -C . push"}`), Want: hooks.Deny, Saying: "pushed"},
//			"no command":   {At: hookstest.ToolCall("bash", `{"cmd":"git push"}`), Want: hooks.Deny, Saying: "missing"},
//			"another tool": {At: hookstest.ToolCall("read_file", `{"path":"a"}`)},
//		}.Test(t, noPush)
//	}
//
// What stands here is package hooks/moment with a test around it.
//
// # Moments
//
// A Moment says where the hook is asked, and about what: ToolCall, ToolResult,
// ToolFailure, Input, Start, StepStart, Request, Reply, StepEnd, Stop, End and
// RunFailure make one for each point. It is a value, and its methods return a
// changed copy: WithRun places it in a run (agent, depth, stage), AfterSteps puts
// steps before it, WithState a conversation, WithEffects metadata.
//
// # Firing
//
// Fire fires a moment for one hook, FireSet for several, Moment.Fire without a
// test. Each takes an agent through a short run with a scripted model and tools
// that answer as the moment says. The hooks stand in it as builder would put them
// there, so their matchers, order, time limits and failure policies apply, and
// their events are told. They are asked once, at that moment: at other points and
// in other steps of the run they are not there.
//
// What came of it is a Fired: Decision, Reason and Hook say who decided what, Err
// and Policy what a hook failed with and what was done about it, State and Effects
// what is added, Text, Call, Result, Reply, Request and Input what the point leaves.
//
// Decision tells Allow from Pass, although both let things go on: a hook whose
// matchers say no passes, and Called tells that it was not called at all.
//
// # Failure
//
// It is an error if the moment makes no sense or its point was not fired, if no
// hook is at its point, and if a hook would not go into an agent. That a hook
// fails is none: it is what some tests are about.
//
// # Time and concurrency
//
// Nothing here waits, but for hooks: detached ones are drained. In a bubble of
// testing/synctest time limits pass at once. Moments may be fired by several
// goroutines at once.
package hookstest
