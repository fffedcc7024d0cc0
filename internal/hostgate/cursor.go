package hostgate

import (
	"cmp"
	"encoding/json"

	"github.com/grapnel-go/grapnel/hooks"
)

// cursor is Cursor, 3.9. With failClosed, no answer blocks, so that every event has one.
type cursor struct{}

var cursorPoints = map[string]hooks.PointName{
	"preToolUse": hooks.PreToolUse, "beforeShellExecution": hooks.PreToolUse, "beforeMCPExecution": hooks.PreToolUse,
	"beforeReadFile": hooks.PreToolUse, "beforeTabFileRead": hooks.PreToolUse, "postToolUse": hooks.PostToolUse,
	"postToolUseFailure": hooks.ToolFailed, "beforeSubmitPrompt": hooks.InputSubmitted, "stop": hooks.Stop,
	"sessionStart": hooks.ConversationStart, "sessionEnd": hooks.ConversationEnd, "preCompact": hooks.PreCompact, "subagentStart": hooks.PreSubagent,
}

func (cursor) read(w *wire, e *Event) error {
	e.Name, e.Session, e.Dir, e.Transcript, e.CallID = w.Event, cmp.Or(w.Conversation, w.Session), w.Dir, w.transcript(), w.CallID
	if e.Dir == "" && len(w.Workspaces) > 0 {
		e.Dir = w.Workspaces[0]
	}
	e.Point, e.Prompt = cursorPoints[e.Name], w.Prompt
	if !e.IsTool() {
		return nil
	}
	if e.IsResult() {
		raw := w.Output
		if e.Point == hooks.ToolFailed {
			raw, e.Failed = quote(w.ErrorMessage), true
		} else if s := textOf(raw); s != "" && json.Valid([]byte(s)) { // JSON as a text
			raw = json.RawMessage(s)
		}
		e.setResult(raw)
	}
	switch e.Name {
	case "beforeShellExecution":
		return e.setCall("Shell", "", objectOf("command", w.Command))
	case "beforeReadFile", "beforeTabFileRead":
		return e.setCall("Read", "", objectOf("file_path", w.FilePath))
	case "beforeMCPExecution":
		return e.setCall(w.ToolName, mcpName(e.Host, "MCP:"+w.ToolName, w.servers), w.ToolInput)
	}
	return e.setCall(w.ToolName, mcpName(e.Host, w.ToolName, w.servers), w.ToolInput)
}

func quote(s string) json.RawMessage {
	raw, _ := json.Marshal(s) //nolint:errchkjson // a string
	return raw
}

func (cursor) pass(e *Event, context string) object {
	switch e.Point {
	case hooks.PreToolUse, hooks.PreSubagent:
		return object{"permission": "allow"}
	case hooks.InputSubmitted:
		return object{"continue": true}
	case hooks.PostToolUse, hooks.ConversationStart:
		if context != "" {
			return object{"additional_context": context}
		}
	}
	return object{}
}

func (x cursor) deny(e *Event, reason string) object {
	if e.Point != hooks.PreToolUse {
		return x.pass(e, "")
	}
	return object{"permission": "deny", "user_message": reason, "agent_message": reason}
}

// ask returns nil: preToolUse does not enforce the answer, and a shell call is refused without a question.
func (cursor) ask(*Event, string, json.RawMessage) object { return nil }

func (cursor) rewrite(e *Event, arguments json.RawMessage, _ string) object {
	if e.Name != "preToolUse" {
		return nil
	}
	return object{"permission": "allow", "updated_input": arguments}
}

func (cursor) replace(e *Event, texts []string, _ string) object {
	if e.Point == hooks.ToolFailed || mcpName(e.Host, e.HostTool, nil) == "" {
		return object{"additional_context": irreplaceable}
	}
	return object{"updated_mcp_tool_output": putTexts(e.result, fitTexts(texts, len(e.Texts)))}
}

// objectOf returns a JSON object with one member, or without it if there is no text.
func objectOf(key string, s *string) json.RawMessage {
	if s == nil {
		return json.RawMessage("{}")
	}
	raw, _ := json.Marshal(map[string]string{key: *s}) //nolint:errchkjson // strings
	return raw
}
