package worker

import (
	"context"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/temporal"
)

// openScheduler opens the scheduler of a worker on a store: a Temporal server if TEMPORAL_ADDRESS names one, and otherwise nil,
// which means durable.NewEmbedded. The caller closes it.
func openScheduler(ctx context.Context, store durable.Queue, getenv func(string) string) (s durable.Scheduler, closeIt func() error, err error) {
	address, o, err := temporal.FromEnvironment(getenv)
	if err != nil || address == "" {
		return nil, func() error { return nil }, err
	}
	o.Queues = store.Queues
	opened, err := temporal.Open(ctx, address, o)
	if err != nil {
		return nil, nil, err
	}
	return opened, opened.Close, nil
}
