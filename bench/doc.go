// Package bench measures agent frameworks side by side on the same work: a
// scripted model that asks for one trivial tool call a step, and is shown the
// whole transcript each time.
//
// What is measured is the framework, not the model: the script looks at the last
// message only, so its cost is the same on the ten-thousandth message as on the
// tenth. What a contender did is proved, not assumed: see [Proof].
//
//	run, err := bare.Contender().Prepare(bench.Job{Steps: 100}) // off the clock
//	outcome, err := run(ctx)                                     // on it
//	fmt.Println(outcome.Proof() == bench.Job{Steps: 100}.Proof()) // true, always
//
// The module is separate from the framework's and needs none, not even grapnel: each
// contender but the bare loop is a program and a module of its own in the folder
// contenders, with the versions that it asks for. What they share is here:
//
//   - package bench: the job, the script, the proof, and how one thing is measured
//   - bare: the loop that one would write by hand
//   - benchtest: the proofs and benchmarks that every contender's tests run
//   - worker: the main function of a contender's program
//   - table: the plan of rounds, and what is written: tables, a chart, results
//
// One command builds all programs, measures everything in several rounds of random
// order, each measurement in a process of its own, and writes README.md, chart.svg
// and results.txt:
//
//	make -C bench table
//
// # Rules
//
// A [Contender]'s Prepare is off the clock and may take its time; a [Run] is on it,
// but for what it does in [Script.OffClock]. A Run may be called by many goroutines
// at once, when it must not share what belongs to one conversation; its counts are
// read from one call at a time. A Run that did other work than the job is an error,
// not a measurement.
package bench
