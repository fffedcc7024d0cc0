package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/agentfile"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/waiver"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/policy"
	"github.com/grapnel-go/grapnel/registry"
	"github.com/grapnel-go/grapnel/toolexec"
)

// defaultAttempts is the total number of attempts for a failing model call.
const defaultAttempts = 3

// Built is an agent together with the parts that must be closed after it.
type Built struct {
	Agent *agent.Agent
	// Recording is the recording of a replayed model; nil for other models.
	Recording *replay.Session
	// Notes are shown to the user before the run begins.
	Notes []string

	// Close closes the parts of the agent.
	Close func() error
}

// Watchers are the observer, the approver, the keeper, the rules of policy files and the waivers for an agent; each may be
// nil.
type Watchers struct {
	Observer agent.Observer
	Approver agent.Approver
	Keeper   *durable.Keeper
	Rules    Rules
	// Parks reports that the approver parks every call that needs approval.
	Parks   bool
	Waivers waiver.Source   // answer questions in the place of people
	Tools   []toolexec.Tool // more tools than the file names
	Hooks   []hooks.Hook    // more hooks than the file names
	Dir     string          // the folder of the agent's work; empty means the working directory
	InStage bool            // the agent runs in stages of pipelines
	Note    func(string)    // receives what hooks of Claude Code tell the user
}

// Build builds the agent of a file. The error joins all mistakes in the file.
func Build(ctx context.Context, file *registry.File, w Watchers) (_ *Built, err error) {
	model, asked, err := Choose(file.Definition)
	if err != nil {
		return nil, err
	}
	p, m, f := &Parts{asked: asked, dir: w.Dir}, &Built{}, *file
	defer func() {
		if err != nil {
			err = console.Usage(err)
		}
	}()
	f.Model = model.String()
	more := []capability.Capability{}
	var given []toolexec.Tool
	if model.Provider == agentfile.Replay {
		if m.Recording, given, err = openRecording(model.Name); err != nil {
			return nil, err
		}
		if len(file.Tools)+len(file.MCP) > 0 {
			p.notes = append(p.notes, "A recording is played: its tools return recorded answers, and the tools of the agent file are not used.")
		}
		f.Tools, f.MCP, f.Retry = nil, nil, registry.Retry{}
		more = append(more, capability.UseCriteria(replay.GoOn))
	} else {
		if !asked {
			p.notes = append(p.notes, fmt.Sprintf("No model was named: using %s.", &model))
		}
		f.Retry.Attempts = cmp.Or(f.Retry.Attempts, defaultAttempts)
	}
	if w.InStage {
		more = append(more, capability.UseLater(capability.Later{Stages: []string{"*"}}))
	}
	given = append(given, w.Tools...)
	return m, m.buildComplete(ctx, p, &f, w, given, more)
}

// buildComplete builds the agent from a complete definition, with its watchers.
func (m *Built) buildComplete(ctx context.Context, p *Parts, f *registry.File, w Watchers, given []toolexec.Tool, more []capability.Capability) error {
	f.Name = AgentName(f.Definition)
	p.recording = m.Recording
	p.Clean, p.Unclean = Redacting(f.Definition)
	names := p.Registry()
	first := []capability.Capability{capability.UseTelemetry{Reasons: console.TracesRuns(ctx)}}
	ruling := &ruling{policy: w.Rules.Policy}
	p.ruled = w.Rules.Policy != nil
	if ruling.policy != nil {
		first, m.Notes = append(first, ruling), append(m.Notes, PolicyNote(ruling.policy))
	}
	names.Given, names.First = given, slices.Concat(first, more)
	built, err := names.BuildFile(ctx, f)
	if err != nil {
		return err
	}
	m.Notes, m.Close = append(m.Notes, p.notes...), built.Close
	if ruling.policy != nil {
		done, err := ruling.ready(ctx, w, built.Tools)
		if err != nil {
			return errors.Join(err, m.Close())
		}
		m.Close = func() error { return errors.Join(built.Close(), done()) }
	}
	b := built.Builder
	if w.Observer != nil {
		b = b.WithObserver(w.Observer)
	}
	if w.Approver != nil {
		b = b.With(capability.UseApproval(w.Approver))
	}
	if w.Keeper != nil {
		b = b.With(capability.UseDurability{Keeper: w.Keeper})
	}
	if len(w.Hooks) > 0 {
		b = b.With(capability.UseHooks(w.Hooks...))
	}
	set, err := m.openClaudeHooks(w)
	if err != nil {
		return errors.Join(err, m.Close())
	}
	if set != nil {
		b = b.With(set)
	}
	if w.Waivers != nil {
		b = b.With(capability.UseHooks(waiver.Hook(w.Waivers)))
	}
	if ruling.policy != nil {
		if plan, err := b.Plan().Get(); err == nil { // otherwise Build returns the error
			missing := ruling.policy.Missing(plan.Gaps())
			if w.Rules.Strict && m.Recording == nil && len(missing) > 0 {
				return errors.Join(unmetRules(missing), m.Close())
			}
			for _, rule := range missing {
				m.Notes = append(m.Notes, fmt.Sprintf("Meant for another agent? %s", rule))
			}
			var specs []agent.ToolSpec
			for _, tool := range plan.Tools() {
				specs = append(specs, tool.Spec())
			}
			if names := unguardedTools(ruling.policy, specs); len(names) > 0 && m.Recording == nil {
				m.Notes = append(m.Notes, fmt.Sprintf("No rule is about these tools, which may change something: %s. See grapnel hooks tools.",
					strings.Join(names, ", ")))
			}
		}
	}
	if m.Agent, err = b.Build().Get(); err != nil {
		return errors.Join(err, m.Close())
	}
	return nil
}

// unguardedTools returns the names of the tools that may change something and that no rule is about.
func unguardedTools(p *policy.Policy, specs []agent.ToolSpec) []string {
	return lo.FilterMap(p.CheckTools(specs...), func(w policy.Warning, _ int) (string, bool) { return w.Tool, w.Tool != "" })
}

// unmetRules returns the error for rules about tools or arguments that the agent does not have.
func unmetRules(missing []policy.Warning) error {
	wrong := lo.Map(missing, func(w policy.Warning, _ int) error { return errors.New(w.String()) })
	return fmt.Errorf("--strict: rules for what this agent does not have: %w", errors.Join(wrong...))
}
