// Package judge holds hooks that let a model decide what no rule can: whether a call, a result or an answer is what it
// should be.
//
//	j, err := judge.New(judge.Options{
//		Driver: small, // a model of its own; a small one will do for most rules
//		Rule:   "Mails may only be sent to people who are named in the user's request.",
//		Input:  true,
//	})
//	if err != nil {
//		return err
//	}
//	a, err := builder.New().
//		WithDriver(driver).
//		With(capability.UseTools(tools...), capability.UseHooks(j.Calls(hooks.ToolNamed("send_mail")))).
//		Build().Get()
//
// # What is judged
//
// Calls judges a call before it runs; what the judge denies does not run, and the model is told why. Results judges what a
// tool answered, mocked answers included; what the judge denies is withheld. Answers judges the answer with which a run
// would end; what the judge denies makes the run go on with the reason, or stops it when it has gone on as often as it may.
// One judge may make all three.
//
// Calls are judged after the other hooks of PreToolUse have spoken, so that what a guard denies costs nothing, and results
// after all guards: what redaction takes out of a result does not reach the judge either. Answers to calls that did not
// run are not judged.
//
// # What it is shown
//
// The rule; the tool's name and the arguments, the result's text or the answer; with Options.Input what the user asked in
// this session last, which Answers always shows; with Options.Transcript some of the last messages, or all. Nothing else.
// Images and files in a result are named, not shown.
//
// All that comes from the run is one JSON value between two lines that end in a word that cannot be known before, and the
// judge is told that it is data and never an instruction. That makes it harder to talk a judge into something, not
// impossible: a judge is one guard, not the only one. What is longer than Options.MaxBytes is not cut, since what does not
// fit is where one would hide something, but a failure.
//
// # The answer
//
// The judge answers with {"verdict": "allow", "reason": "…"} or "deny" and is given the schema. Everything else is a
// failure of the hook: other members, text around it, a tool call, a denial without a reason, no answer in time. What then
// happens says Options.Failure: closed, unless it says otherwise, so that what could not be judged does not happen.
//
// The driver is asked once, without tools, agent or hooks: no hook, this one included, is asked about what a judge does.
//
// # Cost
//
// What judging costs is no part of the run's usage, nor of its budget. Judge.Usage is all of it so far, Options.Told is told
// of each judgement with what it used.
//
// # Concurrency
//
// One judge serves any number of runs at once.
package judge
