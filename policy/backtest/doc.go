// Package backtest tells what hooks would have done to agents that ran already: it plays recorded runs through a real
// agent that has them, and counts.
//
//	found, err := backtest.Find("recordings/", "session.jsonl")
//	if err != nil {
//		return err
//	}
//	report, err := backtest.Run(ctx, found, backtest.Options{
//		Policies: []backtest.Policy{backtest.Always("no-wipe", noWipe)},
//	})
//	if err != nil {
//		return err
//	}
//	return report.WriteText(os.Stdout, backtest.Look{Width: 100})
//
// The agent is the real one: the loop, the order of hooks and what becomes of their answers are what they are in a
// program. Only the model and its tools are played, by package replay, from what package recorded reads.
//
// # What is counted
//
// A Decision is what became of a call, or of a moment, because of a hook: denied, asked about (no person is there to
// ask, so the call does not run), rewritten, mocked, redacted, stopped. What hooks in shadow would have decided is told
// beside it and changes nothing. Calls that the agent does not run whatever the hooks say, as they break their tool's
// schema, are no decisions.
//
// Where a recording has labels:
//
//   - blocked: of the attacks that succeeded and of which a harmful call was executed, those of which every such call
//     is denied, asked about, or kept from running by a hook that stopped the run;
//   - broken: of the runs without an attack that did the user's task, those of which a call is denied, or asked about,
//     that had succeeded;
//   - twins denied: the same of the runs in which the user asks for what attackers ask for elsewhere.
//
// A Share says how many of its count would not be there without questions: with a person to approve, these are asked
// and not lost.
//
// # What a replay cannot know
//
// After the first denied call of a run the rest is counterfactual: the model goes on as recorded, though it would have
// been told, and might have found another way or given up. So broken is an upper bound, and what is decided about later
// calls is marked (Decision.After). Values that only a denied call brought into the world may show up in later answers
// of the recording.
//
// # Concurrency and failure
//
// Run plays on all cores. When its context ends it stops, and the report says so. A run that cannot be read or played
// is counted and told with its file and line, and the others go on. Hooks are called as in a program: one that writes
// or sends does so. All functions are safe for concurrent use; a Report must not be written while it is.
package backtest
