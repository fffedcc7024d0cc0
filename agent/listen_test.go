package agent_test

import (
	"context"
	"testing"

	"github.com/samber/lo"
	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
)

type said struct{ what string }

func (said) EventName() string { return "said" }

// emitting returns a driver that emits an event before it answers.
func emitting(ctx context.Context, s agent.State) (agent.Step, error) {
	if s.Observed() {
		s.Emit(ctx, said{"asked"})
	}
	return agent.Step{Message: agent.Assistant("hi")}, nil
}

func listening(to agent.Observer) agent.Processor {
	return agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		agent.Checkpoint(s).Listen(to)
		return next(ctx, s)
	})
}

func TestAListenerHearsWhatMiddlewareEmits(t *testing.T) {
	heard := agenttest.Record()
	a := build(t, agent.Config{
		Driver: agent.DriverFunc(emitting), Executor: tools().Executor(), AroundRun: []agent.Processor{listening(heard)},
	})
	_, err := a.Run(t.Context(), agent.NewState(), agent.UserText("hello")).Get()
	require.NoError(t, err)
	assert.Equal(t, []agent.Event{said{"asked"}}, heard.Events(), "nothing of the loop's own")
}

func TestSeveralListenersAreTold(t *testing.T) {
	first, second := agenttest.Record(), agenttest.Record()
	a := build(t, agent.Config{Driver: agent.DriverFunc(emitting), AroundRun: []agent.Processor{listening(first), listening(second)}})
	_, err := a.Run(t.Context(), agent.NewState(), agent.UserText("hello")).Get()
	require.NoError(t, err)
	assert.Equal(t, []agent.Event{said{"asked"}}, first.Events())
	assert.Equal(t, []agent.Event{said{"asked"}}, second.Events())
}

func TestListenerAndObserverAreBothTold(t *testing.T) {
	heard, seen := agenttest.Record(), agenttest.Record()
	a := build(t, agent.Config{Driver: agent.DriverFunc(emitting), Observer: seen, AroundRun: []agent.Processor{listening(heard)}})
	_, err := a.Run(t.Context(), agent.NewState(), agent.UserText("hello")).Get()
	require.NoError(t, err)
	assert.Equal(t, []agent.Event{said{"asked"}}, heard.Events())
	names := lo.Map(seen.Events(), func(e agent.Event, _ int) string { return e.EventName() })
	assert.Equal(t, []string{
		"run.started", "judged", "step.started", "inference.started", "said", "inference.completed", "step.completed", "judged", "run.completed",
	}, names)
}

// A listener receives one run's events only, and a state that does not run has no listener.
func TestAListenerHearsOneRunOnly(t *testing.T) {
	heard := agenttest.Record()
	first := true
	once := agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		if first {
			agent.Checkpoint(s).Listen(heard)
		}
		assert.Equal(t, first, s.Observed())
		first = false
		return next(ctx, s)
	})
	a := build(t, agent.Config{Driver: agent.DriverFunc(emitting), AroundRun: []agent.Processor{once}})
	final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("hello")).Get()
	require.NoError(t, err)
	agent.Checkpoint(final).Listen(heard)
	assert.False(t, final.Observed())
	_, err = a.Run(t.Context(), final, agent.UserText("again")).Get()
	require.NoError(t, err)
	assert.Len(t, heard.Events(), 1)
}
