// Package once carries, in the context of a run that is kept, who writes down what is done once in it: from the keeper
// around the run to what the hooks inside of it do, none of which knows the other.
package once

import (
	"context"

	"github.com/grapnel-go/grapnel/agent"
)

// Journal does something once in the life of a run, and writes it down: see durable.Keeper.Once, which is one.
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

// From returns the journal that Into put there; nil in a run that is not kept.
func From(ctx context.Context) Journal {
	j, _ := ctx.Value(journalKey{}).(Journal)
	return j
}
