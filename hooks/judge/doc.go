// Package judge contains hooks that ask a model whether a call, a result or an answer is acceptable, for cases that
// rules cannot decide.
//
//	j, err := judge.New(judge.Options{
//		Driver: small, // a separate model; a small one is enough for most rules
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
// # Judgements
//
// Calls judges a call before it runs. A denied call does not run, and the model receives the reason. Results judges
// tool results, including mocked ones. A denied result is withheld. Answers judges the answer with which a run would
// end. After a denial the run continues with the reason, or stops when it has used up its continuations. One judge can
// provide all three hooks.
//
// Calls are judged after the other PreToolUse hooks, so that calls that a guard denies cost nothing. Results are judged
// after all guards, so that redacted text does not reach the judge. Results of calls that did not run are not judged.
//
// # The judge's view
//
// The judge sees the rule, and the tool's name with its arguments, the result's text, or the answer. With Options.Input
// it sees the user's last message in this session, which Answers always shows. With Options.Transcript it sees some of
// the last messages, or all. It sees nothing else. Images and files in a result are named, not shown.
//
// Everything from the run is one JSON value between two lines that end in a random word. The prompt says that this
// value is data and never an instruction. This makes it harder to manipulate a judge, not impossible: do not use a
// judge as the only guard. Data longer than Options.MaxBytes is a failure. It is not cut, because the part that does
// not fit could contain an attack.
//
// # The answer
//
// The judge gets the schema and answers with {"verdict": "allow", "reason": "…"} or "deny". Everything else is a hook
// failure: other members, text around the JSON, a tool call, a denial without a reason, no answer in time.
// Options.Failure then applies. By default, a call, result or answer that could not be judged is not accepted.
//
// The driver is called once, without tools, agent or hooks, so hooks, including the judge itself, do not see the
// judge's model call.
//
// # Cost
//
// A judge's usage does not count for the run or its budget. Judge.Usage returns the total so far, and Options.Told gets
// each judgement with its usage.
//
// # Concurrency
//
// One judge can serve any number of runs at the same time.
package judge
