package hostgate

import (
	"cmp"
	"encoding/json"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// copilot is Copilot CLI, 1.0.102. The spelling of an event's name in its configuration decides on the spelling of its members.
type copilot struct{}

var copilotPoints = map[string]hooks.PointName{
	"preToolUse": hooks.PreToolUse, "postToolUse": hooks.PostToolUse, "postToolUseFailure": hooks.ToolFailed,
	"permissionRequest": hooks.InterventionRequested, "userPromptSubmitted": hooks.InputSubmitted, "agentStop": hooks.Stop,
	"sessionStart": hooks.ConversationStart, "sessionEnd": hooks.ConversationEnd, "preCompact": hooks.PreCompact,
}

func (copilot) read(w *wire, e *Event) error {
	e.Name, e.Session, e.Dir, e.Transcript = cmp.Or(w.Event, w.HookName), cmp.Or(w.Session, w.SessionCamel), w.Dir, w.transcript()
	raw := firstOf(w.ToolInput, w.ToolInputC, w.ToolArgs)
	result := firstOf(w.Result, w.ResultCamel)
	tool := cmp.Or(w.ToolName, w.ToolNameCamel)
	if e.Name == "" { // the spelling without a name
		switch {
		case tool != "" && len(w.Error) > 0:
			e.Name = "postToolUseFailure"
		case tool != "" && result != nil:
			e.Name = "postToolUse"
		case tool != "":
			e.Name = "preToolUse"
		case w.Prompt != "":
			e.Name = "userPromptSubmitted"
		default:
			e.Name = "notification"
		}
	}
	if e.Point = copilotPoints[e.Name]; e.Point == "" {
		e.Point = claudePoints[e.Name]
	}
	if !e.IsTool() {
		e.Prompt = w.Prompt
		return nil
	}
	if e.IsResult() {
		e.setResult(result)
		var outcome struct {
			Type  string `json:"resultType"`
			Snake string `json:"result_type"`
		}
		if len(result) > 0 {
			_ = strictjson.Unmarshal(result, &outcome) // a result in another form did not fail
		}
		if kind := cmp.Or(outcome.Type, outcome.Snake, "success"); kind != "success" {
			e.Failed = true
		}
		if e.Point == hooks.ToolFailed {
			e.setResult(w.Error)
			e.Failed = true
		}
	}
	return e.setCall(tool, mcpName(e.Host, tool, w.servers), raw)
}

func firstOf(list ...json.RawMessage) json.RawMessage {
	for _, raw := range list {
		if len(raw) > 0 {
			return raw
		}
	}
	return nil
}

// isPascal reports whether the event is spelled as in Claude Code.
func (copilot) isPascal(e *Event) bool { return e.Name[0] < 'a' }

func (copilot) pass(e *Event, context string) object {
	switch e.Point {
	case hooks.PostToolUse, hooks.ToolFailed, hooks.ConversationStart:
		if context != "" {
			return object{"additionalContext": context}
		}
	}
	return nil
}

func (x copilot) deny(e *Event, reason string) object {
	switch e.Point {
	case hooks.InterventionRequested:
		return object{"behavior": "deny", "message": reason}
	case hooks.PreToolUse:
		return x.decide(e, object{"permissionDecision": "deny", "permissionDecisionReason": reason})
	}
	return nil
}

// decide returns an answer in the form that the event's spelling wants, and the other one.
func (x copilot) decide(e *Event, members object) object {
	if x.isPascal(e) {
		nested := object{"hookEventName": e.Name}
		for key, value := range members {
			if key == "modifiedArgs" {
				key = "updatedInput"
			}
			nested[key] = value
		}
		members["hookSpecificOutput"] = nested
	}
	return members
}

func (x copilot) ask(e *Event, reason string, arguments json.RawMessage) object {
	answer := object{"permissionDecision": "ask", "permissionDecisionReason": reason}
	if arguments != nil {
		answer["modifiedArgs"] = arguments
	}
	return x.decide(e, answer)
}

func (x copilot) rewrite(e *Event, arguments json.RawMessage, _ string) object {
	return x.decide(e, object{"modifiedArgs": arguments})
}

func (copilot) replace(e *Event, texts []string, context string) object {
	if e.Point == hooks.ToolFailed {
		return object{"additionalContext": irreplaceable}
	}
	kind := "success"
	if e.Failed {
		kind = "failure"
	}
	answer := object{"modifiedResult": object{"resultType": kind, "textResultForLlm": joinTexts(texts)}}
	if context != "" {
		answer["additionalContext"] = context
	}
	return answer
}
