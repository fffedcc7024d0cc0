// Package agenttest helps to test agents and their parts: a driver that plays a
// script, tools that are plain funcs, an observer that records events, and contract
// tests for the interfaces of package agent.
//
//	driver := agenttest.Script(
//		agenttest.Call("add", `{"a":1,"b":2}`),
//		agenttest.Say("three"),
//	)
//	add := func(context.Context, agent.ToolCall) (string, error) { return "3", nil }
//	tools := agenttest.Tools{"add": add}.Executor()
//	a := agent.New(agent.Config{Driver: driver, Executor: tools}).MustGet()
//	final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("1 + 2?")).Get()
//	// final.Answer() is "three"; driver.Calls() and tools.Calls() return the recorded calls.
//
// # Scripts
//
// The next turn depends only on the state: a driver plays the turn whose index is the number of steps that the session
// has taken. So one driver can serve any number of runs at the same time, and a second run from the same state plays
// the same turns. A failed step has used its turn. A cancelled or retried step has not. For a retry with another
// outcome, use Tries.
//
// # Contracts
//
// TestDriver, TestExecutor, TestProcessor and TestCriterion test your implementation
// against the contract in the comment of its interface, as testing/fstest does for file
// systems. Run them with the race detector.
//
// TestModel tests whether a model service's driver does what agents need, with complete runs against a stand-in for the
// service.
//
// # Concurrency
//
// Everything in this package can be used by several runs at the same time.
package agenttest
