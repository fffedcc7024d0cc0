package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/action/local"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/agentfile"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/policy"
	"github.com/grapnel-go/grapnel/registry"
	"github.com/grapnel-go/grapnel/toolexec"
)

// Rules are the policies in force, with the agents that their actions may start.
type Rules struct {
	Policy *policy.Policy
	agents []ruleAgent
	claude claudeSettings
	// Strict reports rules for tools or arguments that the agent does not have as errors.
	Strict bool
}

// ruleAgent is the agent of a flag --rule-agent NAME=FILE.
type ruleAgent struct {
	path string
	file *registry.File
}

// ruleAgents parses the flags --rule-agent.
func (o *Options) ruleAgents() ([]ruleAgent, error) {
	var out []ruleAgent
	for _, text := range o.agents {
		name, path, ok := strings.Cut(text, "=")
		if !ok || name == "" || path == "" {
			return nil, fmt.Errorf("--rule-agent %q: expected NAME=FILE, such as reviewer=reviewer.yaml", text)
		}
		if lo.ContainsBy(out, func(a ruleAgent) bool { return a.file.Name == name }) {
			return nil, fmt.Errorf("--rule-agent: duplicate name %q", name)
		}
		text, err := o.text(path, registry.ReadFile)
		if err != nil {
			return nil, fmt.Errorf("--rule-agent: %w", err)
		}
		file, err := NewRegistry().Parse(path, []byte(text))
		if err != nil {
			return nil, err
		}
		file.Name = name
		out = append(out, ruleAgent{path, file})
	}
	return out, nil
}

// ruling is the rules as a capability. Their actions need parts of the agent that do not exist until the agent is
// assembled, shortly before it is built.
type ruling struct {
	policy *policy.Policy
	host   action.Host
}

// Install adds the rules as hooks.
func (r *ruling) Install(plan capability.Plan) mo.Result[capability.Plan] {
	return capability.UsePolicy(r.policy.WithHost(r.host)).Install(plan)
}

// ready passes to the rules' actions the agent's tools, the agents that rules may start, and the approver.
func (r *ruling) ready(ctx context.Context, w Watchers, tools []toolexec.Tool) (done func() error, err error) {
	r.host = r.policy.Host()
	done = func() error { return nil }
	if r.host.Tools, err = local.NewTools(tools...); err != nil {
		return done, err
	}
	if r.host.Approver = w.Approver; w.Approver == nil {
		r.host.Approver = NoTerminal
	}
	r.host.Parks = w.Parks && w.Keeper != nil
	agents, done, err := startableAgents(ctx, w)
	if err != nil {
		return done, errors.Join(err, done())
	}
	r.host.Agents = agents
	return done, nil
}

// NoTerminal is the approver of gates without a terminal. It fails the gate with an explanation.
var NoTerminal = agent.ApproverFunc(func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) {
	return agent.Approval{}, errors.New("no terminal to ask a person")
})

// startableAgents builds the agents that rules may start. Done closes them.
func startableAgents(ctx context.Context, w Watchers) (_ *local.Agents, done func() error, err error) {
	var opened []func() error
	done = func() error {
		return errors.Join(lo.Map(opened, func(f func() error, _ int) error { return f() })...)
	}
	var list []local.Agent
	for _, a := range w.Rules.agents {
		built, err := a.buildAgent(ctx, w)
		if err != nil {
			return nil, done, fmt.Errorf("--rule-agent %s=%s: %w", a.file.Name, a.path, err)
		}
		opened = append(opened, built.Close)
		list = append(list, local.Agent{Agent: built.Builder})
	}
	agents, err := local.NewAgents(list...)
	return agents, done, err
}

// buildAgent builds the agent like Build, with the agent's own guards.
func (a ruleAgent) buildAgent(ctx context.Context, w Watchers) (*registry.Built, error) {
	model, asked, err := Choose(a.file.Definition)
	if err != nil {
		return nil, err
	}
	if model.Provider == agentfile.Replay {
		return nil, errors.New("an agent that a rule starts needs a model, not a recording: set one in its file")
	}
	f := *a.file
	f.Model = model.String()
	f.Retry.Attempts = cmp.Or(f.Retry.Attempts, defaultAttempts)
	p := &Parts{asked: asked, dir: w.Dir}
	p.Clean, p.Unclean = Redacting(f.Definition)
	names := p.Registry()
	names.First = []capability.Capability{capability.UseTelemetry{Reasons: console.TracesRuns(ctx)}}
	return names.BuildFile(ctx, &f)
}
