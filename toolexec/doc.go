// Package toolexec defines tools and runs them. It determines which tools a model can call, how the model sees them,
// and how a call is answered.
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
// Func makes a tool from a Go func. Its arguments are a struct, from which the JSON Schema is inferred. Its answer is
// text or any value that marshals to JSON. CallFunc works like Func for a func that needs the call and its run, or
// whose schema is stricter than its types. Raw is for a func that parses its arguments itself. Code that gets its tools
// from another source implements Tool. A Toolbox is a set of tools with names that model services accept.
//
// # Before a tool runs
//
// The executor first checks a call's arguments: they must be one unambiguous JSON object. A duplicate name is an error,
// and so are names that differ only in case. Next, a tool must have the call's name. Last, the arguments must fit the
// tool's schema, with names in the same case. If a check fails, the call is refused and the model receives the reason.
// The call's status is then not_executed, and the tool's body has not been started. Nothing is guessed or converted.
// The tool receives exactly the arguments that the hooks saw.
//
// Arguments are read once. If the call changes between Prepare and Execute, it is checked again.
//
// # While it runs
//
// A Policy configures how a tool runs: an attempt's time limit, retries, an answer's maximum length. Retries are
// outermost: each attempt has the whole Timeout. WithPolicy takes precedence over the tool's own policy, and the tool's
// own policy over the executor's, field by field.
//
// There is no time limit unless one is set. A tool without a time limit runs on the run's goroutine and can block it.
// It must return when its ctx is done. A tool with a time limit has its own goroutine, and is abandoned if it does not
// return after its ctx is done.
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
// A tool's failure is an answer for the model and does not affect the step's other calls. With Options.FailRun it ends
// the run. The model reads the error's text, but never a panic's text, which is in ToolResult.Err, with the stack.
//
// # Concurrency
//
// Tools, toolboxes and executors are immutable and hold no run data. One executor can serve any number of runs at the
// same time. A tool's body can run on several goroutines at the same time, for different calls.
package toolexec
