package hostgate

import (
	"encoding/json"

	"github.com/grapnel-go/grapnel/hooks"
)

// codex is Codex, 0.171.0. It runs the call when an answer has an unknown member, no reason, or anything that the event does
// not allow.
type codex struct{}

var codexPoints = map[string]hooks.PointName{
	"PreToolUse": hooks.PreToolUse, "PostToolUse": hooks.PostToolUse, "PermissionRequest": hooks.InterventionRequested,
	"UserPromptSubmit": hooks.InputSubmitted, "Stop": hooks.Stop, "SubagentStop": hooks.Stop, "SessionStart": hooks.ConversationStart,
	"SessionEnd": hooks.ConversationEnd, "PreCompact": hooks.PreCompact, "PostCompact": hooks.PostCompact,
}

func (codex) read(w *wire, e *Event) error {
	e.Name, e.Session, e.Agent, e.Dir, e.Transcript, e.CallID = w.Event, w.Session, w.AgentID, w.Dir, w.transcript(), w.CallID
	e.Point, e.Prompt = codexPoints[w.Event], w.Prompt
	if !e.IsTool() {
		return nil
	}
	e.setResult(w.Response)
	return e.setCall(w.ToolName, "", w.ToolInput)
}

func (codex) pass(e *Event, context string) object { return claude{}.pass(e, context) }

func (codex) deny(e *Event, reason string) object { return claude{}.deny(e, reason) }

func (codex) ask(*Event, string, json.RawMessage) object { return nil }

// rewrite gives the decision allow, without which Codex would ignore the answer and run the call as it was.
func (codex) rewrite(e *Event, arguments json.RawMessage, context string) object {
	answer := object{"permissionDecision": "allow", "updatedInput": arguments}
	if context != "" {
		answer["additionalContext"] = context
	}
	return specific(e, answer)
}

func (codex) replace(e *Event, texts []string, context string) object {
	answer := object{"decision": "block", "reason": joinTexts(texts)}
	if context != "" {
		answer["hookSpecificOutput"] = object{"hookEventName": e.Name, "additionalContext": context}
	}
	return answer
}
