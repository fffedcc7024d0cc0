package hostgate

import (
	"encoding/json"
	"strings"

	"github.com/grapnel-go/grapnel/hooks"
)

// claude is Claude Code, 2.1.332.
type claude struct{}

// skillCommand is the event for a shell command in a skill's text. Everything but no answer refuses it.
const skillCommand = "PreSkillShellCommand"

var claudePoints = map[string]hooks.PointName{
	"PreToolUse": hooks.PreToolUse, skillCommand: hooks.PreToolUse, "PostToolUse": hooks.PostToolUse, "PostToolUseFailure": hooks.ToolFailed,
	"PermissionRequest": hooks.InterventionRequested, "UserPromptSubmit": hooks.InputSubmitted, "Stop": hooks.Stop, "SubagentStop": hooks.Stop,
	"SessionStart": hooks.ConversationStart, "SessionEnd": hooks.ConversationEnd, "PreCompact": hooks.PreCompact, "PostCompact": hooks.PostCompact,
}

func (claude) read(w *wire, e *Event) error {
	e.Name, e.Session, e.Agent, e.Dir, e.Transcript, e.CallID = w.Event, w.Session, w.AgentID, w.Dir, w.transcript(), w.CallID
	e.Point = claudePoints[w.Event]
	switch w.source() {
	case "", "user", "sdk":
		e.Prompt = w.Prompt
	}
	if !e.IsTool() {
		return nil
	}
	e.setResult(w.Response)
	if e.Point == hooks.ToolFailed {
		e.setResult(w.Error)
		e.Failed = true
	}
	return e.setCall(w.ToolName, "", w.ToolInput)
}

// setResult reads a host's result.
func (e *Event) setResult(raw json.RawMessage) {
	e.result = decodeResult(raw)
	e.Texts = textsIn(e.result)
}

func (claude) pass(e *Event, context string) object {
	switch e.Point {
	case hooks.PreToolUse, hooks.PostToolUse, hooks.ToolFailed, hooks.InputSubmitted, hooks.ConversationStart:
		if context != "" && e.Name != skillCommand {
			return specific(e, object{"additionalContext": context})
		}
	}
	return nil
}

// specific returns an answer whose members are under hookSpecificOutput.
func specific(e *Event, members object) object {
	members["hookEventName"] = e.Name
	return object{"hookSpecificOutput": members}
}

func (claude) deny(e *Event, reason string) object {
	switch e.Point {
	case hooks.InterventionRequested:
		return specific(e, object{"decision": object{"behavior": "deny", "message": reason}})
	case hooks.PreToolUse:
		return specific(e, object{"permissionDecision": "deny", "permissionDecisionReason": reason})
	}
	return nil
}

func (claude) ask(e *Event, reason string, arguments json.RawMessage) object {
	if e.Name == skillCommand { // it cannot be asked about there
		return nil
	}
	answer := object{"permissionDecision": "ask", "permissionDecisionReason": reason}
	if arguments != nil {
		answer["updatedInput"] = arguments
	}
	return specific(e, answer)
}

// rewrite gives no decision, so that the host's own rules and questions remain.
func (claude) rewrite(e *Event, arguments json.RawMessage, context string) object {
	if e.Name == skillCommand {
		return nil
	}
	answer := object{"updatedInput": arguments}
	if context != "" {
		answer["additionalContext"] = context
	}
	return specific(e, answer)
}

// replace keeps the result's form: Claude Code drops a replacement in another form without a word.
func (claude) replace(e *Event, texts []string, context string) object {
	if e.Point == hooks.ToolFailed {
		return specific(e, object{"additionalContext": irreplaceable})
	}
	answer := object{"updatedToolOutput": putTexts(e.result, fitTexts(texts, len(e.Texts)))}
	if strings.HasPrefix(e.HostTool, "mcp__") {
		answer["updatedToolOutput"] = joinTexts(texts)
	}
	if context != "" {
		answer["additionalContext"] = context
	}
	return specific(e, answer)
}

// irreplaceable is what the model is told about a result that a rule changes where the host cannot.
const irreplaceable = "A rule withholds parts of this result, and this host cannot remove them: do not use, repeat or store them."
