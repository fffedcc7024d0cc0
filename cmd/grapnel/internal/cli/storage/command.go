package storage

import (
	"context"
	"errors"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/coordinator/client"
)

// Command is the common part of the commands that open a store.
type Command struct {
	Std console.Streams
	At  string // the flag --store or --server
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

// WithCoordinator calls do with a client: of the coordinator at --server, or of a coordinator in this process on the store.
func (r *Command) WithCoordinator(ctx context.Context, do func(k *Store, c *client.Client) error) error {
	at, err := AddressOf(r.At)
	if err != nil {
		return err
	}
	return r.With(ctx, !at.Server(), func(k *Store) error {
		err := do(k, k.Client)
		if refused, ok := errors.AsType[*client.Error](err); ok && len(refused.Errors) > 0 {
			return &console.UsageError{Err: refused}
		}
		return err
	})
}
