// Package toolexec defines tools and runs them: it determines which tools a model can call, how they are described to
// the model, and how a call is answered.
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
// Func makes a tool from a Go func: its arguments are a struct, from which the JSON Schema is inferred, and its answer
// is text or any value that marshals to JSON. CallFunc works like Func for a func that needs the call and its run, or
// whose schema is stricter than its types; Raw is for a func that parses its arguments itself. Code that gets its
// tools from another source implements Tool. A Toolbox is a set of tools with names that model services accept.
//
// # Before a tool runs
//
// A call is refused, and the model receives the reason, in these cases, checked in this order: its arguments are not
// one unambiguous JSON object (a name given twice is an error, and so are names that differ only in case), no tool has
// its name, or the arguments violate the tool's schema or have one of its names in another case. Its status is then
// not_executed and the tool's body has not been started. Nothing is guessed or converted: the tool receives exactly
// the arguments that the hooks saw.
//
// Arguments are read once. If the call changes between Prepare and Execute, it is checked again.
//
// # While it runs
//
// A Policy configures how a tool is run: the time limit of an attempt, retries, the maximum length of an answer.
// Retries are outermost, each attempt has the whole Timeout. The policy of WithPolicy takes precedence over the tool's
// own policy, and the tool's own policy over the executor's, field by field.
//
// There is no time limit unless one is set. A tool without a time limit runs on the goroutine of the run and can block
// it; it must return when its ctx is done. A tool with a time limit has its own goroutine, and is abandoned if it does
// not return after its ctx is done.
//
// # Results
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
// The failure of a tool is an answer for the model and does not affect the other calls of the step; with
// Options.FailRun it ends the run. The model reads the error's text, but never the text of a panic, which is in
// ToolResult.Err, with the stack.
//
// # Concurrency
//
// Tools, toolboxes and executors are immutable and hold no data of a run: one executor can serve any number of runs at
// the same time. A tool's body can run on several goroutines at the same time, for different calls.
package toolexec
