package continuation_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/continuation"
)

func TestStopWhenTheConditionIsMet(t *testing.T) {
	twoFine := func(s agent.State) bool {
		fine := 0
		for _, m := range s.Messages() {
			if m.Role() == agent.RoleTool && m.Text() == "fine" {
				fine++
			}
		}
		return fine >= 2
	}
	final, err := run(t, agent.Config{
		Driver: turns(call("t")), Executor: works,
		Criterion: continuation.All(agent.Base,
			says(agent.Evaluation{Verdict: agent.RequestContinuation}), // IP-78
			continuation.StopWhen("two are enough", twoFine)),
	})
	require.NoError(t, err)
	assert.Equal(t, 2, final.RunStepCount())
	assert.Equal(t, agent.StatusStopped, final.Status())
	assert.Equal(t, agent.Signal{
		Reason: agent.StopRequested, Source: "two are enough", Message: `the condition "two are enough" is met`,
	}, signal(t, final))
}

// IP-73
func TestCancelledBeforeTheRun(t *testing.T) {
	var flag atomic.Bool
	flag.Store(true)
	final, err := run(t, agent.Config{
		Driver:    turns(answer("a")),
		Criterion: continuation.All(agent.Base, continuation.UntilCancelled(continuation.CancelFlag(&flag))),
	})
	require.NoError(t, err)
	assert.Zero(t, final.RunStepCount())
	assert.Equal(t, agent.StatusStopped, final.Status())
	assert.Equal(t, agent.StopUser, signal(t, final).Reason)
	assert.Equal(t, "continuation.UntilCancelled", signal(t, final).Source)
}

// IP-74
func TestCancelledDuringAStep(t *testing.T) {
	var flag atomic.Bool
	final, err := run(t, agent.Config{
		Driver: agent.DriverFunc(func(context.Context, agent.State) (agent.Step, error) {
			flag.Store(true)
			return call("t").step, nil
		}),
		Executor: works,
		Criterion: continuation.All(agent.Base, continuation.UntilCancelled(continuation.CancelFlag(&flag)),
			says(agent.Evaluation{Verdict: agent.RequestContinuation})), // IP-78
	})
	require.NoError(t, err)
	assert.Equal(t, 1, final.RunStepCount())
	assert.Equal(t, 1, final.LastStep().ResultCount(), "the step runs to its end")
	assert.Equal(t, agent.StatusStopped, final.Status())
	assert.Equal(t, agent.StopUser, signal(t, final).Reason)
}

// IP-75
func TestNobodyAsksToCancelWhatIsStopped(t *testing.T) {
	asked := 0
	stopping := agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		return next(ctx, s.WithStop(agent.Signal{Reason: agent.StopByHook, Source: "h"}))
	})
	final, err := run(t, agent.Config{
		Driver: turns(answer("a")), AroundStep: []agent.Processor{stopping},
		Criterion: continuation.All(agent.Base, continuation.UntilCancelled(func(context.Context, agent.State) (bool, error) {
			asked++
			return false, nil
		})),
	})
	require.NoError(t, err)
	assert.Equal(t, 1, asked, "before the step, and not once it was stopped")
	assert.Equal(t, agent.StopByHook, signal(t, final).Reason)
}
