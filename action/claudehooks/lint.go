package claudehooks

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/internal/hostgate"
	"github.com/grapnel-go/grapnel/internal/near"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// valuesOf are the values that a matcher can match, for events with few of them.
var valuesOf = map[string][]string{
	sessionStart: {"startup", "resume", "clear", "compact", "fork"}, preCompact: {"manual", "auto"}, postCompact: {"manual", "auto"},
	sessionEnd: {"clear", "resume", "logout", "prompt_input_exit", "other"},
}

// neverHere are the values that do not happen here.
var neverHere = map[string][]string{
	sessionStart: {"clear", "fork"}, sessionEnd: {"clear", "resume", "logout"}, preCompact: {"manual"}, postCompact: {"manual"},
}

// lintMatcher warns about matchers that match nothing.
func (r *reader) lintMatcher(event string, at yamlfile.Node, m matcher) {
	if m.pattern != nil && events[event].isTool && regexp.MustCompile(`^[A-Za-z]+\*$`).MatchString(at.Raw()) {
		r.warn(at, "%q is a regular expression, in which * repeats the character before it: write %q", at.Raw(), "^"+strings.TrimSuffix(at.Raw(), "*"))
	}
	rule := ruleForm.FindStringSubmatch(at.Raw())
	if m.pattern != nil && strings.Contains(at.Raw(), "(") && events[event].isTool && rule != nil && hostgate.IsClaudeTool(rule[1]) {
		r.warn(at, "%q is a permission rule, and a matcher matches only the tool's name: use if", at.Raw())
	}
	for _, name := range m.names {
		values := valuesOf[event]
		switch {
		case values != nil && !slices.Contains(values, name):
			r.warn(at, "%s never has %s %q: known are %s", event, events[event].field, name, yamlfile.OneOf(values))
		case slices.Contains(neverHere[event], name):
			r.warn(at, "%s with %s %q never happens here", event, events[event].field, name)
		case !events[event].isTool:
		case strings.HasPrefix(name, "mcp__") && strings.Count(name, "__") < 2:
			r.warn(at, "%q is an exact name and matches no tool: write %q", name, name+"__.*")
		case strings.HasPrefix(name, "mcp__") || hostgate.IsClaudeTool(name):
		default:
			hint := ""
			for _, tool := range hostgate.ClaudeTools() {
				if strings.EqualFold(tool, name) {
					hint = fmt.Sprintf(": did you mean %s?", tool)
				}
			}
			if meant, ok := near.Name(name, hostgate.ClaudeTools()); ok && hint == "" {
				hint = fmt.Sprintf(": did you mean %s?", meant)
			}
			if hint != "" {
				r.warn(at, "no tool of Claude Code has the exact name %q%s", name, hint)
			}
		}
	}
}

// lintHandler warns about settings without an effect, and about the scripts that the handler names.
func (r *reader) lintHandler(h *handler, n yamlfile.Node) {
	about := events[h.event]
	if h.isAsync && (about.blocks || h.event == permissionRequest) {
		r.warn(n, "an asynchronous hook decides nothing: at %s it can only look", h.event)
	}
	if h.isAsync && h.onFailure == "block" {
		r.warn(n.Find("onFailure"), "onFailure has no effect on an asynchronous hook")
	}
	if h.event == subagentStop {
		r.warn(n, "a sub-agent that has ended cannot be continued here: the reason of a block is added to its answer")
	}
	if h.timeout > longestEnd && h.event == sessionEnd {
		r.warn(n.Find("timeout"), "all SessionEnd hooks together have at most %v", longestEnd)
	}
	if h.kind == kindCommand {
		r.lintText(h, n.Find("command"), h.command)
		for _, path := range r.set.scriptsOf(h) {
			r.lintScript(h, path)
		}
	}
}

// A shape is text in scripts that does nothing, or something else than it seems to.
type shape struct {
	pattern *regexp.Regexp
	events  []string // none means all
	text    string
}

var shapes = []shape{
	{regexp.MustCompile(`tool_result\b`), nil, "the input has no tool_result: use tool_response"},
	{regexp.MustCompile(`\btool_output\b`), nil, "the input has no tool_output: use tool_response"},
	{regexp.MustCompile(`\buser_prompt\b`), nil, "the input has no user_prompt: use prompt"},
	{regexp.MustCompile(`["'.]stop_reason\b`), nil, "the input has no stop_reason"},
	{
		regexp.MustCompile(`\bCLAUDE_(TOOL_INPUT|TOOL_NAME|FILE_PATHS|TOOL_OUTPUT|NOTIFICATION)\b`), nil,
		"there is no such variable: read the JSON on standard input",
	},
	{regexp.MustCompile(`\\?["']permission\\?["']\s*:`), nil, `"permission" has no effect: use hookSpecificOutput.permissionDecision`},
	{
		regexp.MustCompile(`\\?["']result\\?["']\s*:\s*\\?["'](block|deny|approve|allow)`), nil,
		`"result" has no effect: use "decision": "block" or hookSpecificOutput`,
	},
	{regexp.MustCompile(`\\?["']decision\\?["']\s*:\s*\\?["'](deny|allow|ask|continue)\\?["']`), nil, "a top-level decision can only be approve or block"},
	{regexp.MustCompile(`\bpermissionDecision\b`), []string{permissionRequest}, "permissionDecision has no effect at PermissionRequest: use decision.behavior"},
	{
		regexp.MustCompile(`\bpermissionDecision\b`), []string{postToolUse, postToolUseFailure, stopEvent, subagentStop, userPromptSubmit, sessionStart},
		"permissionDecision has an effect only at PreToolUse",
	},
	{
		regexp.MustCompile(`\bupdatedInput\b`), []string{postToolUse, postToolUseFailure, userPromptSubmit, stopEvent},
		"updatedInput has an effect only at PreToolUse and PermissionRequest",
	},
}

func (s shape) isFor(event string) bool {
	return len(s.events) == 0 || slices.Contains(s.events, event)
}

// lintText warns about shapes in a command of the settings.
func (r *reader) lintText(h *handler, at yamlfile.Node, text string) {
	for _, s := range shapes {
		if found := s.pattern.FindStringIndex(text); found != nil && s.isFor(h.event) {
			r.warnAt(at.At(found[0]), "%s", s.text)
		}
	}
}

// lintScript warns about shapes in a script. A script that several handlers name is checked for each event.
func (r *reader) lintScript(h *handler, path string) {
	text, err := os.ReadFile(path)
	if err != nil || len(text) > yamlfile.MaxBytes {
		return
	}
	shown := path
	if dir, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			shown = rel
		}
	}
	knowsEvents := strings.Contains(string(text), "hook_event_name") // and may answer each as it wants
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		if trimmed := strings.TrimSpace(line); strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, "//") {
			continue
		}
		for _, s := range shapes {
			if found := s.pattern.FindStringIndex(line); found != nil && s.isFor(h.event) && (!knowsEvents || len(s.events) == 0) {
				w := Warning{shown, number, found[0] + 1, s.text}
				if !slices.Contains(r.warnings, w) {
					r.warnings = append(r.warnings, w)
				}
			}
		}
	}
}

// sumOf returns the time limits of all handlers together, with time to end their processes.
func sumOf(list []*handler) (sum time.Duration) {
	for _, h := range list {
		sum += h.timeoutOf() + 10*time.Second
	}
	return sum
}
