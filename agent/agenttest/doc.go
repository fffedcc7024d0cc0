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
//	// final.Answer() is "three"; driver.Asked() and tools.Calls() say how.
//
// # Scripts
//
// A script is played by position: the state says how many steps the session has
// taken, and the turn at that index comes next. So one driver serves any number of
// runs at once, and a state that is run again continues where it was. A step that
// failed has used its turn; one that was cancelled or retried has not. For a retry
// with another outcome, use Tries.
//
// # Contracts
//
// TestDriver, TestExecutor, TestProcessor and TestCriterion test an implementation
// of yours against the comment on its interface, as testing/fstest does for file
// systems. Run them with the race detector.
//
// TestModel tests the driver of a model service against what agents need of it, with
// whole runs over a stand-in for the service.
//
// # Concurrency
//
// Everything here may be used by several runs at once.
package agenttest
