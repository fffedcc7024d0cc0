// Package processor contains middleware around a step or a whole run: code that measures time, retries, changes the
// context or handles an error.
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
// The first is the outermost: Chain(a, b) around a step is a(b(step)). Each attempt of a Retry calls all processors
// inside the Retry again, but none outside.
//
// A processor can be used in both places. Around a run it is called once, before the input is accepted, and next
// executes the rest. Around a step it is called for each step, and next takes the step.
//
// # Failure
//
// An error that a processor returns ends the run, unless it is the agent.StepError that next returned, wrapped or not.
// The criteria judge a StepError. A processor that fails after next has returned, and must keep the work, returns an
// agent.RunError with the state. To stop a run without failing it, return a state WithStop. A processor must call next,
// stop the run or return an error. Otherwise the run fails.
//
// # Concurrency
//
// Every processor in this package is an immutable value that can serve any number of runs at the same time. None of
// them starts a goroutine.
package processor
