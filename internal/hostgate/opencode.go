package hostgate

import (
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// opencode is opencode, 1.18.33. It has no hooks of its own for programs: Plugin starts the gate and obeys its answer. Without
// an answer, the plugin denies.
type opencode struct{}

// Plugin is the plugin that connects opencode with the gate.
//
//go:embed opencode.js
var Plugin string

var opencodePoints = map[string]hooks.PointName{
	"tool.execute.before": hooks.PreToolUse, "tool.execute.after": hooks.PostToolUse, "chat.message": hooks.InputSubmitted,
}

func (opencode) read(w *wire, e *Event) error {
	e.Name, e.Dir, e.Point = w.Hook, w.Directory, opencodePoints[w.Hook]
	if w.In == nil {
		if !e.IsTool() {
			return nil
		}
		return fmt.Errorf("the event %s has no input", e.Name)
	}
	e.Session, e.CallID = w.In.Session, w.In.CallID
	var out struct {
		Args  json.RawMessage `json:"args"`
		Text  json.RawMessage `json:"output"`
		Parts []struct {
			Type      string `json:"type"`
			Text      string `json:"text"`
			Synthetic bool   `json:"synthetic"`
		} `json:"parts"`
	}
	if len(w.Out) > 0 {
		if err := strictjson.Unmarshal(w.Out, &out); err != nil {
			return err
		}
	}
	for _, part := range out.Parts {
		if part.Type == "text" && !part.Synthetic {
			e.Prompt += part.Text
		}
	}
	switch e.Point {
	case hooks.PreToolUse:
		return e.setCall(w.In.Tool, mcpName(e.Host, w.In.Tool, w.servers), out.Args)
	case hooks.PostToolUse:
		e.setResult(w.Out)
		return e.setCall(w.In.Tool, mcpName(e.Host, w.In.Tool, w.servers), w.In.Args)
	}
	return nil
}

// pass answers always: without an answer, the plugin denies.
func (opencode) pass(*Event, string) object { return object{"decision": "allow"} }

func (x opencode) deny(e *Event, reason string) object {
	if e.Point != hooks.PreToolUse {
		return x.pass(e, "")
	}
	return object{"decision": "deny", "reason": reason}
}

func (opencode) ask(*Event, string, json.RawMessage) object { return nil }

func (opencode) rewrite(_ *Event, arguments json.RawMessage, _ string) object {
	return object{"decision": "allow", "args": arguments}
}

func (opencode) replace(e *Event, texts []string, _ string) object {
	return object{"decision": "allow", "output": putTexts(e.result, fitTexts(texts, len(e.Texts)))}
}
