package cli

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

// made is an agent together with the parts that must be closed after it.
type made struct {
	agent *agent.Agent
	// recording is the recording of a replayed model; nil for other models.
	recording *replay.Session
	// notes are shown to the user before the run begins.
	notes []string

	// close closes the parts of the agent.
	close func() error
}

// watchers are the observer, the approver, the keeper, the rules of policy files and the waivers for an agent; each may be
// nil.
type watchers struct {
	observer agent.Observer
	approver agent.Approver
	keeper   *durable.Keeper
	reasons  bool // spans contain reasons, too
	rules    rules
	// parks reports that the approver parks every call that needs approval.
	parks   bool
	waivers durable.Audits  // answer questions in the place of people
	tools   []toolexec.Tool // tools of the program, besides those of the file
	hooks   []hooks.Hook    // hooks of the program, besides those of the file
	dir     string          // the folder of the agent's work; empty means the working directory
	inStage bool            // the agent runs in stages of pipelines
}

// observeAgent returns the capability that reports the agent to OpenTelemetry.
func (w watchers) observeAgent() capability.Capability {
	return capability.UseTelemetry{Reasons: w.reasons}
}

// build builds the agent of a file. The error joins all mistakes in the file.
func build(ctx context.Context, file *registry.File, w watchers) (_ *made, err error) {
	model, asked, err := choose(file.Definition)
	if err != nil {
		return nil, err
	}
	p, m, f := &parts{asked: asked, dir: w.dir}, &made{}, *file
	defer func() {
		if err != nil {
			err = &usageError{err}
		}
	}()
	f.Model = model.String()
	more := []capability.Capability{}
	var given []toolexec.Tool
	if model.Provider == agentfile.Replay {
		if m.recording, given, err = openRecording(model.Name); err != nil {
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
	if w.inStage {
		more = append(more, capability.UseLater(capability.Later{Stages: []string{"*"}}))
	}
	given = append(given, w.tools...)
	return m, m.build(ctx, p, &f, w, given, more)
}

// build builds the agent from a complete definition, with its watchers.
func (m *made) build(ctx context.Context, p *parts, f *registry.File, w watchers, given []toolexec.Tool, more []capability.Capability) error {
	f.Name = agentName(f.Definition)
	p.recording = m.recording
	p.clean, p.unclean = redacting(f.Definition)
	names := p.registry()
	first := []capability.Capability{w.observeAgent()}
	ruling := &ruling{policy: w.rules.policy}
	p.ruled = w.rules.policy != nil
	if ruling.policy != nil {
		first, m.notes = append(first, ruling), append(m.notes, policyNote(ruling.policy))
	}
	names.Given, names.First = given, slices.Concat(first, more)
	built, err := names.BuildFile(ctx, f)
	if err != nil {
		return err
	}
	m.notes, m.close = append(m.notes, p.notes...), built.Close
	if ruling.policy != nil {
		done, err := ruling.ready(ctx, w, built.Tools)
		if err != nil {
			return errors.Join(err, m.close())
		}
		m.close = func() error { return errors.Join(built.Close(), done()) }
	}
	b := built.Builder
	if w.observer != nil {
		b = b.WithObserver(w.observer)
	}
	if w.approver != nil {
		b = b.With(capability.UseApproval(w.approver))
	}
	if w.keeper != nil {
		b = b.With(capability.UseDurability{Keeper: w.keeper})
	}
	if len(w.hooks) > 0 {
		b = b.With(capability.UseHooks(w.hooks...))
	}
	if w.waivers != nil {
		b = b.With(capability.UseHooks(waiver.Hook(w.waivers)))
	}
	if ruling.policy != nil {
		if plan, err := b.Plan().Get(); err == nil { // otherwise Build returns the error
			missing := ruling.policy.Missing(plan.Gaps())
			if w.rules.strict && m.recording == nil && len(missing) > 0 {
				return errors.Join(unmetRules(missing), m.close())
			}
			for _, rule := range missing {
				m.notes = append(m.notes, fmt.Sprintf("Meant for another agent? %s", rule))
			}
			var specs []agent.ToolSpec
			for _, tool := range plan.Tools() {
				specs = append(specs, tool.Spec())
			}
			if names := unguardedTools(ruling.policy, specs); len(names) > 0 && m.recording == nil {
				m.notes = append(m.notes, fmt.Sprintf("No rule is about these tools, which may change something: %s. See grapnel hooks tools.",
					strings.Join(names, ", ")))
			}
		}
	}
	if m.agent, err = b.Build().Get(); err != nil {
		return errors.Join(err, m.close())
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
