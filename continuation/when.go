package continuation

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/grapnel-go/grapnel/agent"
)

// StopWhen stops a run, for agent.StopRequested, when a condition on the state is met, such as "the report is written"
// or "three searches found nothing". The name is the signal's source and part of its message. The func must be quick
// and safe for concurrent use. It is called before the first step, too.
func StopWhen(name string, met func(s agent.State) bool) agent.Criterion {
	return newStateCriterion(fmt.Sprintf("StopWhen(%q)", name), func(s agent.State) *agent.Evaluation {
		if !met(s) {
			return nil
		}
		return forbidBecause(agent.StopRequested, name, fmt.Sprintf("the condition %q is met", name), nil)
	})
}

// A CancelSource reports whether a user wants to cancel s's run, for example by reading a flag or a table row. It must
// return soon after ctx is done and be safe for concurrent use. An error ends the run as failed, because the user may
// have cancelled.
type CancelSource func(ctx context.Context, s agent.State) (bool, error)

// CancelFlag returns a source that reads a flag.
func CancelFlag(flag *atomic.Bool) CancelSource {
	return func(context.Context, agent.State) (bool, error) { return flag.Load(), nil }
}

// UntilCancelled stops a run, for agent.StopUser, when the source reports that a user wants to cancel it. The run then
// ends as stopped, before its first step or after the current one. The source is not called for a run that is already
// stopped.
//
// To interrupt the current step, cancel the run's context instead.
func UntilCancelled(source CancelSource) agent.Criterion {
	return &criterion{"UntilCancelled", func(ctx context.Context, s agent.State) (*agent.Evaluation, error) {
		if s.Stopped() {
			return nil, nil
		}
		wanted, err := source(ctx, s)
		switch {
		case err != nil:
			return nil, fmt.Errorf("checking for cancellation: %w", err)
		case !wanted:
			return nil, nil
		}
		return forbidBecause(agent.StopUser, "continuation.UntilCancelled", "the user wants the run to end", nil), nil
	}}
}
