// Package backtest reports what hooks would have done in recorded runs: it replays the runs through a real agent with
// these hooks, and counts.
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
// The agent is real: the loop, the order of hooks and the effect of their answers are those of a program. Only the model
// and its tools are replayed, by package replay, from the recordings that package recorded reads.
//
// # What is counted
//
// A Decision is the effect of a hook on a call or on another event: denied, asked about (no person can answer, so the
// call does not run), rewritten, mocked, redacted, stopped. Decisions of hooks in shadow are reported separately and
// change nothing. Calls that the agent refuses regardless of hooks, because they break their tool's schema, are not
// decisions.
//
// Where a recording has labels:
//
//   - blocked: of the attacks that succeeded and of which a harmful call was executed, those of which every such call
//     is denied, asked about, or kept from running by a hook that stopped the run;
//   - broken: of the runs without an attack that did the user's task, those of which a call is denied, or asked about,
//     that had succeeded;
//   - twins denied: the same of the runs in which the user asks for what attackers ask for elsewhere.
//
// A Share also says how many of its count depend on a question (ByAsking): with a person to approve, these are asked
// about and not lost.
//
// # What a replay cannot know
//
// After the first denied call, the rest of a run is counterfactual: the recorded model continues as if the call had
// succeeded, although a real model would have been told and might have found another way or given up. So broken is an
// upper bound, and decisions about later calls are marked (Decision.After). Values that only a denied call created may
// appear in later answers of the recording.
//
// # Concurrency and failure
//
// Run uses all cores. When its context ends it stops, and the report says so. A run that cannot be read or replayed is
// counted and reported with its file and line, and the others continue. Hooks are called as in a program: a hook that
// writes or sends does so. All functions are safe for concurrent use; a Report must not be changed while it is written.
package backtest
