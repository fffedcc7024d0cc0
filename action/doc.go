// Package action implements the actions of declared hooks. An action runs a program or a bash script, calls a Go func,
// or asks a web service, tool, agent, pipeline, model or person.
//
//	check := action.HTTP{URL: "https://policy.example.com/check", Timeout: 5 * time.Second}
//	a, err := check.Action(action.Host{}) // the error joins all problems
//	if err != nil {
//		return err
//	}
//	hook := hooks.On(hooks.AtPreToolUse, "check", func(ctx context.Context, c hooks.ToolContext) hooks.Result {
//		return action.Apply(ctx, c, a, action.NewRequest(c, "check"))
//	}).WithTimeout(check.Limit())
//
// Most programs do not need this code: package policy builds hooks with these actions from files. docs/actions.md is
// for authors of such files. It has a table of all failures and their consequences.
//
// # From a declaration to an outcome
//
// A Declared is a plain value, as declared in a file. Validate reports its problems by field. Lint reports probable
// mistakes. Action makes it ready to run with a Host, which provides agents, tools, a model, an approver and secrets.
// NewRequest builds the action's input, and Do runs the action. The Answer may have a Decision, in the same form for
// all actions. Decide converts it to an outcome for the point. Apply combines Keep, Do and Decide. Start runs an action
// without waiting for it.
//
// # Failure
//
// A failed action returns an *Error that names the kind of failure in one word. So does an action with an invalid
// answer. The hook's failure policy applies. An answer that looks like a decision but is invalid is a failure and never
// an approval. At points where nothing can be denied or withheld, other text is output.
//
// # Time
//
// Each action has its own time limit and honours ctx. Processes receive SIGTERM, then SIGKILL, together with all
// processes that they have started. The action abandons host code (funcs, starters, callers) that does not return when
// its ctx is done.
//
// # Durable runs
//
// In a durable run (package durable), the journal records an action's result, so that a resumed run does not repeat the
// action. See Keep, which Apply and Start use. Each request of such a run has an IdempotencyKey.
//
// # Secrets
//
// URLs and headers may refer to secrets. Secrets are read when a request is sent and never appear in events or errors.
// A run's values are always data: no shell, URL or JSON parser interprets them.
//
// # Concurrency
//
// Everything here is immutable or safe for concurrent use. One action serves any number of runs concurrently.
package action
