// Package startedrun carries, in the context of a tool call, whether the call has started a run of an agent: from the
// agent that runs to the executor that would otherwise retry the call.
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
