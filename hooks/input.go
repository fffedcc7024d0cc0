package hooks

import (
	"context"
	"slices"

	"github.com/grapnel-go/grapnel/agent"
)

// admit asks the hooks before the run. A terminal status in the state means that the input was denied. With an error,
// the state has the hooks' changes before the failure.
func (c *Compiled) admit(ctx context.Context, s agent.State) (agent.State, error) {
	s, err := c.startConversation(ctx, s)
	if err != nil || s.Status().Terminal() {
		return s, err
	}
	if len(inputOf(s)) > 0 {
		s, err = foldInput(ctx, c, &pointsOf(c).input, s, InputSubmitted, func(v inputView) InputContext { return InputContext{v} })
		if err != nil || s.Status().Terminal() {
			return s, err
		}
	}
	return foldInput(ctx, c, &pointsOf(c).execution, s, ExecutionStart, func(v inputView) ExecutionContext { return ExecutionContext{v} })
}

// foldInput asks the controls at an input point until all of them have judged the same input, or one denies or stops.
func foldInput[C Context](ctx context.Context, c *Compiled, m *pointHooks[C], s agent.State, at PointName, view func(inputView) C) (agent.State, error) {
	if m.empty() {
		return s, nil
	}
	d := deliberation[judgedInput]{now: judgedInput{messages: inputOf(s)}}
	context := func(s agent.State, frozen *Outcome) C {
		p := &runPayload{base: base{state: s, point: at, frozen: frozen, step: s.RunStepCount()}, input: d.now.messages}
		return view(inputView{p.common(), p})
	}
	after := func(without int) agent.State {
		s := s
		for i, j := range d.latest { // separately, so that two hooks' additions are two messages
			if i != without {
				s = s.Apply(j.outcome.Effects())
			}
		}
		if d.now.rewritten {
			s = withInput(s, d.now.messages...)
		}
		return s
	}
	if err := deliberate(ctx, &d, at, m.controls, func(i int) C { return context(after(i), nil) }); err != nil {
		return after(-1), err
	}
	d.tellConflicts(ctx, s, at)
	s = after(-1)
	switch {
	case d.final == nil:
	case d.final.decision == StopRun:
		s = s.WithStop(*signalOf(d.final))
	default:
		s = denyInput(s, d.final) // the observers still receive the denied input
	}
	return s, m.announce(ctx, c.pool, context(s, d.observedOutcome()))
}

// judgedInput is the run input that the controls judge.
type judgedInput struct {
	messages  []agent.Message
	rewritten bool
}

// same compares the messages with all their fields.
func (j judgedInput) same(other judgedInput) bool {
	return slices.EqualFunc(j.messages, other.messages, agent.Message.Equal)
}

func (judgedInput) applyRewrite(o *Outcome, _ bool) (now, judged judgedInput) {
	now = judgedInput{o.input, true}
	return now, now
}

// denyInput returns the run's state after its input was denied. The input is removed.
func denyInput(s agent.State, o *Outcome) agent.State {
	signal := *signalOf(o)
	signal.Reason = agent.StopDenied
	return agent.Checkpoint(withInput(s).WithStop(signal)).WithStatus(agent.StatusDenied)
}

// inputOf returns the user messages that no run has accepted.
func inputOf(s agent.State) []agent.Message {
	var out []agent.Message
	for _, m := range s.Input() {
		out = append(out, m)
	}
	return out
}

// withInput replaces the first user message that no run has accepted with other
// messages, and drops the other ones.
func withInput(s agent.State, instead ...agent.Message) agent.State {
	var pending []agent.Message
	placed := false
	for _, m := range agent.Checkpoint(s).Pending() {
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
	return agent.Checkpoint(s).WithInput(pending...)
}
