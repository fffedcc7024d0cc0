package hostgate

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/grapnel-go/grapnel/internal/strictjson"
	"github.com/grapnel-go/grapnel/policy/bash"
)

// lookInto finds the calls and files that a call hides: a patch's files, a patch in a shell line, a program that reads commands later.
func (e *Event) lookInto(t tool, arguments map[string]json.RawMessage) {
	switch t.name {
	case patchTool.name:
		patch, _ := strictjson.Unquote(string(arguments["patch"]))
		paths := patchedFiles(patch)
		if len(paths) == 0 {
			e.Unclear = "the patch does not show which files it changes"
			return
		}
		raw, err := json.Marshal(paths)
		if err != nil {
			e.Unclear = err.Error()
			return
		}
		arguments["paths"], e.input.derived["paths"] = raw, string(raw)
	case shellTool.name:
		if words := arguments["command"]; len(words) > 0 && words[0] == '[' {
			arguments["command"] = e.lineOf(words)
		}
		line, ok := strictjson.Unquote(string(arguments["command"]))
		if !ok {
			return // the guard refuses it
		}
		if t == typedTool {
			line = e.typedLine(line)
			arguments["command"] = quote(line)
			e.input.fixed = "input for a running program cannot be changed"
		}
		if e.Host == Codex {
			e.lookIntoLine(line)
		}
	}
}

// lineOf returns the line of a command that is a list of words.
func (e *Event) lineOf(list json.RawMessage) json.RawMessage {
	var words []string
	if err := strictjson.Unmarshal(list, &words); err != nil || len(words) == 0 {
		e.Unclear = "the command is neither a line nor a list of words"
		return list
	}
	e.input.fixed = "a command that is a list of words cannot be changed"
	var line string
	if len(words) == 3 && slices.Contains([]string{"bash", "sh", "/bin/bash", "/bin/sh"}, words[0]) && slices.Contains([]string{"-c", "-lc"}, words[1]) {
		line = words[2]
	} else {
		for i, word := range words {
			words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		line = strings.Join(words, " ")
	}
	return quote(line)
}

// keyNames are keys that Copilot types by name.
var keyNames = regexp.MustCompile(`\{[a-z]+\}`)

// typedLine returns the lines that are typed into a running program. Half a line is unclear, because the rest comes with
// another call.
func (e *Event) typedLine(input string) string {
	line := strings.ReplaceAll(strings.ReplaceAll(input, "{enter}", "\n"), "\r", "\n")
	switch {
	case keyNames.MatchString(line):
		e.Unclear = "the input has keys that are no text: type whole lines"
	case line != "" && !strings.HasSuffix(line, "\n"):
		e.Unclear = "the input is a part of a line: type whole lines"
	}
	return strings.TrimSuffix(line, "\n")
}

// patchHeader begins the part of a patch that is about one file.
var patchHeader = regexp.MustCompile(`(?m)^[ \t]*\*\*\* (?:(?:Add|Update|Delete) File|Move to):[ \t]*(.*?)[ \t\r]*$`)

// patchedFiles returns the paths in a patch.
func patchedFiles(patch string) []string {
	var paths []string
	for _, m := range patchHeader.FindAllStringSubmatch(patch, -1) {
		if m[1] != "" && !slices.Contains(paths, m[1]) {
			paths = append(paths, m[1])
		}
	}
	return paths
}

// readsLater lists programs that read commands from their input when they get no file and no code. hidesLines lists
// programs that do so whatever their arguments are.
var (
	readsLater = regexp.MustCompile(`^(|ba|da|z|k|mk|a|fi|c|tc|r)sh$|^pwsh$|^i?python[0-9.]*$|^pypy[0-9.]*$|` +
		`^(node|deno|bun|ruby|irb|perl|php|lua|R|julia|ghci|jshell|scala|psql|mysql|sqlite3|sudo|script)$`)
	hidesLines = regexp.MustCompile(`^(vi|vim|nvim|view|ed|ex|emacs|gdb|lldb|tmux|screen|expect|su)$`)
	runsOnce   = []string{"-c", "-lc", "-e", "-m", "-p", "-r", "-V", "-v", "-h", "--version", "--help", "--eval", "--print", "--command"}
)

// lookIntoLine finds what Codex does with a shell line that no other event shows: it applies patches itself, and it can type into a
// program that the line has started.
func (e *Event) lookIntoLine(line string) {
	found := bash.Analyse(line, bash.Options{})
	for _, c := range found.Commands {
		switch {
		case c.Name == "apply_patch" || c.Name == "applypatch":
			e.addPatch(line)
		case hidesLines.MatchString(c.Name), readsLater.MatchString(c.Name) && readsInput(c):
			e.Unclear = c.Name + " may read commands that no hook sees: put all commands on the line, such as bash -c '…'"
		}
	}
}

// addPatch adds the patch in a shell line as a call of its own.
func (e *Event) addPatch(line string) {
	_, patch, begun := strings.Cut(line, "*** Begin Patch")
	paths := patchedFiles(patch)
	if !begun || len(paths) == 0 {
		e.Unclear = "the line applies a patch that it does not show: write the patch on the line, or use the tool apply_patch"
		return
	}
	arguments, err := json.Marshal(map[string]any{"patch": "*** Begin Patch" + patch, "paths": paths})
	if err != nil {
		e.Unclear = err.Error()
		return
	}
	hidden := Call{Tool: patchTool.name, Arguments: string(arguments)}
	if !slices.Contains(e.Calls, hidden) {
		e.Calls = append(e.Calls, hidden)
	}
	e.input.fixed = "a line with a patch cannot be changed"
}

// readsInput reports whether a program may read commands from the terminal: it gets neither code nor a file.
func readsInput(c bash.Command) bool {
	if c.Code != "" || c.Reached(bash.Pipe) {
		return false
	}
	for _, r := range c.Redirects {
		if strings.HasPrefix(r.Op, "<") && !strings.Contains(r.Op, "&") {
			return false
		}
	}
	for _, word := range c.Words[min(1, len(c.Words)):] {
		if word.Kind != bash.Literal || !strings.HasPrefix(word.Text, "-") || slices.Contains(runsOnce, word.Text) {
			return false
		}
	}
	return true
}
