package hostgate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// tool is a host's own tool: our name for it, and our names for its keys as pairs "host=ours".
type tool struct {
	name string
	keys string
}

// The tools that hosts have in common, with all spellings of their keys.
var (
	shellTool = tool{"bash", "cmd=command dir_path=workdir directory=workdir working_directory=workdir"}
	readTool  = tool{"read_file", "file_path=path filePath=path absolute_path=path target_file=path"}
	writeTool = tool{"write_file", "file_path=path filePath=path file_text=content contents=content"}
	editTool  = tool{"edit_file", "file_path=path filePath=path notebook_path=path old_string=old_text new_string=new_text " +
		"oldString=old_text newString=new_text old_str=old_text new_str=new_text new_source=new_text replaceAll=replace_all"}
	listTool   = tool{"list_files", "dir_path=path"}
	globTool   = tool{"glob", "dir_path=path"}
	grepTool   = tool{"grep", "dir_path=path include=glob"}
	patchTool  = tool{"apply_patch", "command=patch input=patch patchText=patch"}
	fetchTool  = tool{"web_fetch", ""}
	searchTool = tool{"web_search", ""}
	taskTool   = tool{"Task", "message=prompt"}
	typedTool  = tool{"bash", "input=command chars=command"} // input for a running shell
)

var tools = map[Host]map[string]tool{
	ClaudeCode: {
		"Bash": shellTool, "PowerShell": {"powershell", ""}, "Monitor": shellTool, "Read": readTool, "Write": writeTool,
		"Edit": editTool, "MultiEdit": editTool, "NotebookEdit": editTool, "LS": listTool, "Glob": globTool, "Grep": grepTool,
		"WebFetch": fetchTool, "WebSearch": searchTool, "Agent": taskTool, "Task": taskTool,
	},
	Codex: {
		"Bash": shellTool, "shell": shellTool, "shell_command": shellTool, "local_shell": shellTool, "exec_command": shellTool,
		"write_stdin": typedTool, "apply_patch": patchTool, "view_image": readTool, "spawn_agent": taskTool,
	},
	GeminiCLI: {
		"run_shell_command": shellTool, "read_file": readTool, "write_file": writeTool, "replace": editTool,
		"read_many_files": {"read_files", "include=paths"}, "list_directory": listTool, "glob": globTool, "grep_search": grepTool,
		"search_file_content": grepTool, "web_fetch": fetchTool, "google_web_search": searchTool,
	},
	Copilot: {
		"bash": shellTool, "Bash": shellTool, "powershell": {"powershell", ""}, "write_bash": typedTool, "view": readTool, "Read": readTool,
		"create": writeTool, "Write": writeTool, "edit": editTool, "Edit": editTool, "str_replace_editor": editTool,
		"apply_patch": patchTool, "glob": globTool, "Glob": globTool, "grep": grepTool, "Grep": grepTool, "rg": grepTool,
		"web_fetch": fetchTool, "WebFetch": fetchTool, "web_search": searchTool, "WebSearch": searchTool, "task": taskTool, "Agent": taskTool,
	},
	Cursor: {
		"Shell": shellTool, "Read": readTool, "Write": writeTool, "Edit": editTool, "StrReplace": editTool,
		"Delete": {"delete_file", readTool.keys}, "LS": listTool, "Glob": globTool, "Grep": grepTool,
		"WebFetch": fetchTool, "WebSearch": searchTool, "Task": taskTool, "ApplyPatch": patchTool,
	},
	OpenCode: {
		"bash": shellTool, "read": readTool, "write": writeTool, "edit": editTool, "multiedit": editTool, "list": listTool,
		"glob": globTool, "grep": grepTool, "patch": patchTool, "apply_patch": patchTool, "webfetch": fetchTool,
		"websearch": searchTool, "task": taskTool,
	},
}

// ownTools lists more tools of hosts that join the names of MCP servers and tools with a character that their own tools' names
// contain, too.
var ownTools = map[Host][]string{
	Copilot: {
		"read_bash", "stop_bash", "list_bash", "report_intent", "update_todo", "ask_user", "store_memory", "fetch_copilot_cli_documentation",
		"write_powershell", "read_powershell", "stop_powershell", "list_powershell",
	},
	OpenCode: {"plan_enter", "plan_exit"},
}

