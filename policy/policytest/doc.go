// Package policytest tests policies: it fires events at their rules and reports what each rule decided and why, and
// it runs a policy's test cases from a file.
//
//	trial, err := policytest.Load([]policy.Layer{{Name: "run", Files: []string{"workspace.yaml"}}}, policy.Options{})
//	if err != nil {
//		return err // file, line and column of all that is wrong
//	}
//	event, err := policytest.ReadEvent("event.json", []byte(`{"tool":"bash","arguments":{"command":"rm -rf /"}}`))
//	if err != nil {
//		return err
//	}
//	report, err := trial.Fire(ctx, event)
//	if err != nil {
//		return err
//	}
//	fmt.Print(report.Text(nil))
//
// # Events
//
// An Event is one event at one hook point, in the format that actions receive, together with everything else that a rule
// can read: earlier messages and calls, usage, metadata, the time. Every point can be fired. It is fired through the
// machinery of a real agent (package hooks/fire), so order, matchers, time limits, failure policies and actions work
// as in a run. Commands are started and web services called, unless Options.Wrap is NoActions.
//
// # Reports
//
// A Report holds the final decision, the rule that made it and the reason. For each rule at the point, in order, it
// says whether the rule was asked, which matcher did not match, the condition's value and the values in it, and
// the rule's result: a decision, a rewrite or an error.
//
// # Cases
//
// A Suite is a file with cases: NAME.test.yaml beside NAME.yaml. A case is an event or a transcript, and the expected
// result. Fixtures set up its environment: files and links in its own workspace, programs on the PATH, variables,
// secrets, a web service on the loopback interface. Faults make actions fail. Run runs the cases one after the other,
// reloads the policy for each, and counts which rules and condition branches were covered.
// docs/policy-testing.md is the manual.
//
// # Concurrency
//
// A Trial fires one event at a time and is safe for concurrent use. A Suite changes the process environment
// while a case runs, so nothing else should run then.
package policytest
