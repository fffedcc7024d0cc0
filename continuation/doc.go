// Package continuation contains criteria that decide after each step whether a run continues. They handle limits on
// steps, tokens, cost and time, the model's finish reason, cancellation by a user, and errors.
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
// A criterion is asked before the first step and after each step. All asks all its criteria and uses the strongest
// verdict, regardless of order:
//
//	Forbid > RequestContinuation > AllowStop > AllowContinuation > NoOpinion
//
// Among reasons for the same verdict, the reason with the highest rank ends the run: see agent.Strongest. When no
// criterion has an opinion, the run continues, so one of the criteria must end it. Use agent.Base, or ToolCallPresence
// together with an ErrorPolicy.
//
// The limits, UntilCancelled, StopWhen and a stopping ErrorPolicy return Forbid, which no hook and no other criterion
// overrides. FinishReason and ToolCallPresence return AllowStop, and RequestContinuation is stronger. SelfCritique
// returns RequestContinuation while the critic rejects the answer, and Forbid after the last critique. A limit is
// checked between steps, and the current step runs to its end. To interrupt a step, use Deadline of package processor.
//
// # Failure
//
// A criterion that returns an error ends the run as failed. All still asks the others and then returns every error,
// each with the criterion's index and name. A limit that cannot be checked, such as a limit on an unknown cost, counts
// as reached. Tokens that a driver does not report cannot be distinguished from zero.
//
// # Concurrency
//
// Every criterion is an immutable value that can serve any number of runs at the same
// time. It reads everything about a run from the state.
package continuation
