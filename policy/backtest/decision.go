package backtest

import (
	"github.com/grapnel-go/grapnel/hooks"
)

// Effect is a hook's effect on a call or another event.
type Effect string

// The effects.
const (
	// Denied: the hook denied the call or the run's input. This includes a hook that could not decide: see
	// Decision.Failed.
	Denied Effect = "denied"
	// Asked: the hook required approval. No person was available to give it, so the call did not run.
	Asked Effect = "asked"
	// Rewritten: the hook changed the call's arguments, the input, or a request.
	Rewritten Effect = "rewritten"
	// Mocked: the hook supplied the result instead of the tool.
	Mocked Effect = "mocked"
	// Stopped: the hook ended the run.
	Stopped Effect = "stopped"
	// Redacted: the hook replaced or withheld a tool result or a model reply.
	Redacted Effect = "redacted"
	// Continued: the hook continued a run that would have ended.
	Continued Effect = "continued"
	// Failed: the hook failed to decide, without an effect on the run.
	Failed Effect = "failed"
	// NotReached: the call did not run because the run had already been stopped. It is not a decision about the call.
	NotReached Effect = "not_reached"
	// NotRun: the agent refuses the call regardless of hooks, because it violates its tool's schema, is malformed, or
	// names an unknown tool. It is not a hook's decision and is not counted.
	NotRun Effect = "not_run"
)

// effects returns every effect, the most severe first.
func effects() []Effect {
	return []Effect{Denied, Asked, Stopped, NotReached, Mocked, Rewritten, Redacted, Continued, Failed, NotRun}
}

// Decision is the effect that a hook had or, in shadow, would have had.
type Decision struct {
	// Message is the index in the recording of the message that the decision is about. For a call this is the model's
	// message with the call, and Call is the call's index in it. Call is -1 if the decision is not about a call.
	Message int `json:"message"`
	Call    int `json:"call"`
	// ID is the call's recorded ID, Tool its tool's name, and Arguments are the arguments that the model wrote.
	ID        string `json:"id,omitempty"`
	Tool      string `json:"tool,omitempty"`
	Arguments string `json:"arguments,omitempty"`

	Point  hooks.PointName `json:"point,omitempty"`
	Effect Effect          `json:"effect"`
	// Rule is the hook's name, Reason its explanation, and Facts are the values on which the decision is based. File
	// and Line are the rule's position if it comes from a file.
	Rule   string       `json:"rule,omitempty"`
	Reason string       `json:"reason,omitempty"`
	Facts  []hooks.Fact `json:"facts,omitempty"`
	File   string       `json:"file,omitempty"`
	Line   int          `json:"line,omitempty"`
	// Became holds the arguments after a rewrite.
	Became string `json:"became,omitempty"`

	// Worked reports whether the call succeeded in the recording. Label is the call's label in the recording.
	Worked bool   `json:"worked,omitempty"`
	Label  string `json:"label,omitempty"`
	// Failed reports whether the hook could not decide, so that its OnError policy decided.
	Failed bool `json:"failed,omitempty"`
	// Shadow reports whether the hook ran in shadow: it was asked, but its decision had no effect.
	Shadow bool `json:"shadow,omitempty"`
	// After reports whether an earlier call in the run was denied. A real model would have known about that denial.
	After bool `json:"after,omitempty"`
}

// prevents reports whether a hook kept the call from running.
func (d Decision) prevents() bool {
	return !d.Shadow && (d.Effect == Denied || d.Effect == Asked || d.Effect == Stopped || d.Effect == NotReached)
}

// effectOf returns the effect of a decision that is not about running a call.
func effectOf(e hooks.Event) Effect {
	switch e.Decision {
	case hooks.Deny, hooks.RejectAndEnd:
		return Denied
	case hooks.Ask:
		return Asked
	case hooks.Rewrite:
		return Rewritten
	case hooks.Mock:
		return Mocked
	case hooks.StopRun:
		return Stopped
	case hooks.Replace, hooks.Withhold:
		return Redacted
	case hooks.Continue:
		return Continued
	}
	return Failed
}
