package web

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/invisible"
)

// fieldKind is how a member is edited.
type fieldKind int

const (
	lineField fieldKind = iota
	areaField
	linesField  // a list of texts, one a line
	schemaField // YAML or JSON
	numberField
	choiceField
	radioField
)

// member is a field of the editor.
type member struct {
	path, label, hint string
	kind              fieldKind
	options           []option
	// only is the class of a field for one type of blueprint or hook.
	only string
	rows int
}

func (m member) id() string { return "f-" + m.path }

// read returns the text of a field; ok is false for a value that it cannot show.
func (m member) read(doc tree) (text string, ok bool) {
	switch v := findIn(doc, m.path).(type) {
	case gone:
		return "", true
	case string:
		ok = m.kind != linesField && m.kind != schemaField && (m.kind == areaField || !strings.Contains(v, "\n"))
		text = v
	case json.Number:
		text, ok = v.String(), m.kind == numberField
	case []any:
		lines := lo.FilterMap(v, func(one any, _ int) (string, bool) {
			line, isText := one.(string)
			return line, isText && line != "" && !strings.Contains(line, "\n")
		})
		text, ok = strings.Join(lines, "\n"), m.kind == linesField && len(lines) == len(v)
	default:
		text, ok = treeText(v), m.kind == schemaField
	}
	return text, ok && text == invisible.Escape(text) && !strings.Contains(text, "\r")
}

// parse returns the value that a person typed.
func (m member) parse(text string) (tree, error) {
	if strings.TrimSpace(text) == "" {
		return gone{}, nil
	}
	switch m.kind {
	case linesField:
		lines := lo.Compact(strings.Split(text, "\n"))
		return lo.ToAnySlice(lines), nil
	case schemaField:
		return parseTree(text)
	case numberField:
		if _, err := strconv.ParseInt(text, 10, 64); err == nil {
			return json.Number(text), nil
		}
	case lineField, areaField, choiceField, radioField:
	}
	return text, nil
}

// optionsOf returns values as options, which say what they are.
func optionsOf(values ...string) []option {
	return lo.Map(values, func(v string, _ int) option { return option{v, v} })
}

const argvHint = "the program and each argument on a line of its own"

// generalFields returns the fields of a blueprint besides its hooks.
func (e *editor) generalFields() []member {
	all := []member{
		{path: "type", label: "Type", kind: choiceField, options: []option{
			{"autonomous", "autonomous: an agent runs"}, {"procedural", "procedural: a command runs"}, {"pipeline", "pipeline: stages of both"},
		}},
		{path: "description", label: "Description", hint: "for people", kind: areaField, rows: 2},
		{path: "system_prompt", label: "System prompt", hint: "unless agent has instructions", kind: areaField, rows: 6, only: "of-autonomous"},
		{path: "command.argv", label: "Command", hint: argvHint, kind: linesField, rows: 3, only: "of-procedural"},
		{path: "parameters_schema", label: "Parameters", hint: "JSON Schema, in YAML or JSON", kind: schemaField, rows: 6},
		{path: "output_schema", label: "Output", hint: "JSON Schema of the result", kind: schemaField, rows: 6},
	}
	if e.name == "" {
		all = append([]member{{path: "name", label: "Name", hint: "letters and digits, with . _ - between them"}}, all...)
	}
	return all
}

// targets are the members that say what a hook of a type calls.
var targets = map[string]string{"agent": "agent_name", "http": "url", "command": "argv", "shell": "command", "func": "func"}

// hookFields returns the fields of a hook.
func (e *editor) hookFields(h hookAt) []member {
	at := h.path + "."
	isCall := h.point == "on_tool_call"
	kind := h.text("type")
	var all []member
	if !isCall || kind != "" {
		types := optionsOf("agent", "http", "command", "shell", "func")
		if isCall {
			types = types[1:]
		}
		all = append(all,
			member{path: at + "type", label: "Type", kind: choiceField, options: types},
			member{path: at + "command", label: "Shell command", only: "for-shell"},
			member{path: at + "argv", label: "Command", hint: argvHint, kind: linesField, rows: 3, only: "for-command"},
			member{path: at + "url", label: "URL", only: "for-http"},
			member{path: at + "func", label: "Function", hint: "of the program that embeds the coordinator", only: "for-func"},
		)
		if !isCall {
			all = slices.Insert(all, 1, member{
				path: at + "agent_name", label: "Agent", kind: choiceField, only: "for-agent",
				options: append([]option{{"", "choose one"}}, optionsOf(e.agents...)...),
			})
		}
	} else {
		all = append(all,
			member{path: at + "id", label: "ID", hint: "which names the rule in events"},
			member{path: at + "match.tool", label: "Tool"},
			member{path: at + "when", label: "When", hint: "a condition, such as args.command.contains(\"rm \")"},
			member{path: at + "decision", label: "Decision", kind: choiceField, options: optionsOf("deny", "ask", "allow", "stop")},
			member{path: at + "reason", label: "Reason"},
		)
	}
	if !isCall || kind != "" {
		all = append(all, member{path: at + "on_error", label: "If it fails", kind: radioField, options: []option{
			{"block", "block"}, {"continue", "continue"},
		}})
	}
	if h.point == "on_run_start" {
		all = append(all, member{path: at + "timeout_seconds", label: "Time limit", hint: "in seconds; empty means 300", kind: numberField})
	}
	return all
}

// fields returns all fields of a document.
func (e *editor) fields(doc tree) []member {
	all := e.generalFields()
	for _, h := range hooksIn(findIn(doc, "hooks"), "hooks.") {
		if isPoint(h.point) {
			all = append(all, e.hookFields(h)...)
		}
	}
	return all
}

func isPoint(name string) bool {
	return slices.ContainsFunc(hookPoints, func(o option) bool { return o.value == name })
}
