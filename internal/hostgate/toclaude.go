package hostgate

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// claudeTools are Claude Code's names for our tools, with its names for our keys as pairs "ours=Claude's".
var claudeTools = map[string]tool{
	"bash": {"Bash", ""}, "powershell": {"PowerShell", ""}, "read_file": {"Read", "path=file_path"}, "write_file": {"Write", "path=file_path"},
	"edit_file":  {"Edit", "path=file_path old_text=old_string new_text=new_string"},
	"list_files": {"LS", ""}, "glob": {"Glob", ""}, "grep": {"Grep", "ignore_case=-i context=-C max_matches=head_limit"},
	"web_fetch": {"WebFetch", ""}, "web_search": {"WebSearch", ""}, "Task": {"Agent", ""},
	"task": {"Agent", "instruction=prompt agent=subagent_type"},
}

// IsClaudeTool reports whether a name is one of Claude Code's tools, also an old one.
func IsClaudeTool(name string) bool {
	_, ok := tools[ClaudeCode][name]
	return ok || slices.Contains(otherClaudeTools, name)
}

// ClaudeTools lists Claude Code's names for our tools.
func ClaudeTools() []string {
	var out []string
	for t := range maps.Values(claudeTools) {
		out = append(out, t.name)
	}
	slices.Sort(out)
	return out
}

// otherClaudeTools are tools of Claude Code for which we have no name.
var otherClaudeTools = strings.Fields("AskUserQuestion ExitPlanMode EnterPlanMode TodoWrite Skill SlashCommand BashOutput KillShell KillBash TaskOutput " +
	"TaskStop TaskCreate TaskUpdate TaskList TaskGet NotebookRead Workflow CronCreate CronDelete CronList ScheduleWakeup RemoteTrigger SendMessage " +
	"SendUserFile PushNotification Artifact SendFeedback ToolSearch LSP ListMcpResourcesTool ReadMcpResourceTool EnterWorktree ExitWorktree")

// ClaudeCall is a call of ours as Claude Code would describe it to a hook.
type ClaudeCall struct {
	// Tool is Claude Code's name for the tool, and Input are its arguments. Tools without such a name keep theirs.
	Tool  string
	Input json.RawMessage

	tool   tool
	ours   map[string]json.RawMessage
	theirs map[string]json.RawMessage
}

// ToClaude returns a call of ours in Claude Code's form. A file's path becomes absolute, below dir.
func ToClaude(name, arguments, dir string) (ClaudeCall, error) {
	c := ClaudeCall{Tool: name, theirs: map[string]json.RawMessage{}}
	var err error
	if c.ours, err = readMembers(json.RawMessage(arguments)); err != nil {
		return c, err
	}
	if t, ok := claudeTools[name]; ok {
		c.Tool, c.tool = t.name, t
	}
	for key, value := range c.ours {
		c.theirs[c.tool.rename(key)] = value
	}
	if c.tool.name != "" {
		for _, key := range []string{"file_path", "path"} {
			if path, ok := strictjson.Unquote(string(c.theirs[key])); ok && path != "" && !filepath.IsAbs(path) {
				c.theirs[key] = quote(filepath.Join(dir, path))
			}
		}
	}
	if c.Tool == "Bash" {
		if raw, ok := c.theirs["timeout_seconds"]; ok {
			delete(c.theirs, "timeout_seconds")
			var seconds int64
			if strictjson.Unmarshal(raw, &seconds) == nil {
				c.theirs["timeout"] = json.RawMessage(strconv.FormatInt(seconds*1000, 10))
			}
		}
	}
	text, err := writeMembers(c.theirs)
	c.Input = json.RawMessage(text)
	return c, err
}

