// Package timeline shows a person the progress of an agent: steps, streamed text, tool calls, decisions of
// hooks, retries, cost, and the reason why it ended.
//
//	show := timeline.New(timeline.Config{Out: os.Stderr, Colour: true})
//	a, err := builder.New().WithDriver(driver).WithObserver(show).Build().Get()
//	// …
//	for progress, err := range a.Stream(ctx, agent.NewState(), input) {
//		if progress.Delta != nil {
//			show.Delta(*progress.Delta)
//		}
//	}
//
// # Output
//
// The timeline only appends lines, so that the output reads the same on a terminal, in a file and in a
// scrollback buffer. Lines are wrapped to the width, counted in columns: wide characters take two. Decisions
// of hooks about a call are shown with the call.
//
// Text of models, tools and hooks is sanitized first: see Clean. Without colours, the output contains only
// text and line ends.
//
// # Concurrency
//
// A Timeline shows one agent with one run at a time. Its methods are safe for concurrent use.
package timeline
