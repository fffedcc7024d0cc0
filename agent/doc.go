// Package agent is the loop: ask a model, run the tools it wants, judge whether to go
// on. It holds the nouns (State, Message, ToolCall, Step, Session), the interfaces that
// everything else implements or wraps (Driver, Executor, Processor, Criterion), and the
// Agent that joins them. The main flow is in loop.go, the handling of a step's calls in
// perform.go, approvals in approve.go, the ways in which a run ends in outcome.go.
//
//	a, err := agent.New(agent.Config{Name: "echo", Driver: driver}).Get()
//	if err != nil {
//		return err
//	}
//	final, err := a.Run(ctx, agent.NewState(), agent.UserText("hello")).Get()
//	fmt.Println(final.Status(), final.Answer())
//
// Most programs build their agents with package builder, out of capabilities.
//
// # Words
//
// A session is a conversation of one or more runs; Session.Close ends it. A run is one execution of an
// agent on a session; it takes steps. A step is one model turn and the tool calls
// that the model asked for.
//
// # Order
//
// A run goes through the processors around the run, of which the first is the
// outermost. Then it judges, takes a step and judges again until a criterion ends
// it. A step goes through the processors around the step; inside, the driver is
// asked, every call is prepared in the order in which the model asked, then all
// calls are executed, then the step is recorded as a whole. Every call id gets
// exactly one answer, whatever happens. All calls of a step see the same state;
// their effects are applied in call order when the step is recorded.
//
// # Failure
//
// A tool that fails is an answer for the model. A model call that fails, and any error
// of a driver, executor, processor or criterion, ends the run, unless a criterion
// handles it. A run that ends with an error returns a RunError, which holds the last
// good state. A decision is never an error: it is in the state's Status and StopSignal.
// A component that can only return an error stops a run with a SignalError.
//
// Panics of tools and hooks are caught by the packages that call them. A panic in
// anything else (a driver, a processor, a criterion, an observer, an executor of your
// own) is a bug in the program. Run panics with it on the goroutine that called Run,
// whichever goroutine it happened on. Observers get no event for the end of such a run.
//
// # Waiting for a person
//
// A call that needs approval goes to the Approver. An answer of Park ends the run as
// parked: no call of the step has run, and the state has the reply, the questions and
// their deadlines (State.Interventions). WithApproval records the answers, in this
// process or another, and Resume continues inside the step: the model is not asked
// again, the controls are, and an approval counts only for the call that the person saw.
//
// # JSON
//
// A State has one versioned JSON form, for parking, checkpoints and transfer between
// processes. It keeps everything that belongs to the session, but nothing that belongs
// to the agent (its request, a view, scratch values) or to the process (error values:
// kind and text remain). Reading validates: every call must have exactly one answer, and
// the error for an invalid state says where it is invalid.
//
// # Concurrency
//
// An Agent serves any number of runs at once. State, Message and the other values
// are immutable and may be shared freely. A run works on the goroutine that called
// it, and starts others only for parallel tool calls, which have ended when it
// returns.
package agent
