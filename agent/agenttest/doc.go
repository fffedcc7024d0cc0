// Package agenttest helps to test agents and what they are made of: a driver that
// plays a script, tools that are plain funcs, an observer that remembers, and
// tests of the contracts of the seams.
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
// taken, and that is the turn which comes next. So one driver serves any number of
// runs at once, and a state that is run again goes on where it was. A step that
// failed has played its turn; one that was cancelled or retried has not: for a
// retry that goes differently there is Tries.
//
// # Contracts
//
// TestDriver, TestExecutor, TestProcessor and TestCriterion hold an implementation
// of your own to the comment on its interface, as testing/fstest does for file
// systems. Run them with the race detector.
//
// TestModel holds the driver of a model service to what agents need of it, with
// whole runs over whatever answers in the service's place.
//
// # Concurrency
//
// Everything here may be used by several runs at once.
package agenttest
