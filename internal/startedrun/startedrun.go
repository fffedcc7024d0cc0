// Package startedrun stores information about runs in contexts: whether a tool call has started a run, and the run to
// which a context belongs. The agent of the started run sets the first, and the executor, which would otherwise retry
// the call, reads it.
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

// Note sets the flag of the innermost watched tool call that ctx belongs to, if any.
func Note(ctx context.Context) {
	if flag, ok := ctx.Value(flagKey{}).(*atomic.Bool); ok {
		flag.Store(true)
	}
}

type runKey struct{}

// Within returns a context that belongs to a run, for starting other runs. A nil run means that the usage of these
// runs does not count for any other run.
func Within(ctx context.Context, run any) context.Context {
	return context.WithValue(ctx, runKey{}, run)
}

// Above returns the run that ctx belongs to; nil when there is none.
func Above(ctx context.Context) any { return ctx.Value(runKey{}) }