// mcpName returns the name mcp__server__tool for a host's name of an MCP tool, or "".
func mcpName(h Host, name string, servers []string) string {
	if _, own := tools[h][name]; own || slices.Contains(ownTools[h], name) {
		return ""
	}
	nameOf := func(server, tool string) string { return "mcp__" + server + "__" + tool }
	var separator string
	switch h {
	case GeminiCLI:
		rest, ok := strings.CutPrefix(name, "mcp_")
		if !ok || strings.HasPrefix(rest, "_") {
			return ""
		}
		name, separator = rest, "_"
	case Copilot:
		if server, tool, ok := strings.Cut(name, "/"); ok {
			return nameOf(server, tool)
		}
		separator = "-"
	case Cursor:
		rest, ok := strings.CutPrefix(name, "MCP:")
		if !ok {
			return ""
		}
		if len(servers) == 1 {
			return nameOf(servers[0], rest)
		}
		return nameOf("unknown", rest)
	case OpenCode:
		separator = "_"
	default:
		return "" // mcp__server__tool, as ours
	}
	best := ""
	for _, server := range servers {
		if strings.HasPrefix(name, server+separator) && len(server) > len(best) {
			best = server
		}
	}
	if best != "" {
		return nameOf(best, name[len(best)+len(separator):])
	}
	if server, tool, ok := strings.Cut(name, separator); ok && server != "" && tool != "" {
		return nameOf(server, tool)
	}
	return ""
}

// call is a host's call, and how its keys were renamed.
type call struct {
	hostKeys map[string]string // the host's key for each of ours
	derived  map[string]string // keys that the host's call does not have, as JSON
	fixed    string            // unless empty, why its arguments cannot be changed
}

// setCall fills in the event's calls from the host's tool and arguments.
func (e *Event) setCall(name, mcp string, raw json.RawMessage) error {
	e.HostTool = name
	arguments, err := readMembers(raw)
	if err != nil {
		e.Unclear, arguments = err.Error(), map[string]json.RawMessage{}
	}
	t, own := tools[e.Host][name]
	ours := Call{Tool: cmp.Or(mcp, t.name, name)}
	if mcp != "" {
		own, t = false, tool{}
	}
	if name == "Monitor" && arguments["command"] == nil { // watches a WebSocket
		ours.Tool = name
	}
	e.input = call{hostKeys: map[string]string{}, derived: map[string]string{}}
	renamed := map[string]json.RawMessage{}
	for key, value := range arguments {
		to := t.rename(key)
		if _, twice := renamed[to]; twice {
			e.Unclear = fmt.Sprintf("the arguments give %s twice, as %s and %s", to, e.input.hostKeys[to], key)
		}
		renamed[to], e.input.hostKeys[to] = value, key
	}
	if own {
		e.lookInto(t, renamed)
	}
	ours.Arguments, err = writeMembers(renamed)
	if err != nil {
		return err
	}
	e.Calls = append([]Call{ours}, e.Calls...)
	return nil
}

// rename returns our name for a key.
func (t tool) rename(key string) string {
	for pair := range strings.FieldsSeq(t.keys) {
		if from, to, _ := strings.Cut(pair, "="); from == key {
			return to
		}
	}
	return key
}

// restore returns the host's arguments for a rewritten call of ours.
func (c call) restore(arguments string) (json.RawMessage, error) {
	if c.fixed != "" {
		return nil, fmt.Errorf("%s", c.fixed)
	}
	ours, err := readMembers(json.RawMessage(arguments))
	if err != nil {
		return nil, err
	}
	out := map[string]json.RawMessage{}
	for key, value := range ours {
		if was, ok := c.derived[key]; ok {
			if was != string(value) && !isEqual(was, string(value)) {
				return nil, fmt.Errorf("%s follows from other arguments and cannot be changed", key)
			}
			continue
		}
		out[cmp.Or(c.hostKeys[key], key)] = value
	}
	text, err := writeMembers(out)
	return json.RawMessage(text), err
}

func isEqual(a, b string) bool {
	x, errA := strictjson.Canonical(a)
	y, errB := strictjson.Canonical(b)
	return errA == nil && errB == nil && x == y
}

// writeMembers returns an object with sorted keys.
func writeMembers(m map[string]json.RawMessage) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(m); err != nil {
		return "", fmt.Errorf("the arguments are no JSON: %w", err)
	}
	return strings.TrimSpace(b.String()), nil
}

// ToolName returns our name for a host's own tool, and other names as they are.
func ToolName(h Host, name string) string { return cmp.Or(tools[h][name].name, name) }
