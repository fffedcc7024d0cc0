package agents

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/agentfile"
	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/hooks/redact"
	"github.com/grapnel-go/grapnel/registry"
)

// Parts builds the parts of one agent that names in agent files refer to.
type Parts struct {
	// recording is played instead of calling a model; nil for a model.
	recording *replay.Session
	// asked reports whether the user named a model.
	asked bool
	// Clean redacts secrets; it is nil if redaction is not configured. unclean is the error of creating clean.
	Clean   *redact.Redactor
	Unclean error
	// ruled reports whether the policies of the agent file are in force.
	ruled bool
	// dir is the base of relative folders; empty means the working directory.
	dir string
	// notes are shown to the user before the run begins.
	notes []string
}

// NewRegistry returns the registry of the names that agent files can use.
func NewRegistry() registry.Registry { return (&Parts{}).Registry() }

// folder returns the path of a folder that an agent file names. Empty means that of the agent's work.
func (p *Parts) folder(dir string) string {
	if filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(cmp.Or(p.dir, "."), dir)
}

// Registry returns the names that an agent file can use.
func (p *Parts) Registry() registry.Registry {
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
	return registry.Registry{Drivers: drivers, Tools: p.tools(), Hooks: p.hooks(), Connect: p.connectServer, Idle: p.idle, Policies: p.policies}
}

// policies returns no capability, because ruling installs the rules of all policies.
func (p *Parts) policies(context.Context, *registry.Making, []string) (capability.Capability, error) {
	return nil, p.checkRuled()
}

// checkRuled returns an error for an agent that a rule starts and that has policies of its own.
func (p *Parts) checkRuled() error {
	if p.ruled {
		return nil
	}
	return errors.New("an agent that a rule starts cannot have a policy: the rules about tools of the judged agent apply to it, too")
}
