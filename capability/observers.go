package capability

import (
	"context"

	"github.com/grapnel-go/grapnel/agent"
)

// joinObservers returns one observer that passes each event to all observers, in order.
func joinObservers(observers []agent.Observer) agent.Observer {
	switch len(observers) {
	case 0:
		return nil
	case 1:
		return observers[0]
	}
	return agent.ObserverFunc(func(ctx context.Context, e agent.Event) {
		for _, o := range observers {
			o.Observe(ctx, e)
		}
	})
}
