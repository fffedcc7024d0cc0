package claudehooks

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/grapnel-go/grapnel/policy/bash"
)

// matcher decides whether a group's handlers run. The zero matcher matches always.
type matcher struct {
	names   []string
	pattern *regexp.Regexp
}

var (
	plainMatcher = regexp.MustCompile(`^[A-Za-z0-9_\-, |]*$`)
	// strictMatcher is plainMatcher for StopFailure and FileChanged.
	strictMatcher = regexp.MustCompile(`^[A-Za-z0-9_|]*$`)
)

// newMatcher compiles a matcher: a list of exact names, or a regular expression that may match anywhere.
func newMatcher(event, text string) (matcher, error) {
	if text == "" || text == "*" {
		return matcher{}, nil
	}
	plain := plainMatcher
	if event == stopFailure || event == "FileChanged" {
		plain = strictMatcher
	}
	if plain.MatchString(text) {
		var m matcher
		for _, name := range strings.FieldsFunc(text, func(r rune) bool { return r == '|' || r == ',' }) {
			if name = strings.TrimSpace(name); name != "" {
				m.names = append(m.names, name)
			}
		}
		return m, nil
	}
	pattern, err := regexp.Compile(text)
	if err != nil {
		return matcher{}, fmt.Errorf("matcher %q: %w: look-around and back-references are not supported", text, err)
	}
	return matcher{pattern: pattern}, nil
}

// matches reports whether one of the names matches: a value, or a tool's current and old name.
func (m matcher) matches(names ...string) bool {
	if m.pattern != nil {
		return slices.ContainsFunc(names, m.pattern.MatchString)
	}
	return len(m.names) == 0 || slices.ContainsFunc(names, func(name string) bool { return slices.Contains(m.names, name) })
}

// condition is a handler's if: one permission rule, such as Bash(git *). The zero condition is always true.
type condition struct {
	tool    string
	content string
	isSet   bool
	// isNever is set where the event has no tool, so that the handler never runs.
	isNever bool
}

var ruleForm = regexp.MustCompile(`(?s)^\s*([A-Za-z][\w\-*.]*)\s*(?:\((.*)\))?\s*$`)

func newCondition(text string) (condition, error) {
	found := ruleForm.FindStringSubmatch(text)
	if found == nil {
		return condition{}, fmt.Errorf("if %q: expected one permission rule, such as Bash(git *) or Edit(*.ts)", text)
	}
	return condition{tool: found[1], content: strings.TrimSpace(found[2]), isSet: true}, nil
}

// alike are tools to which the rules of another tool apply, too.
var alike = map[string][]string{
	"Edit": {"Edit", "Write", "MultiEdit", "NotebookEdit"},
	"Read": {"Read", "Grep", "Glob", "LS"},
	"Task": {"Agent"},
}

// holds reports whether the condition is true, or cannot be decided.
func (c condition) holds(tool string, input json.RawMessage, dir, project string) bool {
	switch {
	case c.isNever:
		return false
	case !c.isSet:
		return true
	case strings.HasPrefix(c.tool, "mcp__"):
		return tool == c.tool || strings.HasPrefix(tool, c.tool+"__") || matchStars(c.tool, tool)
	case c.tool != "*" && tool != c.tool && !slices.Contains(alike[c.tool], tool):
		return false
	case c.content == "" || c.content == "*":
		return true
	}
	var in struct {
		Command  string `json:"command"`
		FilePath string `json:"file_path"`
		Notebook string `json:"notebook_path"`
		Path     string `json:"path"`
		URL      string `json:"url"`
		Kind     string `json:"subagent_type"`
		Skill    string `json:"skill"`
	}
	if json.Unmarshal(input, &in) != nil {
		return true
	}
	switch tool {
	case "Bash", "PowerShell":
		return matchCommand(c.content, in.Command)
	case "Read", "Write", "Edit", "MultiEdit", "NotebookEdit", "Grep", "Glob", "LS":
		for _, path := range []string{in.FilePath, in.Notebook, in.Path} {
			if path != "" {
				return matchPath(c.content, path, dir, project)
			}
		}
		return true
	case "WebFetch":
		domain, ok := strings.CutPrefix(c.content, "domain:")
		_, rest, _ := strings.Cut(in.URL, "://")
		host, _, _ := strings.Cut(strings.TrimSuffix(rest, "/"), "/")
		host, _, _ = strings.Cut(host, ":")
		return !ok || matchStars(domain, host)
	case "Agent":
		return c.content == in.Kind
	case "Skill":
		return matchStars(c.content, in.Skill)
	}
	return true
}

// matchCommand reports whether a line runs a command that a rule names. It returns true if that is unknown.
func matchCommand(rule, line string) bool {
	if prefix, ok := strings.CutSuffix(rule, ":*"); ok {
		rule = prefix + " *"
	}
	analysis := bash.Analyse(line, bash.Options{})
	if analysis.Unparseable != nil {
		return true
	}
	name, more, _ := strings.Cut(rule, " ")
	if more != "" && more != "*" && strings.ContainsAny(line, "$`") {
		return true
	}
	matches := func(text string) bool {
		return matchStars(rule, text) || strings.HasSuffix(rule, " *") && text == strings.TrimSuffix(rule, " *")
	}
	if name == "" || matches(strings.TrimSpace(line)) {
		return true
	}
	for _, command := range analysis.Commands {
		var words, plain []string
		for _, w := range command.Words {
			words, plain = append(words, w.Source), append(plain, w.Text)
		}
		if matches(strings.Join(words, " ")) || matches(strings.Join(plain, " ")) {
			return true
		}
	}
	return false
}

// matchStars reports whether a pattern, in which * is any text, matches the whole text.
func matchStars(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	rest, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}

// matchPath reports whether a path matches a rule in the syntax of gitignore: //x is absolute, /x is below the project, and a
// name without a slash may be at any depth.
func matchPath(rule, path, dir, project string) bool {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	switch {
	case strings.HasPrefix(rule, "//"):
		rule = rule[1:]
	case strings.HasPrefix(rule, "~/"):
		rule = homeDir() + rule[1:]
	case strings.HasPrefix(rule, "/"):
		rule = project + rule
	case strings.Contains(strings.TrimSuffix(rule, "/"), "/"):
		rule = dir + "/" + strings.TrimPrefix(rule, "./")
	default:
		rule = "**/" + rule
	}
	rule = strings.TrimSuffix(rule, "/")
	for _, pattern := range []string{rule, rule + "/**"} {
		if ok, err := doublestar.Match(pattern, filepath.ToSlash(path)); ok || err != nil {
			return true
		}
	}
	return false
}
