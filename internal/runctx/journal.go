// Package once carries a run's journal in its context, from the keeper around the run to the actions of hooks inside
// the run. The two packages do not import each other.
package once

import (
	"context"

	"github.com/grapnel-go/grapnel/agent"
)

// Journal performs an operation once in the life of a run, and records it. durable.Keeper.Once is an
// implementation.
type Journal interface {
	Once(
		ctx context.Context, s agent.State, name string, repeat bool, do func(ctx context.Context, key string) ([]byte, error),
	) ([]byte, error)
}

type journalKey struct{}

// Into returns ctx with the journal of a run.
func Into(ctx context.Context, j Journal) context.Context {
	return context.WithValue(ctx, journalKey{}, j)
}

// From returns the journal that Into stored. It returns nil in a run that is not durable.
func From(ctx context.Context) Journal {
	j, _ := ctx.Value(journalKey{}).(Journal)
	return j
}
