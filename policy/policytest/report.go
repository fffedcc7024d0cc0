package policytest

import (
	"encoding/json"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/fire"
	"github.com/grapnel-go/grapnel/policy"
	"github.com/grapnel-go/grapnel/policy/internal/provenance"
)

// Report is the result of firing an event: the decision, the rule that made it, and the reasons. Facts, reasons and
// decisions are the same as in a run's spans and events.
type Report struct {
	Point hooks.PointName `json:"point"`
	// Decision is the final decision; pass if no rule had an opinion.
	Decision hooks.Decision `json:"decision"`
	// Reason explains the decision. Rule is the rule that made it: policy/ID.
	Reason string `json:"reason,omitempty"`
	Rule   string `json:"rule,omitempty"`
	// Failed is set if the deciding rule failed, as opposed to denied. Error is the first failed rule's error, and
	// OnFailure the effect of its failure policy.
	Failed    bool   `json:"failed,omitempty"`
	Error     string `json:"error,omitempty"`
	OnFailure string `json:"on_failure,omitempty"`
	// Facts holds the values on which the decision is based.
	Facts []hooks.Fact `json:"facts,omitempty"`

	Tool      string          `json:"tool,omitempty"`
	CallID    string          `json:"call_id,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitzero"`
	// Original holds the arguments before a rule rewrote them.
	Original json.RawMessage `json:"original_arguments,omitzero"`
	// Ran reports whether the tool would run. Told is the answer that the model receives for the call. Both are set
	// only at the points of a tool call.
	Ran  *bool  `json:"ran,omitempty"`
	Told string `json:"told,omitempty"`
	// Leaves is the text after the point's rules changed it: the input, the reply, or the answer of a sub-agent or
	// run.
	Leaves string `json:"leaves,omitempty"`
	// Context lists additional text for the model. Metadata holds the values set in the state.
	Context  []string       `json:"context,omitempty"`
	Metadata map[string]any `json:"metadata,omitempty"`
	// Stopped is set if a rule ended the run, with the reason.
	Stopped *agent.Signal `json:"stopped,omitempty"`

	// Rules lists the point's rules, in the order in which they are asked.
	Rules []Said `json:"rules"`
	// Hash is the policy's hash.
	Hash string `json:"hash"`

	fired fire.Fired
}

// Rule results other than decisions.
const (
	// SaidSkip is the result of a rule with a matcher that did not match.
	SaidSkip = "skip"
	// SaidFailed is the result of a rule that failed to decide.
	SaidFailed = "failed"
	// SaidNotAsked is the result of a rule that was not asked because an earlier rule had already decided.
	SaidNotAsked = "not_asked"
)

