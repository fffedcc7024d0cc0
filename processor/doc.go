// Package processor is middleware around a step or a whole run: what has to
// surround something to time it, retry it, change its context or catch its error.
//
//	meter := func(_ context.Context, s agent.State, used agent.Usage) { fmt.Println(s.Session(), used) }
//	a, err := agent.New(agent.Config{
//		Driver: driver,
//		AroundRun: []agent.Processor{
//			processor.Deadline(10 * time.Minute),
//		},
//		AroundStep: []agent.Processor{
//			processor.Usage(meter),
//			processor.Retry{Attempts: 4},
//		},
//	}).Get()
//
// # Order
//
// The first is the outermost: Chain(a, b) around a step is a(b(step)). What
// stands further in sees less: each attempt of a Retry goes through everything
// inside of it again, and through nothing outside.
//
// A processor serves at both places. Around a run it is called once, with the
// input not yet let in, and next ends the run; around a step it is called for
// each step, and next takes it.
//
// # Failure
//
// An error that a processor returns ends the run, unless it is the
// agent.StepError that next gave it, wrapped or not: that is judged by the
// criteria. A processor that fails after next returned, and wants to keep what was
// done, returns an agent.RunError with the state. To stop a run without failing
// it, return a state WithStop. A processor that neither calls next nor stops nor
// fails is an error of its own.
//
// # Concurrency
//
// Every processor here is an immutable value that serves any number of runs at
// once. None of them starts a goroutine.
package processor
