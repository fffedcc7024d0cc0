// Package action implements the actions of declared hooks: run a program or a bash script, ask a web service, a tool, an
// agent, a pipeline, a model or a person, or call a Go func.
//
//	check := action.HTTP{URL: "https://policy.example.com/check", Timeout: 5 * time.Second}
//	a, err := check.Action(action.Host{}).Get() // the error joins all problems
//	if err != nil {
//		return err
//	}
//	hook := hooks.On(hooks.AtPreToolUse, "check", func(ctx context.Context, c hooks.ToolContext) hooks.Result {
//		return action.Apply(ctx, c, a, action.NewRequest(c, "check"))
//	}).WithTimeout(check.Limit())
//
// Most programs do not need this code: package policy builds hooks with these actions from files. docs/actions.md is for
// authors of such files, with a table of all failures and their consequences.
//
// # From a declaration to an outcome
//
// A Declared is a plain value, as declared in a file. Validate reports its problems, field by field; Lint reports probable
// mistakes. Action makes it ready to run with a Host, which provides agents, tools, a model, an approver and secrets.
// NewRequest builds the input of the action; Do runs it; the Answer may have a Decision, the common form of all actions;
// Decide converts it to an outcome of the point. Apply combines Keep, Do and Decide. Start runs an action without waiting for it.
//
// # Failure
//
// A failed action, or one with an invalid answer, returns an *Error with a one-word class of the failure. The failure
// policy of the hook applies to it. An answer that looks like a decision but is invalid is a failure and never an approval.
// At points where nothing can be denied or withheld, other text is output.
//
// # Time
//
// Each action has its own time limit and honours ctx. Processes receive SIGTERM, then SIGKILL, together with all
// processes that they have started. Code of the host (funcs, starters, callers) that does not return when its ctx is
// done is abandoned.
//
// # Durable runs
//
// In a durable run (package durable), the result of an action is recorded in the journal, and the action is not repeated
// when the run resumes: see Keep, which Apply and Start use. Each request there has an IdempotencyKey.
//
// # Secrets
//
// URLs and headers may refer to secrets, which are read when a request is sent and never appear in events or errors. Values
// of a run are always treated as data: never interpreted by a shell, in a URL or in JSON.
//
// # Concurrency
//
// Everything here is immutable or safe for concurrent use: one action serves any number of runs concurrently.
package action
