package cli

import (
	"context"
	"errors"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/agentfile"
	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/hooks/redact"
	"github.com/grapnel-go/grapnel/registry"
)

// parts is what the names in agent files stand for, for one agent.
type parts struct {
	// recording is what is played in the place of a model; nil for a model.
	recording *replay.Session
	// asked says that the model was named.
	asked bool
	// clean takes secrets out, and is nil where nothing is redacted; unclean is why it
	// cannot be made.
	clean   *redact.Redactor
	unclean error
	// ruled says that the policies that the agent file names are in force.
	ruled bool
	// notes are for the reader, before the run begins.
	notes []string
}

// newRegistry returns the names that agent files can use.
func newRegistry() registry.Registry { return (&parts{}).registry() }

func (p *parts) registry() registry.Registry {
	drivers := map[string]registry.DriverMaker{
		agentfile.Replay + ":": func(context.Context, *registry.Making, string) (agent.Driver, error) { return replay.Driver{}, nil },
	}
	for _, provider := range agentfile.Providers {
		drivers[provider+"/"] = func(_ context.Context, m *registry.Making, model string) (agent.Driver, error) {
			driver, err := newDriver(agentfile.Model{Provider: provider, Name: model}, m.Definition)
			if err == nil && !p.asked {
				driver = firstCall{driver}
			}
			return driver, err
		}
	}
	return registry.Registry{Drivers: drivers, Tools: toolMakers(), Hooks: p.hooks(), Connect: connectServer, Idle: p.idle, Policies: p.policies}
}

// policies returns no capability, because ruling installs the rules of all policies.
func (p *parts) policies(context.Context, *registry.Making, []string) (capability.Capability, error) {
	return nil, p.checkRuled()
}

// checkRuled returns an error for an agent with policies of its own that a rule starts.
func (p *parts) checkRuled() error {
	if p.ruled {
		return nil
	}
	return errors.New("an agent that a rule starts has no policy of its own: the rules about tools hold for it as for the agent that is judged")
}
