// Package bench compares agent frameworks on the same work: a scripted model that makes one trivial tool call in each
// step, and receives the whole transcript each time.
//
// It measures the framework, not the model: the script reads only the last message, so its cost does not grow with
// the transcript. Each contender has to prove that it did the work: see [Proof].
//
//	run, err := bare.Contender().Prepare(bench.Job{Steps: 100}) // not measured
//	outcome, err := run(ctx)                                     // measured
//	fmt.Println(outcome.Proof() == bench.Job{Steps: 100}.Proof()) // true, always
//
// The module is separate from the framework's module and does not depend on it. Each contender except the bare loop
// is a program and a module of its own in the folder contenders, with the versions that it requires. They share:
//
//   - package bench: the job, the script, the proof, and how one thing is measured
//   - bare: a loop written by hand
//   - benchtest: the proofs and benchmarks that every contender's tests run
//   - worker: the main function of a contender's program
//   - table: the plan of rounds, and the output: tables, a chart, results
//
// One command builds all programs and measures everything in several rounds of random order, each measurement in its
// own process. It writes README.md, chart.svg and results.txt:
//
//	make -C bench table
//
// # Rules
//
// The time of a [Contender]'s Prepare is not measured. The time of a [Run] is, except for the code that it runs in
// [Script.OffClock]. Goroutines may call a Run concurrently, so it must not share the data of one conversation; to
// read its counts, make one call at a time. A Run that did other work than the job is an error, not a measurement.
package bench
