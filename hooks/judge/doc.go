// Package judge holds hooks that let a model decide what rules cannot: whether a call, a result or an answer is acceptable.
//
//	j, err := judge.New(judge.Options{
//	Driver: small, // a separate model; a small one is enough for most rules
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
// Calls judges a call before it runs. A denied call does not run, and the model receives the reason. Results judges
// the results of tools, including mocked ones; a denied result is withheld. Answers judges the answer with which a
// run would end; after a denial the run continues with the reason, or stops when it has used up its continuations.
// One judge may provide all three hooks.
//
// Calls are judged after the other hooks of PreToolUse, so that a call that a guard denies costs nothing. Results are
// judged after all guards, so that redacted text does not reach the judge. The results of calls that did not run are not
// judged.
//
// # What the judge sees
//
// The judge sees the rule and the data under judgement: the tool's name and the arguments, the result's text, or the
// answer. With Options.Input it also sees the user's last message in this session, which Answers always shows; with
// Options.Transcript it sees some or all of the last messages. It sees nothing else. Images and files in a result are
// named, not shown.
//
// Everything from the run is one JSON value between two lines that end in a random word, and the judge is told that it is
// data and never an instruction. This makes it harder to manipulate a judge, not impossible: do not use a judge as the only
// guard. Data longer than Options.MaxBytes is a failure. It is not cut, since an attack could hide in the part that does
// not fit.
//
// # The answer
//
// The judge receives the schema and answers with {"verdict": "allow", "reason": "…"} or "deny". Everything else is a
// failure of the hook: other members, text around the JSON, a tool call, a denial without a reason, no answer in
// time. Options.Failure decides about failures; by default, a call, result or answer that cannot be judged is denied.
//
// The driver is called once, without tools, agent or hooks: no hook, including the judge itself, sees the judge's model
// call.
//
// # Cost
//
// The usage of a judge does not count for the run or its budget. Judge.Usage returns the total so far, and Options.Told
// gets each judgement with its usage.
//
// # Concurrency
//
// One judge serves any number of runs at once.
package judge
