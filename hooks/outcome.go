package hooks

import (
	"encoding/json"
	"slices"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// Result is a hook's answer. Something that went wrong is an Err and goes to the
// hook's failure policy; a decision is an Outcome. The zero Result, and a nil
// Outcome, mean pass: the hook has no opinion.
type Result = mo.Result[*Outcome]

// Decision is what a hook decided.
type Decision string

// The decisions. Which of them are possible at a point is said by the methods of
// its context.
const (
	// Pass gives no opinion.
	Pass Decision = "pass"
	// Allow lets it happen. It skips no other hook and no approval.
	Allow Decision = "allow"
	// Rewrite puts another input, request or other arguments in place.
	Rewrite Decision = "rewrite"
	// Replace puts another reply or result in place.
	Replace Decision = "replace"
	// Withhold keeps a reply or result from the model.
	Withhold Decision = "withhold"
	// Filter takes something out of every text that leaves the point. Observers are told
	// Replace where it did, and that the hook passed where it did not.
	Filter Decision = "filter"
	// Mock answers in the tool's place.
	Mock Decision = "mock"
	// Ask asks for approval.
	Ask Decision = "ask"
	// Approve says yes in a person's place, RejectAndEnd says no and ends the run.
	Approve      Decision = "approve"
	RejectAndEnd Decision = "reject"
	// Deny forbids this call, or this input.
	Deny Decision = "deny"
	// StopRun ends the run.
	StopRun Decision = "stop"
	// Continue makes a run go on that would end by itself.
	Continue Decision = "continue"
)

// Outcome is what a hook decided and what it wants changed. It is made by the
// methods of the context that the hook was given, is immutable, and may be kept.
type Outcome struct {
	decision Decision
	point    PointName
	reason   string
	effects  agent.Effects

	arguments string            // Rewrite at PreToolUse
	input     []agent.Message   // Rewrite at InputSubmitted and ExecutionStart
	request   *agent.Request    // Rewrite at PreInference
	view      []agent.Message   // Rewrite at PreInference: what the model is shown
	reply     *agent.Step       // Replace at PostInference
	content   *agent.Content    // Replace at PostToolUse and ToolFailed
	mock      *agent.ToolResult // Mock
	invalid   error             // what is wrong with the outcome itself
	question  *agent.Question   // Ask; completed by the runner
	facts     []Fact            // why
	filter    func(text string) (string, error)
	failed    bool            // stands for a hook that could not decide
	hook      string          // who decided; set by the runner
	prepared  *agent.Prepared // Rewrite at PreToolUse: what the executor made of it; set by the runner
	_         [0]func()       // not comparable
}

// Decision returns what was decided. A nil Outcome passes.
func (o *Outcome) Decision() Decision {
	if o == nil {
		return Pass
	}
	return o.decision
}

// plain reports whether the outcome allows and wants nothing else.
func (o *Outcome) plain() bool { return o.decision == Allow && o.effects.Len() == 0 }

// Reason returns the sentence that was given; it may be empty.
func (o *Outcome) Reason() string {
	if o == nil {
		return ""
	}
	return o.reason
}

// Effects returns what is to be changed in the state besides.
func (o *Outcome) Effects() agent.Effects {
	if o == nil {
		return agent.Effects{}
	}
	return o.effects
}

// Hook names the hook that decided. It is known once the hook has run.
func (o *Outcome) Hook() string {
	if o == nil {
		return ""
	}
	return o.hook
}

// HookFailed reports whether the outcome stands for a hook that could not decide,
// and not for a decision: "could not decide" is not "said no".
func (o *Outcome) HookFailed() bool { return o != nil && o.failed }

// Arguments returns the new arguments of a rewrite at PreToolUse.
func (o *Outcome) Arguments() string {
	if o == nil {
		return ""
	}
	return o.arguments
}

// MockResult returns the answer of a mock; nil on other outcomes. It must not be
// written.
func (o *Outcome) MockResult() *agent.ToolResult {
	if o == nil {
		return nil
	}
	return o.mock
}

// Content returns the new content of a replaced result, or the zero Content.
func (o *Outcome) Content() agent.Content {
	if o == nil || o.content == nil {
		return agent.Content{}
	}
	return *o.content
}

// Reply returns the new reply at PostInference, or the zero Step.
func (o *Outcome) Reply() agent.Step {
	if o == nil || o.reply == nil {
		return agent.Step{}
	}
	return *o.reply
}

// Request returns the new request at PreInference, if there is one.
func (o *Outcome) Request() mo.Option[agent.Request] {
	if o == nil || o.request == nil {
		return mo.None[agent.Request]()
	}
	return mo.Some(*o.request)
}

// Input returns the new input at InputSubmitted and ExecutionStart.
func (o *Outcome) Input() []agent.Message {
	if o == nil {
		return nil
	}
	return append([]agent.Message(nil), o.input...)
}

// Facts returns what the decision rests on, as far as the hook said: see Because. It must
// not be written.
func (o *Outcome) Facts() []Fact {
	if o == nil {
		return nil
	}
	return o.facts
}

// Fact is one thing that a decision rests on: an expression or a name, and what it was
// worth.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Because returns an answer with what it rests on, for events and for people who ask why. It
// may hold contents of the call: telemetry records it where contents are recorded. An
// answer that passes, or is a failure, stays as it is, and so does one at a point after
// something happened: its facts could be what another hook takes out of a result.
func Because(r Result, facts ...Fact) Result {
	o, err := r.Get()
	if err != nil || o == nil || len(facts) == 0 {
		return r
	}
	if info, ok := infoOf(o.point); !ok || info.after {
		return r
	}
	known := *o
	known.facts = append(slices.Clip(o.facts), facts...)
	return mo.Ok(&known)
}

// MarshalJSON writes the decision, its reason and its hook, and whether there is
// more: {"type":"deny","reason":"…","hook":"…","has_effects":false}.
func (o *Outcome) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Type    Decision `json:"type"`
		Reason  string   `json:"reason,omitempty"`
		Hook    string   `json:"hook,omitempty"`
		Failed  bool     `json:"hook_failed,omitempty"`
		Effects bool     `json:"has_effects"`
	}{o.Decision(), o.Reason(), o.Hook(), o.HookFailed(), o.Effects().Len() > 0})
}
