// Package policytest tries policies out: it fires events at their rules and says what each
// of them said and why, and it runs the cases that stand beside a policy in a file.
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
// An Event is one occasion at one point, in the form in which actions are told of it, with
// what else a rule may look at: what was said and called before, usage, metadata, the time.
// Every point can be fired. It is fired through the machinery of a real agent (package
// hooks/moment), so order, matchers, time limits, failure policies and actions are what
// they are in a run. Commands are started and web services asked, unless Options.Wrap is
// NoActions.
//
// # Reports
//
// A Report says what counts in the end, who decided and why, and for each rule at the
// point, in order: whether its turn came, which matcher said no, what its condition came
// to and with what values, what it decided, rewrote, or failed with.
//
// # Cases
//
// A Suite is a file of cases: NAME.test.yaml beside NAME.yaml. A case is an event or a
// transcript, and what is expected of it. Fixtures build its world: files and links in a
// workspace of its own, programs on the PATH, variables, secrets, a web service on the
// loopback. Faults make actions go wrong. Run tries the cases one after the other, each
// with the policy loaded again, and counts which rules and which branches of conditions
// were seen. docs/policy-testing.md is the manual.
//
// # Concurrency
//
// A Trial fires one event at a time and may be used by several goroutines. A Suite changes
// the environment of the process while a case is tried: nothing else should run then.
package policytest