// Arguments returns our arguments for an input with which a hook replaces the call's. Values that the hook kept get back our
// spelling.
func (c ClaudeCall) Arguments(input json.RawMessage) (json.RawMessage, error) {
	given, err := readMembers(input)
	if err != nil {
		return nil, err
	}
	back := map[string]string{}
	for pair := range strings.FieldsSeq(c.tool.keys) {
		ours, theirs, _ := strings.Cut(pair, "=")
		back[theirs] = ours
	}
	out := map[string]json.RawMessage{}
	for key, value := range given {
		ours, ok := back[key]
		if !ok {
			ours = key
		}
		if was, ok := c.theirs[key]; ok && isEqual(`{"v":`+string(was)+`}`, `{"v":`+string(value)+`}`) && c.ours[ours] != nil {
			out[ours] = c.ours[ours]
			continue
		}
		if c.Tool == "Bash" {
			switch key {
			case "description":
				continue // for people
			case "run_in_background":
				if string(value) == "false" {
					continue
				}
				return nil, errors.New("commands cannot run in the background here")
			case "timeout":
				var ms float64
				if err := json.Unmarshal(value, &ms); err != nil {
					return nil, fmt.Errorf("the timeout is no number: %w", err)
				}
				if was, ok := c.theirs[key]; ok && string(was) == string(value) {
					out["timeout_seconds"] = c.ours["timeout_seconds"]
				} else {
					out["timeout_seconds"] = json.RawMessage(strconv.FormatInt((int64(ms)+999)/1000, 10))
				}
				continue
			}
		}
		out[ours] = value
	}
	text, err := writeMembers(out)
	return json.RawMessage(text), err
}

// ClaudeResult returns a tool's result in the form that Claude Code's hooks expect.
func ClaudeResult(tool string, input json.RawMessage, text string) any {
	var in map[string]any
	_ = strictjson.Unmarshal(input, &in) // without arguments, members are missing
	switch {
	case tool == "Bash" || tool == "PowerShell":
		stdout, stderr := splitStreams(text)
		return map[string]any{"stdout": stdout, "stderr": stderr, "interrupted": false, "isImage": false}
	case tool == "Write":
		return map[string]any{"type": "update", "filePath": in["file_path"], "content": in["content"], "success": true}
	case tool == "Edit":
		return map[string]any{
			"filePath": in["file_path"], "oldString": in["old_string"], "newString": in["new_string"], "replaceAll": in["replace_all"] == true, "success": true,
		}
	case tool == "Read":
		file := map[string]any{"filePath": in["file_path"], "content": text, "numLines": strings.Count(text, "\n") + 1, "startLine": 1}
		return map[string]any{"type": "text", "file": file}
	case tool == "Glob":
		return map[string]any{"filenames": strings.Fields(text), "numFiles": len(strings.Fields(text)), "truncated": false}
	case tool == "Grep":
		return map[string]any{"mode": "content", "content": text, "numLines": strings.Count(text, "\n") + 1}
	case tool == "WebFetch":
		return map[string]any{"result": text, "url": in["url"]}
	case strings.HasPrefix(tool, "mcp__"):
		return []any{map[string]any{"type": "text", "text": text}}
	}
	if v := decodeResult(json.RawMessage(text)); strings.HasPrefix(strings.TrimSpace(text), "{") {
		return v
	}
	return text
}

// splitStreams returns the streams in a shell's answer.
func splitStreams(text string) (stdout, stderr string) {
	if _, rest, ok := strings.Cut(text, "\nstdout"); ok {
		_, stdout, _ = strings.Cut(rest, "\n")
		stdout, rest, ok = strings.Cut(stdout, "\nstderr")
		if ok {
			_, stderr, _ = strings.Cut(rest, "\n")
		}
		return stdout, stderr
	}
	if _, rest, ok := strings.Cut(text, "\nstderr"); ok {
		_, stderr, _ = strings.Cut(rest, "\n")
		return "", stderr
	}
	return strings.TrimPrefix(strings.TrimPrefix(text, "exit code 0"), "\nno output"), ""
}

// ClaudeResultText returns the text for the model of a result with which a hook replaces another. It returns false if the
// forms differ.
func ClaudeResultText(was any, raw json.RawMessage) (string, bool) {
	now := decodeResult(raw)
	switch was := was.(type) {
	case map[string]any:
		members, ok := now.(map[string]any)
		for key := range was {
			if _, has := members[key]; !has && slices.Contains(mainTexts, key) {
				return "", false
			}
		}
		if file, nested := members["file"].(map[string]any); nested {
			members = map[string]any{"content": file["content"]}
		}
		var texts []string
		for _, key := range mainTexts {
			if text, is := members[key].(string); is && text != "" {
				texts = append(texts, text)
			}
		}
		return strings.Join(texts, "\n"), ok
	case []any:
		if text, ok := now.(string); ok {
			return text, true
		}
		list, ok := now.([]any)
		var texts []string
		for _, part := range list {
			members, _ := part.(map[string]any)
			if text, is := members["text"].(string); is {
				texts = append(texts, text)
			}
		}
		return strings.Join(texts, "\n"), ok
	}
	text, ok := now.(string)
	return text, ok
}
