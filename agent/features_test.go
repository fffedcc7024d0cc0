package agent_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
)

type described struct{ agent.Driver }

func (described) Features() agent.Features { return agent.Features{Provider: "openai", Images: true} }

func TestFeaturesAreAskedOfTheDriver(t *testing.T) {
	silent := agent.DriverFunc(func(context.Context, agent.State) (agent.Step, error) { return agent.Step{}, nil })
	want := agent.Features{Provider: "openai", Images: true}

	assert.Equal(t, want, agent.FeaturesOf(described{silent}))
	assert.Zero(t, agent.FeaturesOf(silent))

	var wrapped agent.Driver
	a, err := agent.New(agent.Config{
		Driver:     described{silent},
		Observer:   agenttest.Record(),
		WrapDriver: []func(agent.Driver) agent.Driver{func(d agent.Driver) agent.Driver { wrapped = d; return d }},
	}).Get()
	assert.NoError(t, err)
	assert.Equal(t, want, a.Features())
	assert.Equal(t, want, agent.FeaturesOf(wrapped), "what tells the observer passes the question on")
}
