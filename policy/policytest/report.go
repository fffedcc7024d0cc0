package policytest

import (
	"encoding/json"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/moment"
	"github.com/grapnel-go/grapnel/policy"
	"github.com/grapnel-go/grapnel/policy/provenance"
)

// Report is what the rules said about an event, who decided, and why. Facts, reasons and
// decisions are what the spans and events of a run carry.
type Report struct {
	Point hooks.PointName `json:"point"`
	// Decision is what counts of all that was said: pass when no rule had an opinion.
	Decision hooks.Decision `json:"decision"`
	// Reason is the sentence given with it, Rule who decided: policy/id.
	Reason string `json:"reason,omitempty"`
	Rule   string `json:"rule,omitempty"`
	// Failed is set where the rule that decided could not: "could not decide" is not "said
	// no". Error is what the first failing rule failed with, OnFailure what was done about
	// it.
	Failed    bool   `json:"failed,omitempty"`
	Error     string `json:"error,omitempty"`
	OnFailure string `json:"on_failure,omitempty"`
	// Facts are what the decision rests on.
	Facts []hooks.Fact `json:"facts,omitempty"`

	Tool      string          `json:"tool,omitempty"`
	CallID    string          `json:"call_id,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Original are the arguments as they were, where a rule has rewritten them.
	Original json.RawMessage `json:"original_arguments,omitempty"`
	// Ran says whether the tool's body would run; Told is what the model is told of the
	// call. At the points of a tool call only.
	Ran  *bool  `json:"ran,omitempty"`
	Told string `json:"told,omitempty"`
	// Leaves is the text that the point leaves, where it has one: the input, the reply, the
	// answer of a sub-agent or of a run.
	Leaves string `json:"leaves,omitempty"`
	// Context is what is told to the model besides, Metadata what is set in the state.
	Context  []string       `json:"context,omitempty"`
	Metadata map[string]any `json:"metadata,omitempty"`
	// Stopped says why the run ends, where a rule ends it.
	Stopped *agent.Signal `json:"stopped,omitempty"`

	// Rules are those at the point, in the order in which they are asked.
	Rules []Said `json:"rules"`
	// Hash is of the policy.
	Hash string `json:"hash"`

	fired moment.Fired
}

// What a rule may say besides a decision.
const (
	// SaidSkip: a matcher said no.
	SaidSkip = "skip"
	// SaidFailed: the rule could not decide.
	SaidFailed = "failed"
	// SaidNotAsked: one before it had decided.
	SaidNotAsked = "not_asked"
)

// Said is what one rule said.
type Said struct {
	// Rule is policy/id.
	Rule   string `json:"rule"`
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	// Said is a decision, pass, skip, failed or not_asked; of a rule in shadow it is what
	// would have counted.
	Said   string `json:"said"`
	Shadow bool   `json:"shadow,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Unmatched are the matchers that said no, in words.
	Unmatched []string `json:"unmatched,omitempty"`
	// When is the rule's condition, Holds what it came to, and Facts the values in it.
	When  string       `json:"when,omitempty"`
	Holds *bool        `json:"holds,omitempty"`
	Facts []hooks.Fact `json:"facts,omitempty"`
	// Origins say who brought the arguments in, where the condition asks for that.
	Origins map[string]provenance.Origin `json:"origins,omitempty"`
	// Error is what a failed rule failed with, and OnFailure what was done about it.
	Error     string `json:"error,omitempty"`
	OnFailure string `json:"on_failure,omitempty"`
	// Attempts is how often it was asked, where that is more than once.
	Attempts int `json:"attempts,omitempty"`
	// Before and After are the arguments, for a rewrite.
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
	// Action is what it does, for a rule that does something.
	Action string `json:"action,omitempty"`
}

// report returns what came of firing an event.
func (t *Trial) report(e *Event, f moment.Fired, matched map[string]*matched) *Report {
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
	if s, ok := f.State.StopSignal().Get(); ok && f.Decision == hooks.StopRun {
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

// call writes what became of the call, or of the text.
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

// metadataOf returns what effects set.
func metadataOf(effects agent.Effects) map[string]any {
	out := map[string]any{}
	for _, e := range effects.All() {
		if name, _, value, ok := e.Metadata(); ok {
			out[name] = value
		}
	}
	return lo.Ternary(len(out) > 0, out, nil)
}

// asJSON returns a text as JSON: itself where it is, else a string.
func asJSON(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	quoted, _ := json.Marshal(text) //nolint:errchkjson // a string
	return quoted
}

// ruleAnswer returns what one rule said.
func (t *Trial) ruleAnswer(rule policy.Rule, f moment.Fired, matched map[string]*matched) Said {
	s := Said{
		Rule: rule.Hook(), File: rule.File, Line: rule.Line, Column: rule.Column, When: rule.When, Action: rule.Action,
		Said: SaidNotAsked, Shadow: rule.Mode == "shadow" || rule.Mode == "waived",
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

// add adds what an event tells.
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
