package coordinator

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/hooks"
)

// HookCall is the end of a call of a hook, of an agent or around a run. A call around a run may have no end.
type HookCall struct {
	At    time.Time `json:"time"`
	Point string    `json:"point"`
	Hook  string    `json:"hook"`
	// Target is the type and the target of the action.
	Target string `json:"target,omitempty"`
	// Outcome is complete, blocked, failed, timeout, skipped or conflict, as in the names of events. Without an end, it is running, or
	// interrupted if the run has ended.
	Outcome    string `json:"outcome"`
	Decision   string `json:"decision,omitempty"`
	DurationMS int64  `json:"duration_ms"`
	Reason     string `json:"reason,omitempty"`
	Error      string `json:"error,omitempty"`
	// Policy is the on_error of a hook that has failed, as its file has it, or what followed after the failure.
	Policy string `json:"on_error,omitempty"`
	Call   string `json:"call_id,omitempty"`
	Tool   string `json:"tool,omitempty"`
	Shadow bool   `json:"shadow,omitempty"`
	// Stage and Iteration are where in a pipeline its hook was called; empty for hooks of agents.
	Stage     string `json:"stage,omitempty"`
	Iteration int    `json:"iteration,omitempty"`
	Before    string `json:"before,omitempty"`
	After     string `json:"after,omitempty"`
	// Subagent is the run of the agent that has called the hook.
	Subagent agent.RunID `json:"subagent_run_id,omitempty"`

	// Title names the hook for people.
	Title string `json:"-"`
	// Around reports whether the hook is around the run, which has changed something if Changed is set, and has started the run Started.
	Around, Changed bool        `json:"-"`
	Started         agent.RunID `json:"-"`
	// Step is the step of the agent; Facts and Origin are why its hook has decided, and where the hook is written.
	Step   int           `json:"-"`
	Facts  []hooks.Fact  `json:"-"`
	Origin *hooks.Origin `json:"-"`
}

// The outcomes of a hook's call without an end.
const (
	HookRunning     = "running"
	HookInterrupted = "interrupted"
)

// HookCallOf returns the call of a hook that an event is about: its end, or the beginning of one around a run. Ok is false for other events.
func HookCallOf(name string, at time.Time, data []byte) (c HookCall, ok bool) {
	if outcome, isAgent := strings.CutPrefix(name, "hook."); isAgent && outcome != "start" {
		return agentHookCall(outcome, at, data)
	}
	var h wire.HookEvent
	if !isHookEvent(name) || json.Unmarshal(data, &h) != nil {
		return c, false
	}
	c = HookCall{
		At: h.Timestamp, Point: h.HookType, Hook: h.Hook, Target: strings.TrimSpace(h.TargetType + " " + h.TargetName),
		Outcome: strings.TrimPrefix(name, "hook_"), Decision: h.Action, Reason: h.BlockReason, Error: h.Error,
		Policy: cmp.Or(h.OnError, h.OnErrorBehavior), Before: string(h.Before), After: string(h.After), Title: h.Title(), Around: true,
		Changed: h.ParametersTransformed || h.Action == string(hooks.Replace), Started: h.HookRunID,
	}
	if name == wire.EventHookStart {
		c.Outcome = HookRunning
	}
	if h.DurationMS != nil {
		c.DurationMS = *h.DurationMS
	}
	return c, true
}

// agentHookCall returns the call of a hook of an agent.
func agentHookCall(outcome string, at time.Time, data []byte) (HookCall, bool) {
	var h struct {
		HookCall

		Error struct {
			Text string `json:"text"`
		} `json:"error"`
		Policy string        `json:"policy"`
		Run    agent.RunID   `json:"run"`
		Step   int           `json:"step"`
		Facts  []hooks.Fact  `json:"facts"`
		Origin *hooks.Origin `json:"origin"`
	}
	if json.Unmarshal(data, &h) != nil {
		return HookCall{}, false
	}
	c := h.HookCall
	c.At, c.Outcome, c.Error, c.Policy, c.Subagent, c.Step, c.Facts, c.Origin = at, outcome, h.Error.Text, h.Policy, h.Run, h.Step, h.Facts, h.Origin
	c.Title = h.Point + " hook " + h.Hook
	if h.Origin != nil {
		if c.Target = strings.TrimSpace(h.Origin.Action + " " + h.Origin.Target); c.Target != "" {
			c.Title += " (" + c.Target + ")"
		}
		if h.Policy != "" && h.Policy != "retry" {
			c.Policy = cmp.Or(h.Origin.OnFailure, h.Policy)
		}
	}
	return c, true
}

// HasFailed reports whether the hook could not decide.
func (c HookCall) HasFailed() bool {
	return c.Outcome == "failed" || c.Outcome == "timeout" || c.Error != "" && c.Outcome != "skipped"
}

// Words returns what the hook has decided, or why it has not.
func (c HookCall) Words() string {
	switch {
	case c.HasFailed() && c.Policy != "":
		return c.Outcome + ", on_error " + c.Policy
	case c.HasFailed(), c.Error != "":
		return c.Outcome
	case c.Shadow:
		return "in shadow: would " + c.Decision
	}
	return cmp.Or(c.Decision, c.Outcome)
}
