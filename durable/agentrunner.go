package durable

import (
	"context"
	"errors"
	"fmt"

	"github.com/grapnel-go/grapnel/agent"
)

// Agents are the agents that a worker can run, by name. Package registry builds them from files.
type Agents interface {
	// HasAgent reports whether there is an agent with a name.
	HasAgent(name string) bool
	// Agent returns the agent with a name. The agent must use the keeper of the runner. It is called for
	// each run.
	Agent(ctx context.Context, name string) (*agent.Agent, error)
}

// AgentMap is Agents by their names.
type AgentMap map[string]*agent.Agent

// HasAgent reports whether the map has an agent with a name.
func (m AgentMap) HasAgent(name string) bool { return m[name] != nil }

// Agent returns the agent with a name.
func (m AgentMap) Agent(_ context.Context, name string) (*agent.Agent, error) {
	if a := m[name]; a != nil {
		return a, nil
	}
	return nil, fmt.Errorf("no agent %q", name)
}

// AgentRunner returns the runner of agents whose runs a keeper records.
func AgentRunner(k *Keeper, agents Agents) Runner { return &agentRunner{k, agents} }

type agentRunner struct {
	keeper *Keeper
	agents Agents
}

// Has reports whether there is an agent with the name.
func (r *agentRunner) Has(name string) bool { return r.agents.HasAgent(name) }

// Owner returns the owner of the keeper.
func (r *agentRunner) Owner() string { return r.keeper.Owner() }

// Suspend suspends the keeper.
func (r *agentRunner) Suspend() { r.keeper.Suspend() }

// Execute runs the agent. The end of the run is not an error of Execute, whatever it is.
func (r *agentRunner) Execute(ctx context.Context, about Run) error {
	a, err := r.agents.Agent(ctx, about.Name)
	if err != nil {
		return fmt.Errorf("run %s: agent %q: %w", about.ID, about.Name, err)
	}
	if err := r.keeper.Execute(ctx, a, about).Error(); err != nil && !hasRun(err) && !errors.Is(err, ErrStale) {
		return err
	}
	return nil
}

// AgentJob returns a job for an agent: the conversation so far, and new messages.
func AgentJob(name string, s agent.State, input ...agent.Message) (Job, error) {
	s = s.With(input...)
	data, err := agent.Checkpoint(s).Changes(agent.State{})
	if err != nil {
		return Job{}, fmt.Errorf("making a job for agent %q: %w", name, err)
	}
	return Job{Kind: KindAgent, Name: name, Session: s.Session(), Input: data}, nil
}
