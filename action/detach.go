package action

import (
	"context"
	"time"

	"github.com/grapnel-go/grapnel/hooks"
)

// Start does an action for a hook and does not wait for it: in the agent's pool of detached hooks, with its own copy of
// what it is told and a context that outlives the run. Nothing that it says is a decision; what it fails with is told to
// the observer of the run under the name of the request's hook. It reports whether the action will be done: see
// hooks.Common.Detach.
func Start(ctx context.Context, c hooks.Context, d Declared, a Action, r *Request) bool {
	at, ok := c.(interface {
		Detach(ctx context.Context, name string, limit time.Duration, f func(ctx context.Context) error) bool
	})
	if !ok {
		return false
	}
	told := *r
	told.Decides = false
	once := Keep(ctx, a, &told)
	return at.Detach(ctx, r.Hook, d.Limit(), func(ctx context.Context) error { return once.Do(ctx, &told).Error() })
}
