// Package processor contains middleware around a step or a whole run: code that must
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
// The first is the outermost: Chain(a, b) around a step is a(b(step)). Each
// attempt of a Retry passes through everything inside of it again, and through
// nothing outside.
//
// A processor can be used in both places. Around a run it is called once, before the
// input is accepted, and next runs to the end of the run; around a step it is called
// for each step, and next takes the step.
//
// # Failure
//
// An error that a processor returns ends the run, unless it is the agent.StepError
// that next returned, wrapped or not: the criteria judge that one. A processor that
// fails after next returned, and wants to keep the work, returns an agent.RunError
// with the state. To stop a run without failing it, return a state WithStop. It is
// an error if a processor neither calls next nor stops nor fails.
//
// # Concurrency
//
// Every processor of this package is an immutable value that serves any number of
// runs at once. None of them starts a goroutine.
package processor
