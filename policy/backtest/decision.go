package backtest

import (
	"github.com/grapnel-go/grapnel/hooks"
)

// Effect is the effect of a hook on a call or on another event of a run.
type Effect string

// The effects.
const (
	// Denied: the call, or the input of a run, was denied; also by a hook that could not decide, see Decision.Failed.
	Denied Effect = "denied"
	// Asked: a person had to be asked, and none was available, so the call did not run.
	Asked Effect = "asked"
	// Rewritten: the call ran with other arguments; or the input, or a request, became another.
	Rewritten Effect = "rewritten"
	// Mocked: the hook answered instead of the tool.
	Mocked Effect = "mocked"
	// Stopped: the hook ended the run.
	Stopped Effect = "stopped"
	// Redacted: an answer of a tool, or a reply of the model, was replaced or withheld.
	Redacted Effect = "redacted"
	// Continued: the hook continued a run that would have ended.
	Continued Effect = "continued"
	// Failed: the hook failed to decide, without an effect.
	Failed Effect = "failed"
	// NotReached: the call did not run because the run had been stopped before. It is not a decision about the call.
	NotReached Effect = "not_reached"
	// NotRun: the agent refuses the call regardless of hooks, because it breaks its tool's schema, cannot be read, or
	// names an unknown tool. It is not a decision of a hook and is not counted.
	NotRun Effect = "not_run"
)

// effects returns every effect, the weightiest first.
func effects() []Effect {
	return []Effect{Denied, Asked, Stopped, NotReached, Mocked, Rewritten, Redacted, Continued, Failed, NotRun}
}

// Decision is what a hook did, or, in shadow, would have done.
type Decision struct {
	// Message is the index of the message in the recording that the decision is about: that of the model's turn, for a
	// call. Call is the place of the call in it, from zero; -1 where it is not about a call.
	Message int `json:"message"`
	Call    int `json:"call"`
	// ID is the recorded id of the call, Tool its tool, Arguments what the model wrote.
	ID        string `json:"id,omitempty"`
	Tool      string `json:"tool,omitempty"`
	Arguments string `json:"arguments,omitempty"`

	Point  hooks.PointName `json:"point,omitempty"`
	Effect Effect          `json:"effect"`
	// Rule is the name of the hook, Reason the sentence that it gave, Facts what it rests on. File and Line are where
	// the rule stands, if it stands in a file.
	Rule   string       `json:"rule,omitempty"`
	Reason string       `json:"reason,omitempty"`
	Facts  []hooks.Fact `json:"facts,omitempty"`
	File   string       `json:"file,omitempty"`
	Line   int          `json:"line,omitempty"`
	// Became is what a rewrite made of the arguments.
	Became string `json:"became,omitempty"`

	// Worked is whether the call had succeeded in the recording, and Label what the recorder says of it.
	Worked bool   `json:"worked,omitempty"`
	Label  string `json:"label,omitempty"`
	// Failed says that the hook did not say no but could not decide.
	Failed bool `json:"failed,omitempty"`
	// Shadow says that the hook was asked and not obeyed.
	Shadow bool `json:"shadow,omitempty"`
	// After says that a call of the run was denied before: the model would have known.
	After bool `json:"after,omitempty"`
}

// prevents reports whether the call did not run because of a hook that was in the way.
func (d Decision) prevents() bool {
	return !d.Shadow && (d.Effect == Denied || d.Effect == Asked || d.Effect == Stopped || d.Effect == NotReached)
}

// effectOf returns the effect of a hook's decision that is not about whether a call runs.
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
