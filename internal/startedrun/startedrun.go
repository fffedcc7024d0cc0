// Package startedrun stores run information in contexts: whether a tool call has started a run, and the run to which
// a context belongs. The started run's agent sets the flag. The executor reads it, and does not retry such a call.
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

// Note sets the flag of the innermost watched tool call in ctx, if any.
func Note(ctx context.Context) {
	if flag, ok := ctx.Value(flagKey{}).(*atomic.Bool); ok {
		flag.Store(true)
	}
}

type runKey struct{}

// Within returns a context that belongs to a run, for starting other runs. With a nil run, the other runs' usage does
// not count for any run.
func Within(ctx context.Context, run any) context.Context {
	return context.WithValue(ctx, runKey{}, run)
}

// Above returns the run that ctx belongs to, or nil.
func Above(ctx context.Context) any { return ctx.Value(runKey{}) }
