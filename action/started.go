package action

import "context"

type startedKey struct{}

// WithinHookRun returns ctx for a run that a hook has started. In that run and in everything that it starts, hook
// actions cannot start agents or pipelines. Otherwise hooks could trigger themselves. An AgentStarter or Spawner that
// runs work in another process must transfer this flag: see IsStarted. One that passes its ctx on need not.
func WithinHookRun(ctx context.Context) context.Context {
	return context.WithValue(ctx, startedKey{}, true)
}

// IsStarted reports whether ctx belongs to a run that a hook has started.
func IsStarted(ctx context.Context) bool {
	started, _ := ctx.Value(startedKey{}).(bool)
	return started
}

type depthKey struct{}

// WithDepth returns ctx for a pipeline at the given depth of spawned pipelines, including itself. A Spawner that runs
// pipelines in another process must transfer the depth. One that passes its ctx on need not.
func WithDepth(ctx context.Context, depth int) context.Context {
	return context.WithValue(ctx, depthKey{}, depth)
}

// Depth returns the number of nested spawned pipelines around ctx. It is zero outside of spawned pipelines.
func Depth(ctx context.Context) int {
	depth, _ := ctx.Value(depthKey{}).(int)
	return depth
}
