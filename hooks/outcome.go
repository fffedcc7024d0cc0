package hooks

import (
	"encoding/json"
	"slices"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// A Result is a hook's answer: a decision, as an Outcome, or an error, to which the
// hook's failure policy applies. The zero Result and a nil Outcome mean Pass: the hook
// has no opinion.
type Result = mo.Result[*Outcome]

// Decision is a hook's decision.
type Decision string

// The decisions. A context's methods determine which of them are possible at its point.
const (
	// Pass: the hook has no opinion.
	Pass Decision = "pass"
	// Allow allows the action. Other hooks and approvals still apply.
	Allow Decision = "allow"
	// Rewrite replaces the input, the request or the arguments.
	Rewrite Decision = "rewrite"
	// Replace replaces the reply or the result.
	Replace Decision = "replace"
	// Withhold withholds a reply or result from the model.
	Withhold Decision = "withhold"
	// Filter filters every text that leaves the point. Observers receive Replace if the
	// filter changed a text, and otherwise Pass.
	Filter Decision = "filter"
	// Mock answers instead of the tool.
	Mock Decision = "mock"
	// Ask asks for approval.
	Ask Decision = "ask"
	// Approve approves a call for a person, RejectAndEnd rejects it and ends the run.
	Approve      Decision = "approve"
	RejectAndEnd Decision = "reject"
	// Deny denies this call, or this input.
	Deny Decision = "deny"
	// StopRun ends the run.
	StopRun Decision = "stop"
	// Continue makes a run continue that would end by itself.
	Continue Decision = "continue"
)

// An Outcome is a hook's decision and its effects. The methods of the hook's context create it. It is immutable, and
// can be kept after the call.
type Outcome struct {
	decision Decision
	point    PointName
	reason   string
	effects  agent.Effects

	arguments string            // Rewrite at PreToolUse
	input     []agent.Message   // Rewrite at InputSubmitted and ExecutionStart
	request   *agent.Request    // Rewrite at PreInference
	view      []agent.Message   // Rewrite at PreInference: the messages for the model
	reply     *agent.Step       // Replace at PostInference
	content   *agent.Content    // Replace at PostToolUse and ToolFailed
	mock      *agent.ToolResult // Mock
	invalid   error             // an error in the outcome itself
	question  *agent.Question   // Ask; completed by the runner
	facts     []Fact            // from Because
	filter    func(text string) (string, error)
	failed    bool            // the hook could not decide
	hook      string          // the hook that decided; set by the runner
	prepared  *agent.Prepared // Rewrite at PreToolUse: the call prepared by the executor; set by the runner
	_         [0]func()       // not comparable
}

// Decision returns the decision. A nil Outcome passes.
func (o *Outcome) Decision() Decision {
	if o == nil {
		return Pass
	}
	return o.decision
}

// plain reports whether the outcome is Allow without effects.
func (o *Outcome) plain() bool { return o.decision == Allow && o.effects.Len() == 0 }

// Reason returns the hook's reason. It may be empty.
func (o *Outcome) Reason() string {
	if o == nil {
		return ""
	}
	return o.reason
}

// Effects returns the state changes that the hook requests.
func (o *Outcome) Effects() agent.Effects {
	if o == nil {
		return agent.Effects{}
	}
	return o.effects
}

// Hook returns the name of the hook that decided. It is known once the hook has run.
func (o *Outcome) Hook() string {
	if o == nil {
		return ""
	}
	return o.hook
}

// HookFailed reports whether the hook failed. The outcome then means that the hook could not decide.
func (o *Outcome) HookFailed() bool { return o != nil && o.failed }

// Arguments returns the new arguments of a rewrite at PreToolUse.
func (o *Outcome) Arguments() string {
	if o == nil {
		return ""
	}
	return o.arguments
}

// MockResult returns a mock's answer. It returns nil for other outcomes. The answer must not be modified.
func (o *Outcome) MockResult() *agent.ToolResult {
	if o == nil {
		return nil
	}
	return o.mock
}

// Content returns a replaced result's new content, or the zero Content.
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
func (o *Outcome) Request() (agent.Request, bool) {
	if o == nil || o.request == nil {
		return agent.Request{}, false
	}
	return *o.request, true
}

// Input returns the new input at InputSubmitted and ExecutionStart.
func (o *Outcome) Input() []agent.Message {
	if o == nil {
		return nil
	}
	return append([]agent.Message(nil), o.input...)
}

// Facts returns the facts behind the decision, if the hook gave any: see Because. The slice must not be modified.
func (o *Outcome) Facts() []Fact {
	if o == nil {
		return nil
	}
	return o.facts
}

// Fact is one fact behind a decision: an expression or a name, and its value.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Because returns an answer with the facts behind it, for events and for the people who read them. Facts can hold call
// contents. Telemetry records them only where it records contents. An answer that passes or fails is returned
// unchanged. So is an answer at a point after something has happened, because its facts could contain text that another
// hook filters out of a result.
func Because(r Result, facts ...Fact) Result {
	if len(facts) == 0 {
		return r
	}
	return addExplanation(r, func(o *Outcome) { o.facts = append(slices.Clip(o.facts), facts...) })
}

// WithReason returns an answer with a reason for events and for the people who read them: why a call was rewritten or
// mocked. An answer that has a reason keeps it. It returns unchanged what Because returns unchanged.
func WithReason(r Result, reason string) Result {
	if o, err := r.Get(); err != nil || reason == "" || o.Reason() != "" {
		return r
	}
	return addExplanation(r, func(o *Outcome) { o.reason = reason })
}

func addExplanation(r Result, add func(o *Outcome)) Result {
	o, err := r.Get()
	if err != nil || o == nil {
		return r
	}
	if info, ok := infoOf(o.point); !ok || info.after {
		return r
	}
	known := *o
	add(&known)
	return mo.Ok(&known)
}

// MarshalJSON writes the decision, its reason, its hook, and whether it has effects:
// {"type":"deny","reason":"…","hook":"…","has_effects":false}.
func (o *Outcome) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Type    Decision `json:"type"`
		Reason  string   `json:"reason,omitempty"`
		Hook    string   `json:"hook,omitempty"`
		Failed  bool     `json:"hook_failed,omitempty"`
		Effects bool     `json:"has_effects"`
	}{o.Decision(), o.Reason(), o.Hook(), o.HookFailed(), o.Effects().Len() > 0})
}