// Said is one rule's result.
type Said struct {
	// Rule is policy/ID.
	Rule   string `json:"rule"`
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	// Said is a decision, pass, skip, failed or not_asked. For a rule in shadow, it is the decision that the rule
	// would have made.
	Said   string `json:"said"`
	Shadow bool   `json:"shadow,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Unmatched describes the matchers that did not match.
	Unmatched []string `json:"unmatched,omitempty"`
	// When is the rule's condition, Holds its result, and Facts the values in it.
	When  string       `json:"when,omitempty"`
	Holds *bool        `json:"holds,omitempty"`
	Facts []hooks.Fact `json:"facts,omitempty"`
	// Origins holds the origins of arguments, if the condition asks for them.
	Origins map[string]provenance.Origin `json:"origins,omitempty"`
	// Error is a failed rule's error, and OnFailure the effect of its failure policy.
	Error     string `json:"error,omitempty"`
	OnFailure string `json:"on_failure,omitempty"`
	// Attempts is how often the rule was asked, if more than once.
	Attempts int `json:"attempts,omitempty"`
	// Before and After are the arguments before and after a rewrite.
	Before json.RawMessage `json:"before,omitzero"`
	After  json.RawMessage `json:"after,omitzero"`
	// Action describes the rule's action, if any.
	Action string `json:"action,omitempty"`
	// Needs says who must answer the rule's question, unless anyone may.
	Needs string `json:"needs,omitempty"`
}

// report returns a fired event's report.
func (t *Trial) report(e *Event, f fire.Fired, matched map[string]*matched) *Report {
	r := &Report{
		Point: f.Point, Decision: f.Decision, Reason: f.Reason, Rule: strings.TrimSuffix(f.Hook, waived), OnFailure: f.Policy,
		Failed: f.Outcome.HookFailed(), Facts: f.Outcome.Facts(), Context: f.AddedTexts(), Hash: t.policy.Hash(), fired: f, Rules: []Said{},
	}
	if f.Err != nil {
		r.Error = f.Err.Error()
	}
	if f.Err != nil && f.Policy == "abort" {
		r.Failed = true
	}
	r.call(e)
	r.Metadata = metadataOf(f.Effects)
	if s, ok := f.State.StopSignal(), f.State.Stopped(); ok && f.Decision == hooks.StopRun {
		r.Stopped = &s
	}
	for _, rule := range t.policy.Rules() {
		if rule.Point == f.Point {
			s := t.ruleAnswer(rule, f, matched)
			if r.Rules = append(r.Rules, s); r.Failed && s.Rule == r.Rule && s.Error != "" {
				r.Error, r.OnFailure = s.Error, s.OnFailure
			}
		}
	}
	return r
}

// call sets the call's result, or the text.
func (r *Report) call(e *Event) {
	f := r.fired
	if e.Tool == "" {
		r.Leaves = f.Text()
		switch {
		case f.Point == hooks.PreSubagent:
			r.Leaves = lo.CoalesceOrEmpty(f.Outcome.Arguments(), e.Subagent.Instruction)
		case f.Point == hooks.PostSubagent:
			r.Leaves = lo.CoalesceOrEmpty(f.Outcome.Content().Text(), e.Subagent.Result)
		case f.Point == hooks.RunStart && f.Decision == hooks.Rewrite:
			r.Arguments, r.Original = f.BlueprintRun.Parameters, json.RawMessage(e.Parameters)
		case f.BlueprintRun.ResultText != "":
			r.Leaves = f.BlueprintRun.ResultText
		}
		return
	}
	r.Tool, r.CallID = e.Tool, lo.CoalesceOrEmpty(e.CallID, f.Call.ID)
	given := lo.Ternary(e.Original != "", e.Original, e.Arguments).jsonText()
	r.Arguments = asJSON(lo.CoalesceOrEmpty(f.Call.Arguments, given))
	if f.Call.Arguments != "" && f.Call.Arguments != given {
		r.Original = asJSON(given)
	}
	if f.Point == hooks.PreToolUse {
		r.Ran = new(f.Ran())
	}
	if f.Result != nil && (f.Point != hooks.PreToolUse || !f.Ran()) && f.Decision != hooks.Ask {
		r.Told = f.Result.Text()
	}
}

// metadataOf returns the metadata that effects set.
func metadataOf(effects agent.Effects) map[string]any {
	out := map[string]any{}
	for _, e := range effects.All() {
		if name, _, value, ok := e.Metadata(); ok {
			out[name] = value
		}
	}
	return lo.Ternary(len(out) > 0, out, nil)
}

// asJSON returns valid JSON unchanged, and any other text as a JSON string.
func asJSON(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	quoted, _ := json.Marshal(text) //nolint:errchkjson // a string
	return quoted
}

// ruleAnswer returns one rule's result.
func (t *Trial) ruleAnswer(rule policy.Rule, f fire.Fired, matched map[string]*matched) Said {
	s := Said{
		Rule: rule.Hook(), File: rule.File, Line: rule.Line, Column: rule.Column, When: rule.When, Action: rule.Action,
		Needs: rule.Needs(), Said: SaidNotAsked, Shadow: rule.Mode == "shadow" || rule.Mode == "waived",
	}
	name := rule.Hook() + lo.Ternary(rule.Mode == "waived", waived, "")
	if m := matched[name]; m != nil && m.turn {
		s.Said, s.Unmatched = SaidSkip, m.no()
		if len(s.Unmatched) == 0 {
			s.Said = string(hooks.Pass)
		}
	}
	for _, j := range t.seenConditions() {
		if j.hook == rule.Hook() {
			s.Facts, s.Origins = j.Facts, j.Origins
			if s.Holds = new(j.Value); j.Err != nil {
				s.Holds = nil
			}
		}
	}
	for _, e := range f.Events {
		if e.Hook == name {
			s.add(e)
		}
	}
	if s.Said == SaidSkip || s.Said == SaidNotAsked {
		s.Holds, s.Facts, s.Origins = nil, nil, nil
	}
	return s
}

// add adds an event's content.
func (s *Said) add(e hooks.Event) {
	s.Shadow = s.Shadow || e.Shadow
	if e.Attempt > 1 {
		s.Attempts = e.Attempt
	}
	switch e.Kind {
	case hooks.HookComplete, hooks.HookBlocked:
		s.Said, s.Reason = string(e.Decision), e.Reason
		if e.Decision == hooks.Rewrite && e.After != "" {
			s.Before, s.After = asJSON(e.Before), asJSON(e.After)
		}
		if s.Error, s.OnFailure = "", ""; len(e.Outcome.Facts()) > 0 {
			s.Facts = e.Outcome.Facts()
		}
	case hooks.HookFailed, hooks.HookTimeout:
		s.Said, s.Error, s.OnFailure = SaidFailed, e.Err.Error(), e.Policy
	case hooks.HookSkipped:
		s.Reason = e.Reason
	case hooks.HookStart, hooks.HookConflict:
	}
}
