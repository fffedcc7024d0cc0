// Package hookstest helps to test hooks. It calls them at a point as an agent would, and returns their decisions and
// changes.
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
// This is package hooks/fire for use in tests.
//
// # Moments
//
// A Moment is the point at which a hook is called, with the call, result or text that the hook receives. ToolCall,
// ToolResult, ToolFailure, Input, Start, StepStart, Request, Reply, StepEnd, Stop, End and RunFailure each create a
// Moment for one point. It is a value, and its methods return a changed copy. WithRun places it in a run (agent, depth,
// stage), AfterSteps puts steps before it, WithState sets a conversation, WithEffects metadata.
//
// # Firing
//
// Fire fires a moment for one hook, FireSet for several hooks, and Moment.Fire without a test. Each takes an agent
// through a short run with a scripted model and tools that answer as the moment says. The hooks are installed as
// builder would install them, so their matchers, order, time limits and failure policies apply, and their events are
// observed. They are called once, at that moment, and at no other point or step.
//
// The result is a Fired. Decision, Reason and Hook describe the decision. Err and Policy are a hook's error and the
// policy applied to it. State and Effects hold the hooks' additions. Text, Call, Result, Reply, Request and Input hold
// the values after the hooks.
//
// Decision distinguishes Allow from Pass, although the run continues with both. A hook whose matchers do not match
// passes. Called shows whether a hook was called at all.
//
// # Failure
//
// Firing returns an error if the moment contradicts itself, if the run does not reach its point, if no hook is at its
// point, or if an agent would reject a hook. A hook's failure is not an error, because some tests are about it.
//
// # Time and concurrency
//
// Firing waits only for hooks, including detached ones. In a testing/synctest bubble, time limits pass immediately.
// Several goroutines can fire moments at the same time.
package hookstest
