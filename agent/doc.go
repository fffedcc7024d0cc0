// Package agent is the loop: it asks a model, runs the tools that the model requests, and decides whether to continue.
// It defines the data types (State, Message, ToolCall, Step, Session), the interfaces that everything else implements
// or wraps (Driver, Executor, Processor, Criterion), and the Agent that joins them. The main flow is in loop.go, the
// handling of a step's calls in perform.go, approvals in approve.go, and the run's end in outcome.go.
//
//	a, err := agent.New(agent.Config{Name: "echo", Driver: driver}).Get()
//	if err != nil {
//		return err
//	}
//	final, err := a.Run(ctx, agent.NewState(), agent.UserText("hello")).Get()
//	fmt.Println(final.Status(), final.Answer())
//
// Most programs build their agents with package builder, from capabilities.
//
// # Terms
//
// A session is a conversation of one or more runs; Session.Close ends it. A run is one execution of an agent on a
// session; it takes steps. A step is one model turn and the tool calls that the model asked for.
//
// # Order
//
// A run goes through the processors around the run, the first outermost. Then the criterion judges, the run takes a
// step, and the criterion judges again, until it ends the run. A step goes through the processors around the step.
// Inside, the driver is asked, every call is prepared in the model's order, all calls are executed, and the step is
// recorded as a whole. Every call ID always gets exactly one answer. All calls of a step see the same state. Their
// effects are applied in call order when the step is recorded.
//
// # Failure
//
// A tool's failure is an answer for the model. A model call that fails, and any error of a driver, executor, processor
// or criterion, ends the run, unless a criterion handles it. A run that ends with an error returns a RunError, which
// holds the last good state. A decision is never an error: it is in the state's Status and StopSignal. A component that
// can only return an error stops a run with a SignalError.
//
// The packages that call tools and hooks recover their panics. A panic in anything else (a driver, a processor, a
// criterion, an observer, your own executor) is a bug in the program. Run panics with it on the goroutine that called
// Run, whichever goroutine it happened on. Observers receive no end event for such a run.
//
// # Waiting for a person
//
// Calls that need approval go to the Approver. Park as an answer ends the run as parked: no call of the step has
// run, and the state has the reply, the questions and their deadlines (State.Interventions). WithApproval records the
// answers, in this process or another, and Resume continues inside the step. The model is not asked again, but the
// controls are. An approval counts only for the call that the person saw.
//
// # JSON
//
// A State has one versioned JSON form, for parking, checkpoints and transfer between processes. It keeps everything
// that belongs to the session. It omits what belongs to the agent (its request, a view, scratch values) or to the
// process (error values, which keep only their kind and text). Reading validates: every call must have exactly one
// answer, and the error for an invalid state says where it is invalid.
//
// # Concurrency
//
// An Agent can serve any number of runs at the same time. State, Message and the other values are immutable and may be
// shared freely. Run works on its caller's goroutine. It starts other goroutines only for parallel tool calls, and they
// have ended when Run returns.
package agent
