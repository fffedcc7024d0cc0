package claudehooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// output holds a handler's standard output, parsed.
type output struct {
	// text is plain text. broken says why JSON is invalid. isJSON reports that the fields apply.
	text   string
	broken string
	isJSON bool

	Continue      *bool   `json:"continue"`
	StopReason    string  `json:"stopReason"`
	Quiet         bool    `json:"suppressOutput"`
	SystemMessage string  `json:"systemMessage"`
	Decision      string  `json:"decision"`
	Reason        string  `json:"reason"`
	Async         bool    `json:"async"`
	AsyncTimeout  float64 `json:"asyncTimeout"`
	Sequence      string  `json:"terminalSequence"`
	specific

	hints []string
}

// specific are the members of hookSpecificOutput.
type specific struct {
	Permission       string          `json:"permissionDecision"`
	PermissionReason string          `json:"permissionDecisionReason"`
	Input            json.RawMessage `json:"updatedInput"`
	Context          string          `json:"additionalContext"`
	Output           json.RawMessage `json:"updatedToolOutput"`
	MCPOutput        json.RawMessage `json:"updatedMCPToolOutput"`
	FirstMessage     string          `json:"initialUserMessage"`
	Title            string          `json:"sessionTitle"`
	Request          *permission     `json:"decision"`
}

// permission is the decision about a PermissionRequest.
type permission struct {
	Behavior  string          `json:"behavior"`
	Input     json.RawMessage `json:"updatedInput"`
	Changes   json.RawMessage `json:"updatedPermissions"`
	Message   string          `json:"message"`
	Interrupt bool            `json:"interrupt"`
}

// specificKeys are the members of hookSpecificOutput that count, by event.
var specificKeys = map[string][]string{
	preToolUse:         {"permissionDecision", "permissionDecisionReason", "updatedInput", "additionalContext"},
	postToolUse:        {"additionalContext", "updatedToolOutput", "updatedMCPToolOutput", "classifierContext"},
	postToolUseFailure: {"additionalContext"},
	postToolBatch:      {"additionalContext"},
	permissionRequest:  {"decision"},
	userPromptSubmit:   {"additionalContext", "sessionTitle", "suppressOriginalPrompt"},
	sessionStart:       {"additionalContext", "initialUserMessage", "sessionTitle", "watchPaths", "reloadSkills"},
	stopEvent:          {"additionalContext"},
	subagentStart:      {"additionalContext"},
	subagentStop:       {"additionalContext"},
	notification:       {"additionalContext"},
}

var universalKeys = []string{
	"continue", "stopReason", "suppressOutput", "systemMessage", "terminalSequence", "decision", "reason", "hookSpecificOutput", "async", "asyncTimeout",
}

// misplaced are keys that scripts print where Claude Code ignores them, with what they probably mean.
var misplaced = map[string]string{
	"permission": "hookSpecificOutput.permissionDecision", "permissionDecision": "hookSpecificOutput.permissionDecision",
	"permissionDecisionReason": "hookSpecificOutput.permissionDecisionReason", "updatedInput": "hookSpecificOutput.updatedInput",
	"additionalContext": "hookSpecificOutput.additionalContext", "updatedToolOutput": "hookSpecificOutput.updatedToolOutput",
	"tool_output": "hookSpecificOutput.updatedToolOutput",
	"result":      `decision: "block" or hookSpecificOutput`, "allow": "hookSpecificOutput.permissionDecision",
	"block": `decision: "block"`, "tool_input": "hookSpecificOutput.updatedInput", "message": "systemMessage or reason", "action": "decision",
	"hookEventName": "hookSpecificOutput.hookEventName",
}

// readOutput reads standard output as Claude Code does.
func readOutput(event, stdout string) output {
	text := strings.TrimSpace(stdout)
	if !strings.HasPrefix(text, "{") || !strings.HasSuffix(text, "}") {
		return output{text: text}
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		if isLog(text) {
			return output{text: text}
		}
		return output{broken: fmt.Sprintf("the output is no JSON: %v", err)}
	}
	o := output{isJSON: true}
	if err := o.read(event, members); err != nil {
		return output{broken: err.Error()}
	}
	return o
}

