package processor_test

import (
	"context"
	"testing"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/processor"
)

func TestProcessorsKeepTheContract(t *testing.T) {
	same := func(_ context.Context, s agent.State) (agent.State, error) { return s, nil }
	always := func(agent.State) bool { return true }
	for name, p := range map[string]agent.Processor{
		"Func": processor.Func(func(ctx context.Context, s agent.State, next processor.NextFunc) (agent.State, error) {
			return next(ctx, s)
		}),
		"Before":   processor.Before(same),
		"After":    processor.After(same),
		"Chain":    processor.Chain(processor.Before(same), processor.After(same)),
		"When":     processor.When(always, processor.Before(same)),
		"Retry":    processor.Retry{Delay: -1},
		"Deadline": processor.Deadline(time.Hour),
		"Usage":    processor.Usage(func(context.Context, agent.State, agent.Usage) {}),
	} {
		t.Run(name, func(t *testing.T) {
			agenttest.TestProcessor(t, func(*testing.T) agent.Processor { return p })
		})
	}
}
