package hostgate

import (
	"encoding/json"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// gemini is Gemini CLI, 0.61.0. It has no IDs of calls. It reads the error stream when the output is empty.
type gemini struct{}

var geminiPoints = map[string]hooks.PointName{
	"BeforeTool": hooks.PreToolUse, "AfterTool": hooks.PostToolUse, "BeforeAgent": hooks.InputSubmitted, "AfterAgent": hooks.Stop,
	"BeforeModel": hooks.PreInference, "AfterModel": hooks.PostInference, "SessionStart": hooks.ConversationStart,
	"SessionEnd": hooks.ConversationEnd, "PreCompress": hooks.PreCompact,
}

func (gemini) read(w *wire, e *Event) error {
	e.Name, e.Session, e.Dir, e.Transcript = w.Event, w.Session, w.Dir, w.transcript()
	e.Point, e.Prompt = geminiPoints[w.Event], w.Prompt
	if !e.IsTool() {
		return nil
	}
	mcp := mcpName(e.Host, w.ToolName, w.servers)
	if w.MCP != nil {
		mcp = "mcp__" + w.MCP.Server + "__" + w.MCP.Tool
	}
	if e.IsResult() {
		var response struct {
			Content json.RawMessage `json:"llmContent"`
			Error   json.RawMessage `json:"error"`
		}
		if err := strictjson.Unmarshal(w.Response, &response); err != nil {
			response.Content = w.Response
		}
		e.setResult(response.Content)
		if e.Failed = len(response.Error) > 0 && string(response.Error) != "null"; e.Failed {
			e.Point = hooks.ToolFailed
		}
	}
	return e.setCall(w.ToolName, mcp, w.ToolInput)
}

func (gemini) pass(e *Event, context string) object {
	switch e.Name {
	case "AfterTool", "BeforeAgent", "SessionStart":
		if context != "" {
			return specific(e, object{"additionalContext": context})
		}
	}
	return nil
}

func (gemini) deny(e *Event, reason string) object {
	if e.Point != hooks.PreToolUse {
		return nil
	}
	return object{"decision": "deny", "reason": reason}
}

func (gemini) ask(e *Event, reason string, arguments json.RawMessage) object {
	answer := object{"decision": "ask", "reason": reason}
	if arguments != nil {
		answer["hookSpecificOutput"] = object{"hookEventName": e.Name, "tool_input": arguments}
	}
	return answer
}

func (gemini) rewrite(e *Event, arguments json.RawMessage, _ string) object {
	return specific(e, object{"tool_input": arguments})
}

func (gemini) replace(e *Event, texts []string, context string) object {
	answer := object{"decision": "deny", "reason": joinTexts(texts)}
	if context != "" {
		answer["hookSpecificOutput"] = object{"hookEventName": e.Name, "additionalContext": context}
	}
	return answer
}
