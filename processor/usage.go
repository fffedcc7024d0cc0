package processor

import (
	"context"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// Usage returns a processor that calls add with each step's usage and the state after it. It can measure the usage of a
// user, a team or a model over many runs. Use it around the step. Around the run it calls add once, with the whole
// run's usage. The usage includes a step that failed after the model answered, but not a step that was not taken. Add
// must be safe for concurrent use.
func Usage(add func(ctx context.Context, s agent.State, used agent.Usage)) agent.Processor {
	return agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		out := next(ctx, s)
		after, err := out.Get()
		if err != nil {
			after = keptState(s, err)
		}
		if taken := after.RunStepCount() - s.RunStepCount(); taken > 0 {
			add(ctx, after, usedIn(after, taken))
		}
		return out
	})
}

// usedIn returns the sum of the usage in the run's last n steps. Failed model calls count as zero.
func usedIn(s agent.State, n int) agent.Usage {
	used := agent.Usage{Cost: mo.Some(0.0)}
	for _, step := range s.RunStepsBackward() {
		if n--; n < 0 {
			break
		}
		if step.Message().Role() != "" {
			used = used.Add(step.Usage())
		}
	}
	return used
}
