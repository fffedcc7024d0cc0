package processor_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/continuation"
	"github.com/grapnel-go/grapnel/processor"
)

// meter is a sum that many runs add to.
type meter struct {
	mu    sync.Mutex
	told  int
	total agent.Usage
}

func newMeter() *meter { return &meter{total: agent.Usage{Cost: mo.Some(0.0)}} }

func (m *meter) add(_ context.Context, _ agent.State, used agent.Usage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told++
	m.total = m.total.Add(used)
}

func TestUsageTellsEachStep(t *testing.T) {
	step, whole := newMeter(), newMeter()
	final, err := run(t.Context(), t, agent.Config{
		Driver:     asks(2),
		AroundRun:  []agent.Processor{processor.Usage(whole.add)},
		AroundStep: []agent.Processor{processor.Usage(step.add)},
	})
	require.NoError(t, err)
	assert.Equal(t, 3, step.told)
	assert.Equal(t, 1, whole.told)
	assert.Equal(t, agent.Usage{InputTokens: 30, OutputTokens: 3, Cost: mo.Some(1.5)}, final.RunUsage())
	assert.Equal(t, final.RunUsage(), step.total)
	assert.Equal(t, final.RunUsage(), whole.total)
}

// A second run of a session tells its own, and many runs may tell at once.
func TestUsageOverManyRuns(t *testing.T) {
	step, whole := newMeter(), newMeter()
	a := agent.New(agent.Config{
		Driver: asks(1), Executor: works,
		AroundRun:  []agent.Processor{processor.Usage(whole.add)},
		AroundStep: []agent.Processor{processor.Usage(step.add)},
	}).MustGet()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			session := a.Session(agent.NewState())
			for range 3 {
				assert.NoError(t, session.Run(t.Context()).Error())
			}
		})
	}
	wg.Wait()
	assert.Equal(t, 48, step.told)
	assert.Equal(t, 24, whole.told)
	assert.Equal(t, int64(480), step.total.InputTokens)
	assert.Equal(t, step.total, whole.total)
}

// The usage of a failed step is reported; a failed call is reported as zero; a step
// that was not taken is not reported.
func TestUsageOfFailures(t *testing.T) {
	step, whole := newMeter(), newMeter()
	around := func(config agent.Config) agent.Config {
		config.AroundRun = []agent.Processor{processor.Usage(whole.add)}
		config.AroundStep = append([]agent.Processor{processor.Usage(step.add)}, config.AroundStep...)
		return config
	}
	_, err := run(t.Context(), t, around(agent.Config{
		Driver: asks(1), Executor: tool(func(context.Context) (string, error) { return "", &broken{} }),
	}))
	require.Error(t, err)
	assert.Equal(t, agent.Usage{InputTokens: 10, Cost: mo.Some(0.5)}, step.total)
	assert.Equal(t, step.total, whole.total)

	_, err = run(t.Context(), t, around(agent.Config{
		Driver:    fails(errors.New("down")),
		Criterion: continuation.All(agent.Base, continuation.ErrorPolicy{Model: continuation.Retry, MaxRetries: 1}),
	}))
	require.NoError(t, err)
	assert.Equal(t, 1+2, step.told)
	assert.Equal(t, agent.Usage{InputTokens: 20, OutputTokens: 1, Cost: mo.Some(1.0)}, step.total)
	assert.Equal(t, step.total, whole.total)

	_, err = run(t.Context(), t, around(agent.Config{
		Driver: asks(0),
		AroundStep: []agent.Processor{processor.Before(func(_ context.Context, s agent.State) (agent.State, error) {
			return s.WithStop(agent.Signal{Reason: agent.StopRequested}), nil
		})},
	}))
	require.NoError(t, err)
	assert.Equal(t, 3, step.told)
	assert.Equal(t, 2, whole.told)
}

// The cost of a reply without one is unknown.
func TestUsageOfUnknownCost(t *testing.T) {
	m := newMeter()
	_, err := run(t.Context(), t, agent.Config{
		Driver: agent.DriverFunc(func(context.Context, agent.State) (agent.Step, error) {
			return agent.Step{Message: agent.Assistant("a"), Usage: agent.Usage{InputTokens: 1}}, nil
		}),
		AroundStep: []agent.Processor{processor.Usage(m.add)},
	})
	require.NoError(t, err)
	assert.True(t, m.total.Cost.IsAbsent())
}
