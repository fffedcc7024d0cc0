// Package timeline tells a person what an agent does, while it does it: steps,
// streamed text, tool calls, what hooks decided, retries, cost, and why it ended.
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
// # What is written
//
// Lines are only ever added, so that the output reads the same on a terminal, in
// a file and in a scrolled-back window. Lines are wrapped to the width, counted in
// columns: wide characters take two. What hooks decided about a call stands with
// the call.
//
// Text of models, tools and hooks is made harmless first: see Clean. Without
// colours nothing but text and line ends is written.
//
// # Concurrency
//
// A Timeline shows one agent with one run at a time. Its methods may be called at
// once.
package timeline
