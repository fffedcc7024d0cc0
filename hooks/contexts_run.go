package hooks

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// runPayload is the payload at the points around a run.
type runPayload struct {
	base
	input []agent.Message
	err   error
	took  time.Duration
}

// inputView is the common part of the contexts at the input points.
type inputView struct {
	contextView
	p *runPayload
}

// Messages returns the user messages that the run is about to accept, with earlier
// rewrites.
func (c inputView) Messages() []agent.Message { return slices.Clone(c.p.input) }

// Text returns the input text. Newlines separate the text of several messages.
func (c inputView) Text() string { return textOf(c.p.input) }

// Allow accepts the input, and can add effects.
func (c inputView) Allow(effects ...agent.Effect) Result { return c.allowWith(effects) }

// Deny refuses the input. The run ends as denied, the model is not asked, and the input is dropped. The effects are
// kept.
func (c inputView) Deny(reason string, effects ...agent.Effect) Result {
	return c.newAnswer(Outcome{decision: Deny, reason: reason}, effects)
}

// Rewrite replaces all of the input with other user messages, for the model and in the transcript. The old input is
// dropped. At least one message is required. To refuse the input, use Deny.
func (c inputView) Rewrite(messages []agent.Message, effects ...agent.Effect) Result {
	input, err := asInput(messages)
	return c.newAnswer(Outcome{decision: Rewrite, input: input, invalid: err}, effects)
}

// asInput returns the messages as input, without a source, so that a later hook can see and deny the replacement.
func asInput(messages []agent.Message) ([]agent.Message, error) {
	if len(messages) == 0 {
		return nil, errors.New("the input was rewritten to no messages: use Deny to refuse it")
	}
	input := slices.Clone(messages)
	for i, m := range input {
		if m.Role() != agent.RoleUser {
			return nil, fmt.Errorf("the input was rewritten into a message of role %q: it must be %q; agent.AddMessage adds others",
				m.Role(), agent.RoleUser)
		}
		if m.Source() != "" {
			input[i] = m.WithSource("")
		}
	}
	return input, nil
}

// RewriteText replaces the input with one message with the given text.
func (c inputView) RewriteText(text string, effects ...agent.Effect) Result {
	return c.Rewrite([]agent.Message{agent.UserText(text)}, effects...)
}

// InputContext is the context of AtInputSubmitted.
type InputContext struct{ inputView }

// ExecutionContext is the context of AtExecutionStart.
type ExecutionContext struct{ inputView }

// Stop ends the run before its first step.
func (c ExecutionContext) Stop(reason string, effects ...agent.Effect) Result {
	return c.newAnswer(Outcome{decision: StopRun, reason: reason}, effects)
}

// FailureContext is the context of AtAgentFailed.
type FailureContext struct {
	contextView
	p *runPayload
}

// Err returns the run's error, an *agent.RunError.
func (c FailureContext) Err() error { return c.p.err }

// Allow adds to the failed run's final state. It cannot change anything else.
func (c FailureContext) Allow(effects ...agent.Effect) Result { return c.allowWith(effects) }

// EndContext is the context of AtExecutionEnd.
type EndContext struct {
	contextView
	p *runPayload
}

// Status returns the run's final status.
func (c EndContext) Status() agent.Status { return c.state.Status() }

// Reason returns the signal that ended the run.
func (c EndContext) Reason() agent.Signal { return c.state.StopSignal() }

// Err returns the error that Run returns, an *agent.RunError, or nil.
func (c EndContext) Err() error { return c.p.err }

// Answer returns the model's last message as text.
func (c EndContext) Answer() string { return c.state.Answer() }

// Duration returns the run's duration.
func (c EndContext) Duration() time.Duration { return c.p.took }

// StopContext is the context of AtStop.
type StopContext struct {
	contextView
	p *stopPayload
}

type stopPayload struct {
	base
	signal              agent.Signal
	continuations, left int
}

// Signal returns the signal with which the run would end.
func (c StopContext) Signal() agent.Signal { return c.p.signal }

// Answer returns the text with which the run would end.
func (c StopContext) Answer() string { return c.state.Answer() }

// Continuations returns how often a Stop hook has already made this run continue.
func (c StopContext) Continuations() int { return c.p.continuations }

// ContinuationsLeft returns how often Stop hooks can still make this run continue. If
// it is zero, Continue is ignored and the run ends as done. In that case, a hook that
// must not let the run end as done should answer with Stop.
func (c StopContext) ContinuationsLeft() int { return c.p.left }

// Continue makes the run continue, unless ContinuationsLeft is zero. The model receives
// the reason, so it should say what the model must still do.
func (c StopContext) Continue(reason string) Result {
	return c.newAnswer(Outcome{decision: Continue, reason: reason}, nil)
}

// Stop ends the run, and no other hook can make it continue.
func (c StopContext) Stop(reason string) Result {
	return c.newAnswer(Outcome{decision: StopRun, reason: reason}, nil)
}

// Allow lets the run end.
func (c StopContext) Allow() Result { return c.allowWith(nil) }

func textOf(messages []agent.Message) string {
	if len(messages) == 1 {
		return messages[0].Text()
	}
	return lo.Reduce(messages, func(text string, m agent.Message, i int) string {
		return text + lo.Ternary(i > 0, "\n", "") + m.Text()
	}, "")
}
