// Package continuation judges after each step whether a run goes on: limits of
// steps, tokens, money and time, reasons of the model to stop, a user's wish to
// cancel, and what is to be done about errors.
//
//	a, err := agent.New(agent.Config{
//		Driver: driver,
//		Criterion: continuation.All(
//			agent.Base,
//			continuation.Steps(20),
//			continuation.Cost(0.50),
//			continuation.Time(10*time.Minute),
//			continuation.RetryToolErrors(3),
//		),
//	}).Get()
//
// # Order
//
// A criterion is asked before the first step and after each. All asks every one
// of its criteria and takes the strongest verdict, whatever the order:
//
//	Forbid > RequestContinuation > AllowStop > AllowContinuation > NoOpinion
//
// Of several reasons for the same verdict the weightiest names the end of the
// run; see agent.Strongest. When no criterion has an opinion the run goes on, so one of
// the criteria has to end it: agent.Base, or ToolCallPresence together with an
// ErrorPolicy.
//
// The limits, UntilCancelled, StopWhen and a stopping ErrorPolicy forbid: no hook and
// no other criterion overrides them. FinishReason and ToolCallPresence only allow
// the run to stop, and a criterion that requests to go on is stronger: SelfCritique
// requests it while there is fault with an answer, and forbids it in the end. A limit is
// kept between steps; a step under way runs to its end. Package processor has
// Deadline for what must not wait.
//
// # Failure
//
// A criterion that returns an error ends the run as failed. All still asks the
// others and then returns every error, each with the place and the name of its
// criterion. A limit that cannot be told, such as an unknown cost,
// counts as reached. Tokens that a driver does not report cannot be told from
// none.
//
// # Concurrency
//
// Every criterion is an immutable value that serves any number of runs at once.
// What it knows of a run, it reads from the state.
package continuation
