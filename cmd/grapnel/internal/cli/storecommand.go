package cli

import (
	"context"
	"errors"

	"github.com/grapnel-go/grapnel/coordinator/client"
)

// storeCommand is the common part of the commands that open a store.
type storeCommand struct {
	std streams
	at  string // the flag --store or --server
}

// with opens the store and calls do.
func (r *storeCommand) with(ctx context.Context, create bool, do func(k *openedStore) error) (err error) {
	k, err := openStore(ctx, r.at, create)
	if err != nil {
		return err
	}
	defer func() { err = explainError(errors.Join(err, k.close())) }()
	return do(k)
}

// withCoordinator calls do with a client of the coordinator at --server, or of one in this process on the store.
func (r *storeCommand) withCoordinator(ctx context.Context, do func(k *openedStore, c *client.Client) error) error {
	at, err := storeAddressOf(r.at)
	if err != nil {
		return err
	}
	return r.with(ctx, !at.server(), func(k *openedStore) error {
		err := do(k, k.client)
		if refused, ok := errors.AsType[*client.Error](err); ok && len(refused.Errors) > 0 {
			return &usageError{refused}
		}
		return err
	})
}
