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
//	outcome.Proof() == bench.Job{Steps: 100}.Proof()             // always
//
// The module is separate from the framework's, so that nobody who uses the
// framework downloads its peers. One command measures everything in several
// rounds of random order and writes the table into README.md:
//
//	make -C bench table
//
// To enter a contender, write a package beside bare that returns a [Contender],
// and add it to the list in package contenders.
package bench
