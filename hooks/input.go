package hooks

import (
	"context"

	"github.com/grapnel-go/grapnel/agent"
)

// admit asks the hooks before the run. A state with a terminal status means that
// the input is denied. With an error comes the state that the hooks before it
// left.
func (c *Compiled) admit(ctx context.Context, s agent.State) (agent.State, error) {
	if len(inputOf(s)) > 0 {
		var err error
		s, err = foldInput(ctx, c, &c.input, s, InputSubmitted, func(v inputView) InputContext { return InputContext{v} })
		if err != nil || s.Status().Terminal() {
			return s, err
		}
	}
	return foldInput(ctx, c, &c.execution, s, ExecutionStart, func(v inputView) ExecutionContext { return ExecutionContext{v} })
}

// foldInput asks the controls of an input point, in turn, each on what the ones
// before made of the input. The first Deny or Stop ends it.
func foldInput[C Context](ctx context.Context, c *Compiled, m *moment[C], s agent.State, at PointName, view func(inputView) C) (agent.State, error) {
	if m.empty() {
		return s, nil
	}
	var last *Outcome
	var effects agent.Effects
	input := inputOf(s)
	payload := func(frozen *Outcome) C {
		p := &runPayload{base: base{state: s, point: at, frozen: frozen, step: s.RunStepCount()}, input: input}
		return view(inputView{p.common(), p})
	}
	for _, e := range m.controls {
		o, err := e.consult(ctx, payload(nil))
		if err != nil {
			return s, err
		}
		if o == nil {
			continue
		}
		tellConflicts(ctx, s, at, effects, o.effects)
		effects = effects.Plus(o.effects)
		s = s.Apply(o.effects)
		if o.decision != Allow || last == nil {
			last = o
		}
		switch o.decision {
		case Rewrite:
			s = withInput(s, o.input...)
			input = o.input
		case StopRun:
			s = s.WithStop(*signalOf(o))
		case Deny:
			s = denied(s, o) // the observers are still told what it was
		}
		if o.decision == StopRun || o.decision == Deny {
			break
		}
	}
	return s, m.announce(ctx, c.pool, payload(last))
}

// denied is the state of a run whose input was not let in: the input is gone.
func denied(s agent.State, o *Outcome) agent.State {
	signal := *signalOf(o)
	signal.Reason = agent.StopDenied
	return withInput(s).WithStop(signal).WithStatus(agent.StatusDenied)
}

// inputOf is the user messages that no run has let in.
func inputOf(s agent.State) []agent.Message {
	var out []agent.Message
	for _, m := range s.Input() {
		out = append(out, m)
	}
	return out
}

// withInput puts messages in the place of the first user message that no run has
// let in, and drops the others.
func withInput(s agent.State, instead ...agent.Message) agent.State {
	var pending []agent.Message
	placed := false
	for _, m := range s.Pending() {
		if m.Role() != agent.RoleUser || m.Source() != "" {
			pending = append(pending, m)
			continue
		}
		if !placed {
			pending = append(pending, instead...)
			placed = true
		}
	}
	if !placed {
		pending = append(pending, instead...)
	}
	return s.WithInput(pending...)
}
