package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/agentfile"
	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/policy"
	"github.com/grapnel-go/grapnel/registry"
	"github.com/grapnel-go/grapnel/toolexec"
)

// defaultAttempts is how often a model is asked in all when asking it fails.
const defaultAttempts = 3

// made is an agent with what must be closed after it.
type made struct {
	agent *agent.Agent
	// recording is what a replayed model plays; nil for others.
	recording *replay.Session
	// notes are for the reader, before the run begins.
	notes []string

	// close ends what the agent was made with.
	close func() error
}

// watchers are who is told of what the agent does, who is asked, who writes it down, and
// the rules of policy files; each may be nil.
type watchers struct {
	observer agent.Observer
	approver agent.Approver
	keeper   *durable.Keeper
	reasons  bool // spans say why, too
	rules    rules
}

// observeAgent returns how the agent is seen through OpenTelemetry.
func (w watchers) observeAgent() capability.Capability {
	return capability.UseTelemetry{Reasons: w.reasons}
}

// build makes the agent that a file describes. The error says everything that is
// wrong with it.
func build(ctx context.Context, file *registry.File, w watchers) (_ *made, err error) {
	model, asked, err := choose(file.Definition)
	if err != nil {
		return nil, err
	}
	p, m, f := &parts{asked: asked}, &made{}, *file
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
			p.notes = append(p.notes, "A recording is played: its tools answer what was recorded, and the tools of the agent file are left out.")
		}
		f.Tools, f.MCP, f.Retry = nil, nil, registry.Retry{}
		more = append(more, capability.UseCriteria(replay.GoOn))
	} else {
		if !asked {
			p.notes = append(p.notes, fmt.Sprintf("No model was named: asking %s.", &model))
		}
		f.Retry.Attempts = cmp.Or(f.Retry.Attempts, defaultAttempts)
	}
	return m, m.build(ctx, p, &f, w, given, more)
}

// build makes the agent of a definition that is complete, with what watches it.
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
	if ruling.policy != nil {
		if plan, err := b.Plan().Get(); err == nil { // else building it says so
			missing := ruling.policy.Missing(plan.Gaps())
			if w.rules.strict && m.recording == nil && len(missing) > 0 {
				return errors.Join(unmetRules(missing), m.close())
			}
			for _, rule := range missing {
				m.notes = append(m.notes, fmt.Sprintf("For another agent than this one? %s", rule))
			}
		}
	}
	if m.agent, err = b.Build().Get(); err != nil {
		return errors.Join(err, m.close())
	}
	return nil
}

// unmetRules returns the error about rules for what the agent does not have.
func unmetRules(missing []policy.Warning) error {
	wrong := lo.Map(missing, func(w policy.Warning, _ int) error { return errors.New(w.String()) })
	return fmt.Errorf("--strict: rules for what this agent does not have: %w", errors.Join(wrong...))
}