// isLog reports whether a text is several lines of JSON without an answer among them.
func isLog(text string) bool {
	n := 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		var members map[string]json.RawMessage
		if !json.Valid([]byte(line)) {
			return false
		}
		if json.Unmarshal([]byte(line), &members) == nil && slices.ContainsFunc(universalKeys, func(key string) bool { return members[key] != nil }) {
			return false
		}
		n++
	}
	return n > 1
}

func (o *output) read(event string, members map[string]json.RawMessage) error {
	for _, key := range universalKeys {
		if raw, ok := members[key]; ok && string(raw) == "null" {
			return fmt.Errorf("%s is null", key)
		}
	}
	nested := members["hookSpecificOutput"]
	for key := range members {
		if meant, ok := misplaced[key]; ok {
			o.hints = append(o.hints, fmt.Sprintf("%q has no effect at the top level: did you mean %s?", key, meant))
		}
		if !slices.Contains(universalKeys, key) {
			delete(members, key)
		}
	}
	delete(members, "hookSpecificOutput")
	if err := decodeMembers(members, o); err != nil {
		return err
	}
	switch o.Decision {
	case "", "approve", "block":
	default:
		return fmt.Errorf("decision is %q: it must be approve or block", o.Decision)
	}
	if nested == nil {
		return nil
	}
	return o.readSpecific(event, nested)
}

// readSpecific reads hookSpecificOutput.
func (o *output) readSpecific(event string, nested json.RawMessage) error {
	var inner map[string]json.RawMessage
	if err := json.Unmarshal(nested, &inner); err != nil || inner == nil {
		return errors.New("hookSpecificOutput is no object")
	}
	var name string
	if err := json.Unmarshal(inner["hookEventName"], &name); err != nil || name != event {
		return fmt.Errorf("hookSpecificOutput.hookEventName is %q: it must be %q", name, event)
	}
	for key := range inner {
		if key != "hookEventName" && !slices.Contains(specificKeys[event], key) {
			o.hints = append(o.hints, fmt.Sprintf("hookSpecificOutput.%s has no effect at %s", key, event))
			delete(inner, key)
		}
	}
	for key, raw := range inner {
		if string(raw) == "null" {
			return fmt.Errorf("hookSpecificOutput.%s is null", key)
		}
	}
	if err := decodeMembers(inner, &o.specific); err != nil {
		return err
	}
	switch o.Permission {
	case "", "allow", "deny", "ask", "defer":
	default:
		return fmt.Errorf("permissionDecision is %q: it must be allow, deny, ask or defer", o.Permission)
	}
	if o.Input != nil && !isObject(o.Input) {
		return errors.New("updatedInput is no object")
	}
	if r := o.Request; r != nil {
		if r.Behavior != "allow" && r.Behavior != "deny" {
			return fmt.Errorf("decision.behavior is %q: it must be allow or deny", r.Behavior)
		}
		if r.Input != nil && !isObject(r.Input) {
			return errors.New("decision.updatedInput is no object")
		}
	}
	return nil
}

// decodeMembers decodes the members into a struct. The types must be right.
func decodeMembers(members map[string]json.RawMessage, into any) error {
	text, err := json.Marshal(members)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("the output has a member of the wrong type: %w", err)
	}
	return nil
}

func isObject(raw json.RawMessage) bool { return bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) }

// blocks reports whether the JSON itself blocks, and why.
func (o *output) blocks(event string) (reason string, ok bool) {
	e := events[event]
	switch {
	case o.Permission == "deny":
		return o.PermissionReason, true
	case o.Request != nil && o.Request.Behavior == "deny":
		return o.Request.Message, true
	case o.Decision == "block" && e.takesBlock:
		return o.Reason, true
	}
	return "", false
}
