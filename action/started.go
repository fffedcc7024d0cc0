package action

import "context"

type startedKey struct{}

// WithinHookRun returns ctx for a run that a hook has started, with all that it starts: hook actions that would start agents or
// pipelines are off in it, so that hooks cannot set themselves off. An AgentStarter or Spawner that runs things elsewhere
// carries this over: see IsStarted. Those that run them with the context that they were given need not care.
func WithinHookRun(ctx context.Context) context.Context {
	return context.WithValue(ctx, startedKey{}, true)
}

// IsStarted reports whether ctx is that of a run that a hook has started.
func IsStarted(ctx context.Context) bool {
	started, _ := ctx.Value(startedKey{}).(bool)
	return started
}

type depthKey struct{}

// WithDepth returns ctx for a pipeline that has depth spawned pipelines above it and itself. A Spawner that runs pipelines
// elsewhere carries it over; those that run them with the context that they were given need not care.
func WithDepth(ctx context.Context, depth int) context.Context {
	return context.WithValue(ctx, depthKey{}, depth)
}

// Depth returns how many spawned pipelines there are, the one of ctx included; zero where none was spawned.
func Depth(ctx context.Context) int {
	depth, _ := ctx.Value(depthKey{}).(int)
	return depth
}
