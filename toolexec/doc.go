// Package toolexec holds tools and runs them: what a model may call, in which words it is told of it, and what happens
// between its call and the answer that it gets.
//
//	add := toolexec.Func("add", "Adds two numbers.",
//		func(_ context.Context, in struct{ A, B int }) (string, error) { return strconv.Itoa(in.A + in.B), nil })
//
//	box, err := toolexec.NewToolbox(add)
//	if err != nil {
//		return err // everything that is wrong with any tool
//	}
//	a, err := agent.New(agent.Config{
//		Driver:   driver,
//		Request:  agent.Request{Tools: box.Specs()},
//		Executor: toolexec.NewExecutor(box, toolexec.Options{}),
//	}).Get()
//
// # Tools
//
// Func makes a tool of a Go func: its arguments are a struct, from which the JSON Schema is inferred, and its answer is
// text or anything that can be written as JSON. CallFunc is the same for a func that wants to know of the run that it
// works for, or that has a better schema than its types tell; Raw is for one that reads its arguments itself. What
// gets its tools from elsewhere implements Tool. A Toolbox is a set of tools with names that model services take.
//
// # Before a tool runs
//
// A call is refused, and the model told why, when its arguments are not one JSON object with a single reading (a name
// given twice is an error, and so are names that differ only in case), when no tool has its name, or when the
// arguments break the tool's schema, or have one of its names in another case; looked at in this order. Its status is then not_executed and the tool's body has
// not been started. Nothing is guessed and nothing converted: what a rule saw in the arguments is what the tool gets.
//
// Arguments are read once. Should the call change between Prepare and Execute, it is checked again.
//
// # While it runs
//
// A Policy says how a tool is run: how long an attempt may take, whether a failed one is repeated, how long the answer
// may be. Retries are outermost, each attempt has the whole Timeout. The policy of WithPolicy goes before the tool's
// own, and that before the executor's, field by field.
//
// There is no time limit unless one is set. A tool without one runs on the goroutine of the run and can hold it up; it
// is expected to return when its ctx is done. A tool with one has its own goroutine and is given up when it does not
// return even then.
//
// # What comes of it
//
//	the tool …                         Status        Reason              Attempts
//	answered                           executed      –                   1 or more
//	answered with Output.Failed        executed      error               1 or more
//	returned an error                  failed        error               1 or more
//	panicked                           failed        panic               1 or more
//	took too long                      failed        timeout             1 or more
//	was cancelled with its run         failed        cancelled           1 or more
//	returned an *agent.SignalError     executed      run_stopped         1 or more
//	was never started                  not_executed  malformed_arguments,
//	                                                 unknown_tool,
//	                                                 invalid_arguments,
//	                                                 cancelled …         0
//
// A failure is news for the model, and the other calls of the step are not touched by it; Options.FailRun makes it end
// the run. The model reads the error's text, but never a panic's: that is for ToolResult.Err, with the stack.
//
// # Concurrency
//
// Tools, toolboxes and executors do not change and keep nothing of a run: one executor serves any number of runs at
// once. A tool's body may be run by several goroutines at the same time, for other calls.
package toolexec
