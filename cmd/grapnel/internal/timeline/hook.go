package timeline

import (
	"fmt"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// hook shows the decision of a hook. Decisions about a call are shown with the line of the call.
func (t *Timeline) hook(e hooks.Event) {
	if e.Kind == hooks.HookStart {
		return
	}
	if e.Call.ID != "" {
		t.decided[e.Call.ID] = append(t.decided[e.Call.ID], e)
		return
	}
	t.decision(2, e)
}

// decision shows the decision of a hook, unless the hook had no objection or only observed.
func (t *Timeline) decision(indent int, e hooks.Event) {
	who, why := OneLine(e.Hook), describeReason(e.Reason)
	say := func(look style, mark, text string) { t.paper.line(indent, look, mark, look, text) }
	switch e.Kind {
	case hooks.HookFailed, hooks.HookTimeout:
		say(red, "!", fmt.Sprintf("%s could not decide (%s): %s", who, describePolicy(e.Policy), OneLine(fmt.Sprint(e.Err))))
		return
	case hooks.HookSkipped, hooks.HookConflict:
		say(dim, "-", who+" was skipped"+why)
		return
	}
	if e.Shadow {
		if e.Decision != hooks.Pass && e.Decision != hooks.Allow {
			say(dim, "≈", fmt.Sprintf("%s would %s %s, in force%s", who, describeShadow(e.Decision), decisionSubject(e), why))
		}
		return
	}
	switch e.Decision {
	case hooks.Deny:
		say(red, "✗", who+" denies "+decisionSubject(e)+why)
	case hooks.StopRun:
		say(red, "■", who+" stops the run"+why)
	case hooks.Ask:
		say(yellow, "?", who+" asks for approval"+why)
	case hooks.Mock:
		say(yellow, "◦", who+" answers in the tool's place"+why)
	case hooks.Continue:
		say(yellow, "↺", who+" keeps it from stopping"+why)
	case hooks.Withhold:
		say(red, "✂", who+" withholds "+decisionSubject(e)+why)
	case hooks.Replace:
		say(yellow, "✎", who+" changed "+decisionSubject(e)+why)
	case hooks.Rewrite:
		if e.Point == hooks.PreToolUse {
			say(yellow, "✎", who+" rewrote it to: "+describeArguments(agent.ToolCall{Arguments: e.After})+why)
			return
		}
		say(yellow, "✎", who+" rewrote "+decisionSubject(e)+why)
	default:
		if e.Outcome != nil && e.Outcome.Effects().Len() > 0 {
			say(dim, "+", who+" added to the conversation")
		}
	}
}

// describeShadow returns what a hook in shadow mode would have done.
func describeShadow(d hooks.Decision) string {
	switch d {
	case hooks.StopRun:
		return "stop the run over"
	case hooks.Ask:
		return "ask for approval of"
	case hooks.Mock:
		return "answer in the place of"
	case hooks.Continue:
		return "keep the run from stopping after"
	}
	return string(d)
}

func describeReason(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + OneLine(reason)
}

// decisionSubject returns the subject of a decision at a point.
func decisionSubject(e hooks.Event) string {
	switch e.Point {
	case hooks.InputSubmitted, hooks.ExecutionStart:
		return "the input"
	case hooks.PreInference:
		return "the model's request"
	case hooks.PostInference:
		return "the reply"
	case hooks.PreToolUse:
		return "the call"
	case hooks.PostToolUse, hooks.ToolFailed:
		return "the result"
	}
	return "it"
}

// describePolicy describes the consequence when a hook could not decide.
func describePolicy(name string) string {
	switch name {
	case "closed":
		return "treated as a denial"
	case "open":
		return "ignored"
	case "abort":
		return "the run fails"
	case "retry":
		return "asked again"
	}
	return name
}
