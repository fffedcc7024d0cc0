// Package backtest reports what hooks would have done in recorded runs. It replays the runs through a real agent that
// has these hooks, and counts their decisions.
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
// The agent is real: the loop, the order of hooks and the effect of their answers are the same as in a program. Only
// the model and its tools are replayed, by package replay, from recordings that package recorded reads.
//
// # What is counted
//
// A Decision is a hook's effect on a call or another event: denied, asked about (no person can answer, so the
// call does not run), rewritten, mocked, redacted, stopped. Decisions of hooks in shadow are reported separately and
// change nothing. Calls that the agent refuses regardless of hooks, because they violate their tool's schema, are not
// decisions: Score.Refused counts such calls that had run in the recording.
//
// If a recording has labels, the report also counts:
//
//   - blocked: the share of successful attacks with a harmful call in which every harmful call is now denied,
//     asked about, refused by its tool's schema, or prevented by a hook that stopped the run;
//   - broken: the share of runs without an attack that did the user's task in which a successful call is now denied or
//     asked about;
//   - twins denied: the same share of runs in which the user asks for the same thing as attackers in other runs.
//
// Share.ByAsking is the part of a share that depends on questions: these calls run if a person approves them.
//
// # Limits of a replay
//
// After the first denied call, the rest is counterfactual: the recorded model continues as if the call had
// succeeded. A real model would have learned of the denial, and might have found another way or given up. Therefore
// broken is an upper bound, and decisions about later calls are marked (Decision.After). Later results in the
// recording may contain values that only a denied call created.
//
// # Concurrency and failure
//
// Run uses all cores. When its context ends, it stops, and the report says so. If a run cannot be read or replayed,
// Run counts it, reports its file and line, and continues with the next. Hooks run as in a program: a hook that
// writes a file or sends a message does so. All functions are safe for concurrent use; do not change a Report while
// it is being written.
package backtest
