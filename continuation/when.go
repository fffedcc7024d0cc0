package continuation

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/grapnel-go/grapnel/agent"
)

// StopWhen forbids to go on, for agent.StopRequested, once a condition on the
// state is met: "the report is written", "three searches found nothing". The name
// is the signal's source and stands in its message. The func must be quick and
// safe for concurrent use; it is asked before the first step, too.
func StopWhen(name string, met func(s agent.State) bool) agent.Criterion {
	return newStateCriterion(fmt.Sprintf("StopWhen(%q)", name), func(s agent.State) *agent.Evaluation {
		if !met(s) {
			return nil
		}
		return forbidBecause(agent.StopRequested, name, fmt.Sprintf("the condition %q is met", name), nil)
	})
}

// CancelSource says whether a user wants the run that s belongs to cancelled: it
// reads a flag, a row of a table. It must return soon after ctx is done and be
// safe for concurrent use. An error ends the run as failed: a source that cannot be
// asked may have said stop.
type CancelSource func(ctx context.Context, s agent.State) (bool, error)

// CancelFlag returns a source that reads a flag.
func CancelFlag(flag *atomic.Bool) CancelSource {
	return func(context.Context, agent.State) (bool, error) { return flag.Load(), nil }
}

// UntilCancelled forbids to go on, for agent.StopUser, once the source says that a
// user wants the run cancelled. The run then ends as stopped, before its first
// step or after the one under way. The source is not asked about a run that is
// already to stop.
//
// To interrupt a step under way, cancel the context of the run instead.
func UntilCancelled(source CancelSource) agent.Criterion {
	return &criterion{"UntilCancelled", func(ctx context.Context, s agent.State) (*agent.Evaluation, error) {
		if s.Stopped() {
			return nil, nil //nolint:nilnil // no opinion
		}
		wanted, err := source(ctx, s)
		switch {
		case err != nil:
			return nil, fmt.Errorf("asking whether the user wants to cancel: %w", err)
		case !wanted:
			return nil, nil //nolint:nilnil // no opinion
		}
		return forbidBecause(agent.StopUser, "continuation.UntilCancelled", "the user wants the run to end", nil), nil
	}}
}
