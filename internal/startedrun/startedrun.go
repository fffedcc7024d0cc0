// Package startedrun carries, in contexts, what runs of agents know of one another: whether a tool call has started a run,
// from the agent that runs to the executor that would otherwise retry the call; and which run a context belongs to.
package startedrun

import (
	"context"
	"sync/atomic"
)

type flagKey struct{}

// Watch returns a context for a tool call, and a flag that is set when a run starts in it.
func Watch(ctx context.Context) (context.Context, *atomic.Bool) {
	flag := new(atomic.Bool)
	return context.WithValue(ctx, flagKey{}, flag), flag
}

// Note sets the flag of the innermost tool call that ctx belongs to, if one is watched.
func Note(ctx context.Context) {
	if flag, ok := ctx.Value(flagKey{}).(*atomic.Bool); ok {
		flag.Store(true)
	}
}

type runKey struct{}

// Within returns a context that belongs to a run, for the runs that are started with it. Nil is for those
// that do not count for a run above.
func Within(ctx context.Context, run any) context.Context {
	return context.WithValue(ctx, runKey{}, run)
}

// Above returns the run that ctx belongs to; nil when there is none.
func Above(ctx context.Context) any { return ctx.Value(runKey{}) }
