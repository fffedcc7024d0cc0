package continuation_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/continuation"
)

func TestCriteriaKeepTheContract(t *testing.T) {
	for _, criterion := range []agent.Criterion{
		continuation.All(), fiveGuards,
		continuation.Steps(1), continuation.Tokens(1), continuation.Cost(0.01), continuation.Time(time.Nanosecond),
		continuation.FinishReason(agent.FinishStop, agent.FinishToolCalls), continuation.ToolCallPresence(),
		continuation.StopWhen("twice", func(s agent.State) bool { return s.RunStepCount() > 1 }),
		continuation.UntilCancelled(continuation.CancelFlag(new(atomic.Bool))),
		continuation.ErrorPolicy{},
		continuation.ErrorPolicy{Tool: continuation.Retry, Model: continuation.Ignore, MaxRetries: 1},
		continuation.SelfCritique{Critic: func(context.Context, agent.State) (string, error) { return "", nil }},
	} {
		t.Run(fmt.Sprint(criterion), func(t *testing.T) {
			agenttest.TestCriterion(t, func(*testing.T) agent.Criterion { return criterion })
		})
	}
}
