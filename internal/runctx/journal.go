package runctx

import (
	"context"

	"github.com/grapnel-go/grapnel/agent"
)

// Journal performs an operation once per run and records it. durable.Keeper.Once is an implementation.
type Journal interface {
	Once(
		ctx context.Context, s agent.State, name string, repeat bool, do func(ctx context.Context, key string) ([]byte, error),
	) ([]byte, error)
}

type journalKey struct{}

// WithJournal returns ctx with a run's journal.
func WithJournal(ctx context.Context, j Journal) context.Context {
	return context.WithValue(ctx, journalKey{}, j)
}

// JournalOf returns the journal in ctx, or nil if the run is not durable.
func JournalOf(ctx context.Context) Journal {
	j, _ := ctx.Value(journalKey{}).(Journal)
	return j
}
