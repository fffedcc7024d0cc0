package processor

import (
	"context"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// Usage tells add what each step consumed, with the state after it: to keep a
// meter for a user, a team or a model over many runs. It stands around the step;
// around the run it tells once, what the whole run consumed. A step that failed
// after the model answered is told of, too; a step that was not taken is not. Add
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

// usedIn sums what the last n steps of the run consumed. Model calls that failed
// count as nothing.
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
