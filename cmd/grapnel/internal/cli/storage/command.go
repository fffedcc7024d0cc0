package storage

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/coordinator/client"
	"github.com/grapnel-go/grapnel/durable"
)

// Command is the common part of the commands that open a store.
type Command struct {
	Std console.Streams
	At  string // the flag --store or --server
}

// AddFlags adds the flags --store and --server to a command and those below it.
func (r *Command) AddFlags(c *cobra.Command) *cobra.Command {
	RegisterStore(c, &r.At)
	RegisterServer(c, &r.At)
	return c
}

// With opens the store and calls do.
func (r *Command) With(ctx context.Context, create bool, do func(k *Store) error) (err error) {
	k, err := Open(ctx, r.At, create)
	if err != nil {
		return err
	}
	defer func() { err = ExplainError(errors.Join(err, k.Close())) }()
	return do(k)
}

// WithRun opens the store and calls do with the run that has an ID, or a prefix of it.
func (r *Command) WithRun(ctx context.Context, id string, do func(k *Store, about durable.Run) error) error {
	return r.With(ctx, false, func(k *Store) error {
		about, err := k.Find(ctx, id)
		if err != nil {
			return err
		}
		return do(k, about)
	})
}

// WithDirect works like With, and returns an error if a coordinator has the store.
func (r *Command) WithDirect(ctx context.Context, create bool, do func(k *Store) error) error {
	return r.With(ctx, create, func(k *Store) error {
		if err := k.RequireDirect(); err != nil {
			return err
		}
		return do(k)
	})
}

// WithCoordinator works like With, for commands that use only the client. What the coordinator finds wrong is a mistake of the caller.
func (r *Command) WithCoordinator(ctx context.Context, do func(k *Store) error) error {
	return r.With(ctx, true, func(k *Store) error {
		err := do(k)
		if refused, ok := errors.AsType[*client.Error](err); ok && len(refused.Errors) > 0 {
			return console.Usage(refused)
		}
		return err
	})
}

// Missing returns a mistake of the caller with a text if something was not found, and otherwise err.
func Missing(err error, format string, args ...any) error {
	if errors.Is(err, durable.ErrNotFound) {
		return console.Usagef(format, args...)
	}
	return err
}
