package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/agentfile"
	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/processor"
	"github.com/grapnel-go/grapnel/toolexec"
)

// defaultSteps is how many steps a run may take that nobody limits: an agent that
// goes round in circles is not to do so all night.
const defaultSteps = 50

// made is an agent with what must be closed after it.
type made struct {
	agent *agent.Agent
	// recording is what a replayed model plays; nil for others.
	recording *replay.Session
	// notes are for the reader, before the run begins.
	notes []string

	closing []func() error
}

// close ends what the agent was made with, the last first.
func (m *made) close() error {
	var wrong []error
	for _, f := range slices.Backward(m.closing) {
		wrong = append(wrong, f())
	}
	m.closing = nil
	return errors.Join(wrong...)
}

// watchers are who is told of what the agent does, who is asked, and who writes it
// down; each may be nil.
type watchers struct {
	observer agent.Observer
	approver agent.Approver
	keeper   *durable.Keeper
	reasons  bool // spans say why, too
}

// seen is how the agent is seen through OpenTelemetry.
func (w watchers) seen() capability.Capability { return capability.UseTelemetry{Reasons: w.reasons} }

// build makes the agent that a file describes. The error says everything that is
// wrong with it.
func build(ctx context.Context, file *agentfile.File, w watchers) (_ *made, err error) {
	model, explicit, err := choose(file)
	if err != nil {
		return nil, err
	}
	m := &made{}
	defer func() {
		if err != nil {
			err = errors.Join(&usageError{err}, m.close())
		}
	}()
	b := builder.New().WithName(agentName(file)).WithParallel(int(file.Parallel)).WithInstructions(file.Instructions)
	var tools []toolexec.Tool
	var wrong []error
	if model.Provider == agentfile.Replay {
		if m.recording, tools, err = openRecording(model.Name); err != nil {
			return nil, err
		}
		if len(file.Tools)+len(file.MCP) > 0 {
			m.notes = append(m.notes, "A recording is played: its tools answer what was recorded, and the tools of the agent file are left out.")
		}
		b = b.WithDriver(replay.Driver{}).With(capability.UseCriteria(replay.GoOn))
	} else {
		driver, err := newDriver(model, file)
		wrong = append(wrong, err)
		if err == nil && !explicit {
			driver = firstCall{driver}
			m.notes = append(m.notes, fmt.Sprintf("No model was named: asking %s.", &model))
		}
		b = b.WithDriver(driver).With(capability.UseStepProcessor("retry", retryOf(file.Retry)))
		if tools, err = m.tools(ctx, file); err != nil {
			wrong, tools = append(wrong, err), nil // which of them hooks would reach is not known
		}
	}
	list, err := m.hooks(file, tools)
	if err := errors.Join(append(wrong, err)...); err != nil {
		return nil, err
	}
	b = b.With(w.seen(), capability.UseTools(tools...), capability.UseHooks(list...), guardsOf(file.Guards)).
		WithRequest(func(r agent.Request) agent.Request { return requestOf(r, file) })
	if w.observer != nil {
		b = b.WithObserver(w.observer)
	}
	if w.approver != nil {
		b = b.With(capability.UseApproval(w.approver))
	}
	if w.keeper != nil {
		b = b.With(capability.UseDurability{Keeper: w.keeper})
	}
	m.agent, err = b.Build().Get()
	return m, err
}

func retryOf(r agentfile.Retry) processor.Retry {
	return processor.Retry{
		Attempts: int(r.Attempts), Delay: time.Duration(r.Delay), Max: time.Duration(r.Max), Jitter: 0.2,
	}
}

func guardsOf(g agentfile.Guards) capability.UseGuards {
	return capability.UseGuards{
		Steps: int(lo.CoalesceOrEmpty(g.Steps, defaultSteps)), Tokens: int64(g.Tokens), Cost: float64(g.Cost), Time: time.Duration(g.Time),
	}
}

// requestOf is what the model is asked with.
func requestOf(r agent.Request, file *agentfile.File) agent.Request {
	r.MaxOutputTokens = int(file.MaxOutputTokens)
	if file.Temperature != nil {
		r.Temperature = mo.Some(float64(*file.Temperature))
	}
	for name, value := range file.Options {
		r.Options = r.Options.With(name, value)
	}
	if text := file.Output.Schema.Text; text != "" {
		schema, err := toolexec.CompileSchema(text)
		r.Output = &agent.Output{Name: lo.CoalesceOrEmpty(file.Output.Name, "answer"), Schema: text, Check: func(answer string) error {
			if err != nil {
				return err
			}
			return ofAnswer(schema.Validate(unfenced(answer)))
		}}
	}
	return r
}

// ofAnswer is the error of checking arguments without the word: it is about an
// answer, and told to the model.
func ofAnswer(err error) error {
	if wrong, ok := errors.AsType[*agent.ArgumentsError](err); ok {
		_, text, _ := strings.Cut(wrong.Error(), ": ")
		return errors.New(text)
	}
	return err
}

// unfenced is an answer without the code fence that models like to put around JSON.
func unfenced(answer string) string {
	text := strings.TrimSpace(answer)
	body, opened := strings.CutPrefix(text, "```")
	body, closed := strings.CutSuffix(body, "```")
	if !opened || !closed {
		return text
	}
	return strings.TrimSpace(strings.TrimPrefix(body, "json"))
}
