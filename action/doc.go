// Package action is what declared hooks do: run a program or a text of bash, ask a web service, a tool, an agent, a pipeline,
// a model or a person, or call a Go func.
//
//	check := action.HTTP{URL: "https://policy.example.com/check", Timeout: 5 * time.Second}
//	a, err := check.Action(action.Host{}).Get() // or everything that is wrong with it
//	if err != nil {
//		return err
//	}
//	hook := hooks.On(hooks.AtPreToolUse, "check", func(ctx context.Context, c hooks.ToolContext) hooks.Result {
//		return action.Apply(ctx, c, a, action.NewRequest(c, "check"))
//	}).WithTimeout(check.Limit())
//
// Most programs do not write that: package policy makes hooks of files, whose actions are these. docs/actions.md is the page
// for those who write the files, with a table of what becomes of everything that may go wrong.
//
// # From a declaration to an outcome
//
// A Declared is a plain value, as a file says it. Validate finds what is wrong with it, field by field; Lint what is most
// likely not meant. Action makes it ready, with a Host that has what the program around it must have: agents, tools, a
// model, an approver, secrets. NewRequest says what the action is told of a moment; Do does it; the Answer may have a
// Decision, the one form in which all actions decide; Decide makes the outcome of the point of it. Apply is all three.
// Start does an action and does not wait for it.
//
// # Failure
//
// What could not be done, or has no answer that makes sense, is an *Error with one word for what happened. It goes to the
// failure policy of the hook. An answer in the form of a decision that is not one is a failure and never an approval. Where nothing
// can be denied or withheld, other text is output.
//
// # Time
//
// Each action has a time limit of its own, and honours ctx. Processes get SIGTERM, then SIGKILL, with all that they have
// started. Code of the host (funcs, starters, callers) that does not end when its ctx is done is left behind.
//
// # Runs that are kept
//
// What an action did is written down in the journal of a run that is kept (package durable), and not done again when the
// run goes on: see Keep, which Apply and Start use. Each request there has an IdempotencyKey.
//
// # Secrets
//
// URLs and headers may name secrets, which are read when a request is sent and are in nothing that is told of it. No value
// of a run is ever read as anything but a value: not by a shell, not in a URL, not in JSON.
//
// # Concurrency
//
// Everything here is immutable, or safe for concurrent use: one action serves any number of runs at once.
package action
